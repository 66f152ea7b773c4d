"""`tandem bench fidelity`: what holding translations against their sources gives and costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tandem.extras.fidelity.checks import find_faults
from tandem.extras.fidelity.options import FidelityOptions
from tandem.extras.shared.report import environment, say, show_environment
from tandem.local import LocalLimits, LocalService
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.bundles.loading import OpenBundle
from tandem.service.ports import stage_readers
from tandem.service.runtimes import Placement
from tandem.service.text.languages import base_code
from tandem.service.text.masking import Masked
from tandem.service.text.protect import always_kept
from tandem.service.translation.requests import TranslateTask
from tandem.training.data.corpus import read_lines

_TURNS = 3
_COUNTED = ("faults", "steps", "milliseconds")
WAYS = {"without": False, "with": True}


def measure(options: FidelityOptions) -> dict[str, Any]:
    """Every line with it and without it, by turns.

    Raises:
        ConfigError: the pair is none, there are no lines, or the references are not as many.
    """
    source, _, target = options.pair.partition("-")
    every = read_lines(options.text)
    references = None if options.references is None else read_lines(options.references)
    if not (source and target and every) or (references is not None and len(references) != len(every)):
        found = f"{options.pair!r}, {len(every)} and {'none' if references is None else len(references)}"
        raise ConfigError(
            f"--pair must be like de-en, and --references have a line for each of --text; but are {found}"
        )
    chosen = range(0, len(every), max(1, len(every) // options.lines))[: options.lines]
    lines = [every[number] for number in chosen]
    runs = _by_turns(options, lines, source, target)
    rows: dict[str, dict[str, float]] = {
        way: {
            "faults": sum(map(bool, (_faults(*pair, target) for pair in zip(lines, run.texts, strict=True)))),
            "steps": run.steps,
            "milliseconds": 1000 * min(run.seconds) / len(lines),
        }
        for way, run in runs.items()
    }
    if references is not None:
        for way, run in runs.items():
            rows[way] |= _scores(run.texts, [references[number] for number in chosen], target)
    changed = sum(one != other for one, other in zip(*(run.texts for run in runs.values()), strict=True))
    return {
        "environment": environment(1), "pair": options.pair, "lines": len(lines), "changed": changed, "ways": rows
    }  # fmt: skip


def show(result: Mapping[str, Any]) -> None:
    """A line for each way."""
    say(show_environment(result["environment"]), "", *markdown(result))


def markdown(result: Mapping[str, Any]) -> list[str]:
    """The table, and how many lines differ."""
    ways = result["ways"]
    scores = [name for name in ways["with"] if name not in _COUNTED]
    lines = [
        f"| {result['pair']}, {result['lines']} lines | at fault | steps of sentences | ms of a processor |"
        + "".join(f" {name} |" for name in scores),
        "|---|" + "--:|" * (len(_COUNTED) + len(scores)),
    ]
    for way, row in ways.items():
        numbers = "".join(f" {row[name]:.2f} |" for name in scores)
        lines.append(f"| {way} | {row['faults']} | {row['steps']} | {row['milliseconds']:.1f} |{numbers}")
    return [*lines, "", f"{result['changed']} lines differ."]


@dataclass(slots=True)
class _Run:
    """What one way writes, the steps of hypotheses' sentences that it takes, and the processor's seconds a turn."""

    texts: list[str] = field(default_factory=list)
    steps: int = 0
    seconds: list[float] = field(default_factory=list)


def _by_turns(options: FidelityOptions, lines: Sequence[str], source: str, target: str) -> dict[str, _Run]:
    bundle = Bundle.load(options.bundle, readers=stage_readers())
    opened = [OpenBundle.of(bundle, "onnx", "int8", 1, Placement("cpu"))]
    runs = {way: _Run() for way in WAYS}
    with ExitStack() as services:
        by_way = {
            way: services.enter_context(LocalService(opened, LocalLimits(fidelity=checked), shortlist=True))
            for way, checked in WAYS.items()
        }
        for _ in range(_TURNS):
            for way, service in by_way.items():
                begun = time.process_time()
                tasks = (TranslateTask(q=line, source=source, target=target) for line in lines)
                runs[way].texts = [service.translate(task).texts[0].text for task in tasks]
                runs[way].seconds.append(time.process_time() - begun)
                runs[way].steps = service.engine.dispatcher.counters.sentence_steps // len(runs[way].seconds)
    return runs


def _faults(source: str, written: str, language: str) -> tuple[str, ...]:
    masked = Masked.of(source).hide(always_kept(source, names=True))
    return find_faults(masked, written, sent=source, language=base_code(language))


def _scores(texts: Sequence[str], references: Sequence[str], language: str) -> dict[str, float]:
    from tandem.training.quality.metrics import corpus_metrics

    metrics = corpus_metrics("translate", language)
    return {name: metric.corpus_score([*texts], [[*references]]).score for name, metric in metrics.items()}
