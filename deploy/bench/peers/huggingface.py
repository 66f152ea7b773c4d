"""Hugging Face ``generate``: a random model of the size of MarianMT's, float32, all threads for one batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deploy.bench.systems import Decoded, Ids, Label, Task, without_scores
from deploy.bench.tandem import check_one_text
from models.bundle import Bundle
from models.errors import ConfigError
from models.search import Hypothesis
from models.translator import encode_lines
from models.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True, slots=True)
class HuggingFaceOpening:
    """How to make the model.

    Attributes:
        label: of its rows.
        bundle: whose source vocabulary text goes through.
        beam_size: of the search.
        workers: threads of PyTorch.
        vocabulary: types.
        layers: of the encoder, and of the decoder.
        width, hidden, heads: of each layer.
        positions: longest sequence in tokens.
    """

    label: Label
    bundle: Path
    beam_size: int
    workers: int
    vocabulary: int
    layers: int
    width: int
    hidden: int
    heads: int
    positions: int

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
        self._model = _random_model(opening)

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last, cut at the bundle's limit."""
        return encode_lines(self._source, texts, self._most)

    def decode(self, tasks: Sequence[Task]) -> list[Decoded]:
        """Batch after batch, each on all threads: what one costs one worker cannot be told."""
        return [replace(self._generate(task, self._threads), seconds=None) for task in tasks]

    def decode_alone(self, task: Task) -> Decoded:
        """One batch on one thread."""
        return self._generate(task, 1)

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Hypotheses as text; types that only the random model has count as others."""
        size = self._target.size
        return [self._target.decode([token % size for token in one.tokens]) for one in hypotheses]

    def close(self) -> None:
        """Nothing to let go of: the model goes with its last reference."""

    def _generate(self, task: Task, threads: int) -> Decoded:
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
        return Decoded(hypotheses, time.perf_counter() - started)


def _random_model(opening: HuggingFaceOpening) -> Any:
    import transformers

    config = transformers.MarianConfig(
        vocab_size=opening.vocabulary,
        decoder_vocab_size=opening.vocabulary,
        max_position_embeddings=opening.positions,
        encoder_layers=opening.layers,
        encoder_ffn_dim=opening.hidden,
        encoder_attention_heads=opening.heads,
        decoder_layers=opening.layers,
        decoder_ffn_dim=opening.hidden,
        decoder_attention_heads=opening.heads,
        d_model=opening.width,
        activation_function="relu",
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = transformers.MarianMTModel(config)
        return model.eval()
