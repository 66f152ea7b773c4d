"""The device finds what the CPU finds."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.lines import Found, Missing
from benchmarks.gpu.search import on_device, search, sizes_for
from benchmarks.gpu.work import decoding_system, longest_of, random_sources, search_options
from models.bundle import Bundle
from models.device import StaticStep
from models.graphs import AnyModel, TorchGraphs
from models.loading import load_bundle_model
from models.rendering import Renderer
from models.search import Hypothesis, SearchOptions, translate_batch
from models.translator import encode_lines
from training.precision import float32_products

_SCORES, _LEAST = 1e-3, 0.97  # largest difference of a score; share of sentences that must come out the same
_BLEU = 0.2
_BUDGET = 64_000  # beam rows x source positions of a batch on the CPU


def float32(*, system: str, device: str, small: bool, captured: bool = False) -> Found:
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
        found = search(deepcopy(model).to(device), sources, options, sizes, captured=captured)
    figures = compared(found, expected)
    met = figures["same"] >= _LEAST and figures["largest_difference"] <= _SCORES
    summary = f"{figures['same']:.1%} of {count} the same, scores within {figures['largest_difference']:.1e}"
    return Found(summary, figures, met)


def compared(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> dict[str, float]:
    """The share of hypotheses with the same tokens, and how far their scores lie apart."""
    pairs = list(zip(found, expected, strict=True))
    apart = [abs(one.score - other.score) for one, other in pairs if one.tokens == other.tokens]
    return {"same": len(apart) / len(pairs), "largest_difference": max(apart, default=float("inf"))}


def half(
    *, bundle: str, source: str, references: str, dtype: str, device: str, limit: int, beam_size: int = 5
) -> Found:
    """BLEU of a bundle in a 16-bit type against its float32, on real text, with its own search.

    Options that the device's search does not have are left out of both.
    """
    if not (bundle and source and references):
        raise Missing("needs --bundle, --source and --references")
    try:
        from sacrebleu import corpus_bleu
    except ImportError as error:
        raise Missing("sacrebleu is not installed") from error
    read = Bundle.load(bundle)
    lines, expected = (_lines(Path(file))[:limit] for file in (source, references))
    vocabulary, most = read.source_vocabularies[0], read.manifest.limits.max_source_tokens + 1
    sources = [(ids,) for ids in encode_lines(vocabulary, lines, most)]
    renderer, model = Renderer.of(read), load_bundle_model(read)
    options = renderer.options(replace(read.manifest.decoding, beam_size=beam_size, n_best=1))
    scores, texts = {}, {}
    for name in ("float32", dtype):
        with float32_products("float32"):
            copy = deepcopy(model).to(device, getattr(torch, name))
            hypotheses = _searched(copy, sources, options)
        texts[name] = [renderer.text(one, (), (line,)) for one, line in zip(hypotheses, lines, strict=True)]
        scores[name] = corpus_bleu(texts[name], [expected]).score
    apart = scores[dtype] - scores["float32"]
    same = sum(map(str.__eq__, texts[dtype], texts["float32"])) / len(lines)
    figures = {"bleu": scores, "difference": apart, "same": same, "sentences": len(lines)}
    summary = f"{dtype} {scores[dtype]:.2f} BLEU, float32 {scores['float32']:.2f}, {same:.1%} of {len(lines)} the same"
    return Found(summary, figures, abs(apart) <= _BLEU)


def _searched(model: AnyModel, sources: list[tuple[Any, ...]], options: SearchOptions) -> list[Hypothesis]:
    sizes = sizes_for((8, 64), longest_of(sources), options)
    step = StaticStep(model, beam_size=options.beam_size, sizes=sizes)
    return search(model, sources, on_device(options, step, sources[0]), sizes, step=step)


def _lines(file: Path) -> list[str]:
    raw = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
    return raw.decode().removesuffix("\n").split("\n")
