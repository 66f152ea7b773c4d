"""Hugging Face ``Seq2SeqTrainer`` on a MarianMT of the same size with random weights.

Set as its users would: batches of a number of pairs grouped by length, its collator, no loader processes, its fused
AdamW (here without weight decay, which makes it Adam), its clipping. MarianMT is the library's plain Transformer for
translation; BART has learned positions and a bias on the logits besides, and is no faster.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from tandem.extras.laboratory.training.work import DROPOUT, RATE, SMOOTHING, Count, TrainingPass, TrainingWork, padded
from tandem.extras.laboratory.transformers import marian
from tandem.models.vocabulary import EOS, PAD, UNK

INSTALL = "pip install -e '.[bench]'"
IGNORED = -100  # what the library's loss skips


def missing() -> str:
    """Why it cannot be measured; empty where it can."""
    absent = [name for name in ("transformers", "accelerate") if find_spec(name) is None]
    return f"{' and '.join(absent)} not installed: {INSTALL}" if absent else ""


def _library(name: str = "transformers") -> Any:
    """Imported when it is used: the rest is measured without it."""
    return import_module(name)


class Pairs(Dataset[dict[str, list[int]]]):
    """The training pairs as the library wants them."""

    def __init__(self, work: TrainingWork) -> None:
        self._data = work.data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        source = self._data.sources(index)[0].tolist()
        return {
            "input_ids": source,
            "attention_mask": [1] * len(source),
            "labels": [*self._data.target(index).tolist(), EOS],
        }


class HuggingFace:
    """The library's trainer, made anew for every turn around the same model."""

    name = "transformers Seq2SeqTrainer"

    def __init__(self, work: TrainingWork, attention_dropout: float, places: float, *, narrow: bool) -> None:
        """``places`` are the padded symbols that a batch is to have on average, about; ``narrow`` asks for bfloat16."""
        self._work, self._pairs, self._narrow = work, Pairs(work), narrow
        self.rows, self.plan = fit_rows(work, places)
        rates = {"dropout": DROPOUT, "activation_dropout": DROPOUT, "attention_dropout": attention_dropout}
        self._model = marian(work.size, work.vocabularies, **rates)
        self._tokenizer = _tokenizer(max(work.vocabularies))
        self.parameters = sum(one.numel() for one in self._model.parameters() if one.requires_grad)

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        transformers = _library()
        with tempfile.TemporaryDirectory(prefix="tandem-huggingface-") as folder:
            own = {"seed": turn + 1, "bf16": self._narrow, "logging_strategy": "no"}
            arguments = training_arguments(folder, updates=warmup + updates, rows=self.rows, **own)
            collator, clock = _Counting(self._tokenizer, self._model), _clock()
            trainer = transformers.Seq2SeqTrainer(
                model=self._model,
                args=arguments,
                train_dataset=self._pairs,
                data_collator=collator,
                callbacks=[clock],
            )
            trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
            trainer.train()
        del trainer
        gc.collect()
        # Batches are collated in the order in which they are trained on, the next one while one is.
        count = sum(collator.counts[warmup : warmup + updates], Count())
        return TrainingPass(updates, clock.ends[warmup + updates - 1] - clock.ends[warmup - 1], count)


def training_arguments(folder: str, *, updates: int, rows: int, **further: Any) -> Any:
    """The library's arguments for ``updates`` updates on batches of ``rows`` pairs, as its users would set them."""
    given = {
        "output_dir": folder,
        "max_steps": updates,
        "per_device_train_batch_size": rows,
        "train_sampling_strategy": "group_by_length",
        "label_smoothing_factor": SMOOTHING,
        "learning_rate": RATE,
        "lr_scheduler_type": "inverse_sqrt",
        "warmup_steps": 1000,
        "adam_beta2": 0.98,
        "adam_epsilon": 1e-9,
        "weight_decay": 0.0,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    return _library().Seq2SeqTrainingArguments(**given | further)


class _Counting:
    """The library's collator, counting what it gives."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        transformers = _library()
        self._collate = transformers.DataCollatorForSeq2Seq(tokenizer, model=model)
        self.counts: list[Count] = []

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> Any:
        batch = self._collate(features)
        source, labels = batch["attention_mask"], batch["labels"]
        real = int((labels != IGNORED).sum())
        self.counts.append(Count(int(source.sum()), source.numel(), real, labels.numel()))
        return batch


def _clock() -> Any:
    callback: Any = _library().TrainerCallback

    class Clock(callback):  # type: ignore[misc]  # a class that is known when it runs
        """Remembers when each update ended."""

        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *arguments: Any, **named: Any) -> None:
            self.ends.append(time.perf_counter())

    return Clock()


def fit_rows(work: TrainingWork, places: float) -> tuple[int, Count]:
    """The pairs of a batch that make its padded symbols ``places`` on average, and an epoch's symbols with them."""
    grouped = _library("transformers.trainer_pt_utils").get_length_grouped_indices
    lengths = work.data.lengths_of(np.arange(len(work.data)))
    rows, count = 1, Count()
    wanted = places / float(sum(side.mean() for side in lengths))  # without padding
    for _ in range(3):
        rows = max(1, min(round(wanted), len(work.data)))
        order = grouped(lengths[0].tolist(), rows, generator=torch.Generator().manual_seed(1))
        batches = [order[start : start + rows] for start in range(0, len(order), rows)]
        count = padded(lengths, batches)
        wanted = rows * places / (count.places / (len(order) / rows))
    return rows, count


def _tokenizer(vocabulary: int) -> Any:
    """What the collator asks for the padding; text never goes through it."""
    tokenizers, transformers = _library("tokenizers"), _library()

    words = {f"w{index}": index for index in range(vocabulary)}
    model = tokenizers.models.WordLevel(words, unk_token=f"w{UNK}")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model), pad_token=f"w{PAD}")
