"""The device finds what the CPU finds."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tandem.extras.gpu.routing import DeviceGraphs
from tandem.extras.gpu.sizes import Sizes
from tandem.extras.laboratory.gpu.lines import Found, Missing
from tandem.extras.laboratory.gpu.search import search, sizes_for
from tandem.extras.laboratory.gpu.subjects import (
    decoding_system,
    longest_of,
    open_bundle,
    random_sources,
    search_options,
)
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.errors import ConfigError
from tandem.models.search import Array, Graphs, Hypothesis, SearchOptions, translate_batch
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import encode_lines
from tandem.training.optimisation.precision import float32_products

_SCORES, _LEAST = 1e-3, 0.97  # largest difference of a score; share of sentences that must come out the same
_BLEU = 0.2  # largest difference against references
_HALF = {"float16": (0.9, 98.0), "bfloat16": (0.6, 90.0)}
"""Least share of texts that are the same, and least BLEU against the CPU's: what two shipped bundles have on a CPU
(float16 0.965 and 99.2, bfloat16 0.74 and 94.4 where they have least), less what another summation may change."""
_SLOTS = 64
_FEW = 16  # sentences of a rehearsal
_BUDGET = 64_000  # beam rows x source positions of a batch on the CPU


def float32(*, system: str, device: str, small: bool) -> Found:
    """The search of the device in float32 against the CPU's, on sentences of all lengths.

    Scores are sums of rounded numbers, and two kernels round differently: where two continuations are worth the same
    to seven digits, either may come first, and a few sentences in a thousand go another way.
    """
    count, longest = (12, 10) if small else (200, 30)
    model = decoding_system(system, small=small)
    sources, options = random_sources(model, count, (3, longest)), search_options(5, 0, longest)
    expected = [nbest[0] for nbest in translate_batch(TorchGraphs(model), sources, options, token_budget=_BUDGET)]
    sizes = sizes_for((8,) if small else (8, 64), longest_of(sources), options)
    with float32_products("float32"):
        found = search(deepcopy(model).to(device), sources, options, sizes)
    figures = compared(found, expected)
    met = figures["same"] >= _LEAST and figures["largest_difference"] <= _SCORES
    summary = f"{figures['same']:.1%} of {count} the same, scores within {figures['largest_difference']:.1e}"
    return Found(summary, figures, met)


def compared(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> dict[str, float]:
    """The share of hypotheses with the same tokens, and how far their scores lie apart."""
    pairs = list(zip(found, expected, strict=True))
    apart = [abs(one.score - other.score) for one, other in pairs if one.tokens == other.tokens]
    return {"same": len(apart) / len(pairs), "largest_difference": max(apart, default=float("inf"))}


def half(*, bundle: str, source: str, references: str, dtype: str, device: str, small: bool, limit: int) -> Found:
    """A bundle in a 16-bit type on the device, decoded as it is served, against its float32 on the CPU.

    Compared are its texts and their BLEU: that of both against references, or without them against what the CPU writes.
    """
    try:
        from sacrebleu import corpus_bleu
    except ImportError as error:
        raise Missing("sacrebleu is not installed") from error
    work = _real_work(bundle, source, min(limit, _FEW) if small else limit)
    copy, count = deepcopy(work.model).to(device, getattr(torch, dtype)), len(work.lines)
    bounds = longest_of(work.sources), work.options.max_length + 1
    graphs = DeviceGraphs(copy, sizes=Sizes.within(min(count, _SLOTS), *bounds))
    texts, expected = work.translated(graphs), _on_cpu(work)
    same = sum(map(str.__eq__, texts, expected)) / count
    figures: dict[str, Any] = {"same": same, "sentences": count, "routed": dict(graphs.counters.routed)}
    if references:
        judged = [_lines(Path(references))[:count]]
        scores = {name: corpus_bleu(one, judged).score for name, one in ((dtype, texts), ("float32", expected))}
        met = abs(scores[dtype] - scores["float32"]) <= _BLEU
        head = f"{dtype} {scores[dtype]:.2f} BLEU, float32 on the CPU {scores['float32']:.2f}"
    else:
        scores = {dtype: corpus_bleu(texts, [expected]).score}
        least_same, least_bleu = _HALF[dtype]
        met = same >= least_same and scores[dtype] >= least_bleu
        head = f"{dtype} {scores[dtype]:.2f} BLEU against what float32 on the CPU writes"
    return Found(f"{head}, {same:.1%} of {count} the same", figures | {"bleu": scores}, met)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A bundle's model in float32 on the CPU, and text that it reads."""

    model: AnyModel
    renderer: Renderer
    options: SearchOptions
    lines: list[str]
    sources: list[tuple[Array, ...]]

    def translated(self, graphs: Graphs) -> list[str]:
        """The text as some graphs of the model write it."""
        nbest = translate_batch(graphs, self.sources, self.options, token_budget=_BUDGET)
        return [self.renderer.text(one[0], (), (line,)) for one, line in zip(nbest, self.lines, strict=True)]


@cache
def _real_work(bundle: str, source: str, limit: int) -> _Work:
    """Of a bundle, with the first lines of a file, or of the sentences that bundles are proved on."""
    read = open_bundle(bundle)
    try:
        lines = (_lines(Path(source)) if source else proof_sentences(read.manifest.source_languages[0]))[:limit]
    except ConfigError as error:
        raise Missing(f"needs --source: {error}") from error
    vocabulary, limits = read.source_vocabularies[0], read.manifest.limits
    sources: list[tuple[Array, ...]] = [(ids,) for ids in encode_lines(vocabulary, lines, limits.max_source_tokens + 1)]
    renderer, decoding = Renderer.of(read), read.manifest.decoding
    longest = min(decoding.max_length, limits.max_target_tokens)
    options = renderer.options(replace(decoding, n_best=1, max_length=longest))
    return _Work(load_bundle_model(read), renderer, options, lines, sources)


@cache
def _on_cpu(work: _Work) -> list[str]:
    """What both 16-bit types are compared with."""
    return work.translated(TorchGraphs(work.model))


def _lines(file: Path) -> list[str]:
    raw = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
    return raw.decode().removesuffix("\n").split("\n")
