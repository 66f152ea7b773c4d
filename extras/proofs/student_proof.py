"""`tandem bench students`: whether an imported student writes what its publisher's engine does, and what that takes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tandem.extras.importing.model import Asked
from tandem.extras.proofs.alone import import_alone
from tandem.extras.proofs.options import StudentsOptions
from tandem.extras.shared.report import environment, in_own_process, say, show_environment
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import Graphs, translate_batch
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.translation.translator import encode_lines
from tandem.service.runtimes.onnx import OnnxGraphs
from tandem.training.data.corpus import read_lines
from tandem.training.quality.metrics import corpus_metrics

EQUAL = 0.99  # the least share of lines that must be the engine's


def measure(options: StudentsOptions) -> dict[str, Any]:
    """Import in a process of its own, then translate in float32 and in 8 bits, on one thread.

    Raises:
        ConfigError: files that are not parallel, or languages that are no pair.
        ForeignModelError: the folder has no student in 8 bits, or one that cannot be imported.
    """
    source, _, target = options.pair.partition("-")
    columns = [read_lines(path) for path in (options.text, options.engine, options.references) if path is not None]
    if len({len(column) for column in columns}) != 1 or not (source and target):
        sizes = [len(column) for column in columns]
        raise ConfigError(
            f"--text, --engine and --references must be parallel and --pair like en-pt, but have {sizes} lines and"
            f" {options.pair!r}"
        )
    with tempfile.TemporaryDirectory(prefix="tandem-students-") as temporary:
        out = Path(temporary) / options.pair
        row = in_own_process(import_alone, options.model, out, Asked((source,), (target,)))
        bundle = Bundle.load(out)
        texts = {"engine": columns[1]}
        for name, graphs in (
            ("float32", TorchGraphs(load_bundle_model(bundle))),
            ("8 bits", OnnxGraphs(bundle, "int8", threads=1)),
        ):
            texts[name] = _translated(bundle, graphs, columns[0])
    equal = {name: sum(map(str.__eq__, own, columns[1])) for name, own in texts.items()}
    scores = {name: _scores(own, columns[2], target) if len(columns) > 2 else {} for name, own in texts.items()}
    found = {
        "lines": len(columns[0]),
        "equal": equal,
        "scores": scores,
        "met": equal["float32"] >= EQUAL * len(columns[0]),
    }
    return {"environment": environment(1), "pair": options.pair, **row, **found}


def show(result: Mapping[str, Any]) -> None:
    """The table of docs/import.md."""
    say(show_environment(result["environment"]), "", *markdown(result))


def markdown(result: Mapping[str, Any]) -> list[str]:
    """A line for every engine."""
    lines = ["| pair | engine | lines as the publisher's | BLEU | chrF |", "|---|---|--:|--:|--:|"]
    for name, equal in result["equal"].items():
        scores = [f"{value:.2f}" for value in result["scores"][name].values()] or ["", ""]
        lines.append(f"| {result['pair']} | {name} | {equal} of {result['lines']} | {' | '.join(scores)} |")
    lines.append("")
    lines.append(f"Imported in {result['seconds']:.1f} s with {result['mb']:.0f} MB of memory, without PyTorch.")
    return lines


def _translated(bundle: Bundle, graphs: Graphs, lines: Sequence[str]) -> list[str]:
    """Greedily over the shortlist, which is how the publisher's engine decodes."""
    vocabulary, limits = bundle.source_vocabularies[0], bundle.manifest.limits
    sources = [(ids,) for ids in encode_lines(vocabulary, lines, limits.max_source_tokens + 1)]
    options = replace(bundle.manifest.decoding, beam_size=1)
    found = translate_batch(graphs, sources, options, shortlist=bundle.shortlist)
    return [bundle.target_vocabulary.decode(hypotheses[0].tokens) for hypotheses in found]


def _scores(lines: Sequence[str], references: Sequence[str], target: str) -> dict[str, float]:
    metrics = corpus_metrics("translate", target)
    return {name: metrics[name].corpus_score(lines, [references]).score for name in ("BLEU", "chrF")}
