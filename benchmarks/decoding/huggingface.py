"""Hugging Face ``generate``: a random model of the size of MarianMT's, float32, all threads for one batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.decoding.systems import DecodedBatch, Ids, Label, Task, without_scores
from benchmarks.transformers import TransformerSize, marian
from benchmarks.workload import check_one_text
from models.bundle import Bundle
from models.errors import ConfigError
from models.search import Hypothesis
from models.translator import encode_lines
from models.vocabulary import PAD


@dataclass(frozen=True, slots=True)
class HuggingFaceOpening:
    """How to make the model.

    Attributes:
        label: of its rows.
        bundle: whose source vocabulary text goes through.
        beam_size: of the search.
        workers: threads of PyTorch.
        vocabulary: types of either side.
    """

    label: Label
    bundle: Path
    beam_size: int
    workers: int
    vocabulary: int

    def open(self) -> HuggingFace:
        """Build the model with random weights."""
        return HuggingFace(self, Bundle.load(self.bundle))


class HuggingFace:
    """``generate`` of a random model behind our source vocabulary; it decodes to given lengths only."""

    def __init__(self, opening: HuggingFaceOpening, bundle: Bundle) -> None:
        check_one_text(bundle)
        self.label, self._threads = opening.label, opening.workers
        self._vocabulary, self._beam_size = opening.vocabulary, opening.beam_size
        self._source, self._target = bundle.source_vocabularies[0], bundle.target_vocabulary
        self._most = bundle.manifest.limits.max_source_tokens + 1
        self._model = marian(TransformerSize(), (opening.vocabulary, opening.vocabulary)).eval()

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last, cut at the bundle's limit."""
        return encode_lines(self._source, texts, self._most)

    def decode(self, tasks: Sequence[Task]) -> list[DecodedBatch]:
        """Batch after batch, each on all threads: what one costs one worker cannot be told."""
        return [replace(self._generate(task, self._threads), seconds=None) for task in tasks]

    def decode_alone(self, task: Task) -> DecodedBatch:
        """One batch on one thread."""
        return self._generate(task, 1)

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Hypotheses as text; types that only the random model has count as others."""
        size = self._target.size
        return [self._target.decode([token % size for token in one.tokens]) for one in hypotheses]

    def close(self) -> None:
        """Nothing to let go of: the model goes with its last reference."""

    def _generate(self, task: Task, threads: int) -> DecodedBatch:
        if task.target is None:
            raise ConfigError(
                "a model with random weights decodes to given lengths only: real text needs a trained one"
            )
        started = time.perf_counter()
        torch.set_num_threads(threads)
        ids = np.full((len(task.sources), task.longest + 1), PAD, np.int64)
        for row, source in zip(ids, task.sources, strict=True):
            row[: len(source)] = source % self._vocabulary
        given = torch.from_numpy(ids)
        mask = torch.arange(ids.shape[1]) < torch.tensor([len(source) for source in task.sources])[:, None]
        with torch.inference_mode():
            found = self._model.generate(
                input_ids=given,
                attention_mask=mask.long(),
                num_beams=self._beam_size,
                min_new_tokens=task.target,
                max_new_tokens=task.target,
                do_sample=False,
            )
        hypotheses = tuple(without_scores(row[1:]) for row in found.tolist())  # the first one starts the decoder
        return DecodedBatch(hypotheses, time.perf_counter() - started)
