"""What is decoded and trained: a model of every architecture, with random weights, and random sentences.

B sentences, S source positions, T target positions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tandem import training
from tandem.extras.laboratory.gpu.lines import Missing
from tandem.models.architectures.protocol import ModelConfig, Padded, feature_widths
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.bundle import Bundle
from tandem.models.search import Array, SearchOptions
from tandem.models.steps.torch_graphs import AnyModel, sample_sources
from tandem.models.vocabulary import BOS, EOS, PAD, UNK
from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.data.dataset import PreparedData
from tandem.training.data.plans import plan_epoch
from tandem.training.data.prepare import prepare
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, TrainingConfig, load_recipe

RECIPES = Path(training.__file__).parent / "recipes"
SYSTEMS = {
    "dpn": "tatoeba-de-en/dpn.toml",
    "convs2s": "tatoeba-de-en/convs2s.toml",
    "transformer": "systems-de-en/transformer-gpu.toml",
    "layerwise": "iwslt14-de-en/layerwise.toml",
    "multisource": "multi30k-defrcs-en/hierarchical.toml",
    "memd": "multi30k-de-en/memd.toml",
}
"""A recipe of every architecture, whose sizes it is measured in."""
EPOCH = 29_000
"""Pairs of Multi30k's training part."""
_CAPTIONS = (7, 25)  # symbols of a synthetic pair's sides, EOS included, evenly drawn; captions have about as many
_SMALL: dict[str, dict[str, Any]] = {
    "dpn": {"width": 64, "hidden": 128, "heads": 2, "cnn_layers": 2, "san_layers": 1},
    "convs2s": {"embedding": 48, "output_embedding": 48}
    | {"encoder_widths": [64, 64], "encoder_kernels": [3, 3], "decoder_widths": [64, 64], "decoder_kernels": [3, 3]},
    "transformer": {"width": 64, "hidden": 128, "heads": 2, "encoder_layers": 2, "decoder_layers": 2},
    "layerwise": {"width": 64, "hidden": 128, "heads": 2, "layers": 2},
    "multisource": {"embedding": 48, "encoder_width": 32, "attention_width": 32, "decoder_width": 64}
    | {"strategy": "hierarchical"},
    "memd": {"width": 32, "encoders": ["gru2", "cnn"], "decoders": [2]},
}
_SMALL_TYPES = 120
_FIRST = 4  # ordinary symbol
_SPREAD = 3.0  # standard deviation of a row's logits
REPETITION: dict[str, Any] = {"no_repeat_ngram_size": 6, "max_rounds": 2}
"""Rules that the shipped bundles of language pairs decode with."""
RULES: tuple[dict[str, Any], ...] = ({}, REPETITION, {"required": (_FIRST,)}, {**REPETITION, "required": (_FIRST,)})
"""Search options of every kind of step that there is."""


def system_recipe(system: str) -> Recipe:
    """The recipe whose sizes a system is measured in."""
    return load_recipe(RECIPES / SYSTEMS[system])


def system_config(system: str, *, small: bool) -> ModelConfig:
    """The configuration of a recipe's model, or a small one of the same architecture, both without dropout."""
    recipe = system_recipe(system)
    sources, target = recipe.vocabulary_sizes()
    if not small:
        return replace_dropout(recipe.model_config(sources, target), 0.0)
    sizes = {"source_vocabularies": [_SMALL_TYPES for _ in sources], "target_vocabulary": _SMALL_TYPES}
    return replace_dropout(load_config(recipe.architecture, {**_SMALL[system], **sizes}, system), 0.0)


def replace_dropout(config: ModelConfig, rate: float) -> ModelConfig:
    """A configuration with one rate for everything that is dropped."""
    record: Any = config
    known = [name for name in ("dropout", "attention_dropout") if hasattr(config, name)]
    changed: ModelConfig = replace(record, **dict.fromkeys(known, rate))
    return changed


def build_system(system: str, *, small: bool) -> AnyModel:
    """A model with random weights on the CPU: the same whenever it is asked for."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return build_model(system_recipe(system).architecture, system_config(system, small=small))


def decoding_system(system: str, *, small: bool) -> AnyModel:
    """The same prepared for inference, its logits drawn apart.

    The logits of fresh weights are all but equal, and which of two equal ones comes first is a matter of rounding.
    """
    model = build_system(system, small=small)
    model.prepare_for_inference()
    with torch.no_grad():
        memory = model.encode(sample_sources(model, 1, 8))
        spread = float(model.score(torch.arange(BOS, BOS + 8)[None], memory).std(-1).mean())
    model.__class__ = _drawn_apart(type(model), _SPREAD / spread)
    return model


def _drawn_apart(architecture: type[AnyModel], factor: float) -> type[AnyModel]:
    """The same architecture with its logits times a factor; a copy or a move of a model keeps it."""

    class DrawnApart(architecture):  # type: ignore[misc, valid-type]  # a class that is known when it runs
        def project(self, features: Tensor) -> Tensor:
            logits: Tensor = super().project(features) * factor
            return logits

    return DrawnApart


def random_sources(model: AnyModel, count: int, lengths: tuple[int, int]) -> list[tuple[Array, ...]]:
    """Sentences in every source of a model, of so many symbols, EOS included."""
    draw, shortest, longest = np.random.default_rng(0), *lengths
    found = []
    for _ in range(count):
        sources: list[Array] = []
        for types, width in zip(model.config.source_vocabularies, feature_widths(model.config), strict=True):
            length = int(draw.integers(shortest, longest + 1))
            if width:
                sources.append(draw.standard_normal((length, width)).astype(np.float32))
            else:
                sources.append(np.array([*draw.integers(_FIRST, types, length - 1), EOS], np.int64))
        found.append(tuple(sources))
    return found


def open_bundle(folder: str) -> Bundle:
    """The bundle in a folder; raises Missing where there is none."""
    if not Path(folder).is_dir():
        raise Missing(f"there is no bundle {folder}: name one with --bundle")
    return Bundle.load(folder)


def search_options(beam_size: int, shortest: int, longest: int, **rules: Any) -> SearchOptions:
    """Beam search of hypotheses within two lengths, plain or with rules."""
    options = SearchOptions(beam_size=beam_size, min_length=shortest, max_length=longest, **rules)
    return replace(options, suppressed=(PAD, UNK, BOS))


def training_recipe(system: str, **training: Any) -> Recipe:
    """A system's recipe with other numbers to train with."""
    settings = TrainingConfig(updates=10**6, validation_sentences=0, **training)
    return replace(system_recipe(system), optimiser=OptimiserConfig("adam", 1e-3, warmup=100), training=settings)


def training_batches(config: ModelConfig, count: int, tokens: int, lengths: tuple[int, int]) -> Iterator[TrainingBatch]:
    """Batches of sentences of like length, about so many target symbols each, whose targets follow from the sources.

    Args:
        config: of the model.
        count: batches.
        tokens: target symbols of a batch, padding included.
        lengths: of sequences, shortest and longest; each batch has a longest one of its own.
    """
    draw = np.random.default_rng(0)
    for longest in draw.integers(*lengths, count, endpoint=True).tolist():
        rows = max(1, tokens // (longest + 1))
        length_B = draw.integers(max(1, longest * 3 // 4), longest, rows, endpoint=True)
        length_B[0] = longest
        yield _batch(config, length_B, draw)


def epoch_batches(config: ModelConfig, tokens: int, corpora: str, *, small: bool) -> tuple[list[TrainingBatch], str]:
    """The batches of one epoch in training order, and of what: of Multi30k, or of synthetic pairs as many as it has.

    Args:
        config: of the model. Every source of Multi30k is its German one.
        tokens: positions of a batch's targets, about.
        corpora: folder of built corpora; empty = none.
        small: a few hundred pairs instead.

    Raises:
        CorpusError: what ``corpora`` has of Multi30k is no corpus.
    """
    if corpora and Path(corpora, "multi30k").is_dir():
        data = _multi30k(corpora)
        lengths = data.source_lengths, data.target_lengths
        plans = plan_epoch(*lengths, epoch=0, seed=0, max_tokens=tokens)
        batches = (collate(data, plan) for plan in plans)
        sources = len(config.source_vocabularies)
        return [replace(batch, sources=batch.sources * sources) for batch in batches], "Multi30k"
    draw = np.random.default_rng(0)
    length_P = draw.integers(*((3, 9) if small else _CAPTIONS), 200 if small else EPOCH, endpoint=True)
    plans = plan_epoch(length_P, length_P, epoch=0, seed=0, max_tokens=tokens)
    made = [_batch(config, length_P[[pair for (pair,) in plan.items]], draw) for plan in plans]
    return made, "synthetic pairs"


@cache
def _multi30k(corpora: str) -> PreparedData:
    """Its training part, German to English, prepared as its recipes have it, once in a process."""
    recipe = load_recipe(RECIPES / "multi30k-de-en/transformer.toml")
    languages = (*recipe.source_languages, recipe.target_language)
    with tempfile.TemporaryDirectory(prefix="tandem-multi30k-") as folder:
        out = Path(folder, "data")
        prepare(recipe.data, languages=languages, root=Path(corpora), out=out, seed=recipe.training.seed)
        return PreparedData.open(out, "train")  # mapped into memory: it outlives the names of its files


def _batch(config: ModelConfig, length_B: Any, draw: np.random.Generator) -> TrainingBatch:
    """Sources of those lengths, EOS included, and targets one symbol shorter, each the symbol above its source's."""
    inside_BS = np.arange(int(length_B.max())) < length_B[:, None]
    sources, first = [], None
    for types, width in zip(config.source_vocabularies, feature_widths(config), strict=True):
        if width:
            values: Any = draw.standard_normal((*inside_BS.shape, width)).astype(np.float32) * inside_BS[..., None]
        else:
            values = np.where(inside_BS, draw.integers(_FIRST, types, inside_BS.shape), PAD)
            values[np.arange(len(length_B)), length_B - 1] = EOS
            first = values if first is None else first
        sources.append(Padded(torch.from_numpy(values), torch.from_numpy(length_B)))
    drawn = draw.integers(_FIRST, config.target_vocabulary, inside_BS.shape) if first is None else first
    end_BS = np.arange(inside_BS.shape[1]) == length_B[:, None] - 1
    symbols_BS = _FIRST + (drawn - _FIRST + 1) % (config.target_vocabulary - _FIRST)
    out_BT = np.where(end_BS, EOS, np.where(inside_BS, symbols_BS, PAD))
    in_BT = np.concatenate([np.full((len(out_BT), 1), BOS), np.where(out_BT == EOS, PAD, out_BT)[:, :-1]], axis=1)
    return TrainingBatch(
        sources=tuple(sources),
        target_in=torch.from_numpy(in_BT),
        target_out=torch.from_numpy(out_BT),
        target_places=torch.from_numpy(np.flatnonzero(out_BT)),
        target_tokens=int(length_B.sum()),
        source_tokens=int(length_B.sum()) * len(sources),
    )


def longest_of(sources: Sequence[tuple[Array, ...]]) -> int:
    """Symbols of the longest source."""
    return max(len(source) for sentence in sources for source in sentence)
