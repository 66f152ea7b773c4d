"""`tandem bench decode`: how fast batches and single sentences are decoded, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.decoding.contestants import Entrant, entrants
from benchmarks.decoding.passes import Case, MeasuredCase, Workload, against, measure_cases, row_of
from benchmarks.decoding.systems import Opening, Task
from benchmarks.decoding.tables import draw, show
from benchmarks.decoding.tandem import TandemOpening
from benchmarks.options import LARGEST_BATCH, DecodeOptions
from benchmarks.runner import in_own_process
from benchmarks.workload import check_one_text, sample, texts
from deploy.loadtest.server import memory_of
from deploy.records import numbers
from deploy.report import console, environment
from models.bundle import Bundle
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores

__all__ = ["draw", "measure", "show"]


def measure(options: DecodeOptions) -> dict[str, Any]:
    """Everything that is measured: ``environment``, ``settings``, ``rows`` and ``notes``.

    Raises:
        ConfigError: an option is out of bounds, a bundle does not read one text, or a real text has only empty lines.
        CorpusError: files that cannot be read or are not parallel.
    """
    for option, value in (("--references", options.references), ("--ct2-from", options.ct2_from)):
        if value is not None and options.source is None:
            raise ConfigError(f"{option} is for real text: give it with --source FILE")
    sizes = numbers(options.batch_sizes, "--batch-sizes", LARGEST_BATCH)
    bundle = Bundle.load(options.bundle)
    check_one_text(bundle)
    workers = options.workers or usable_cores()
    workloads = _workloads(bundle, options)
    with ExitStack() as stack:
        taking_part, skipped = entrants(bundle, options, workers, stack)
        cases, openings = _cases(taking_part, workloads, sizes, options, workers, stack)
        measured = _measure(cases, options.passes)
        rows = [
            {**row_of(one, options.beam_size), "against": against(one, measured), "bleu": _bleu(one, bundle)}
            for one in measured
        ]
        memory = _memory(cases, openings, workers)
        for row, opening in zip(rows, openings, strict=True):
            row["memory_mb"] = memory[opening] or None
        notes = _rescore(rows, measured, openings, options, workers)
    return {
        "environment": environment(workers),
        "settings": {
            "bundle": bundle.manifest.name,
            "batch_sizes": list(sizes),
            "beam": options.beam_size,
            **{name: getattr(options, name) for name in ("passes", "sentences", "single", "limit")},
            "source": options.source.name if options.source else None,
            "references": options.references.name if options.references else None,
        },
        "rows": [*rows, *skipped],
        "notes": notes,
    }


def _workloads(bundle: Bundle, options: DecodeOptions) -> list[Workload]:
    workloads = [Workload("forced", tuple(texts(bundle.source_vocabularies[0], options.sentences)))]
    if options.source is not None:
        from training.data.corpus import read_parallel

        paths = [options.source, *([options.references] if options.references else [])]
        lines = [row for row in zip(*read_parallel(paths), strict=True) if row[0].strip()][: options.limit]
        if not lines:
            raise ConfigError(f"--source: {options.source} has no line that is not empty")
        columns = list(zip(*lines, strict=True))
        workloads.append(Workload("text", columns[0], columns[1] if options.references else ()))
    return workloads


def _cases(
    taking_part: Sequence[Entrant],
    workloads: Sequence[Workload],
    sizes: Sequence[int],
    options: DecodeOptions,
    workers: int,
    stack: ExitStack,
) -> tuple[list[Case], list[Opening]]:
    """Workload by workload and batch size by batch size, all systems that do it next to each other."""
    opened = [(entrant, entrant.opening.open()) for entrant in taking_part]
    for _, system in opened:
        stack.callback(system.close)
    chosen = [
        (Case.of(system, workload, size, workers=workers, single=options.single), entrant.opening)
        for workload in workloads
        for size in sizes
        for entrant, system in opened
        if workload.kind in entrant.kinds
    ]
    return [case for case, _ in chosen], [opening for _, opening in chosen]


def _measure(cases: Sequence[Case], passes: int) -> list[MeasuredCase]:
    """All cases, with what runs now shown on the terminal."""
    screen = console(error=True)
    if not screen.is_terminal:
        return measure_cases(cases, passes)
    with screen.status("warming up") as status:

        def progress(case: Case, number: int) -> None:
            when = f"pass {number} of {passes}" if number else "warming up"
            status.update(f"{when}: {case.system.label}, {case.workload.kind}, batch {case.batch_size}")

        return measure_cases(cases, passes, progress)


def _bleu(measured: MeasuredCase, bundle: Bundle) -> float | None:
    """Of text with references that was decoded as a whole, where BLEU is the task's measure."""
    work = measured.case.workload
    if not work.references or len(measured.case.indices) < len(work.texts) or bundle.manifest.task == "summarize":
        return None
    from training.metrics import translation_scores

    written = [measured.passes[0].texts[index] for index in range(len(work.texts))]
    return translation_scores(written, work.references)[0].value


def _rescore(
    rows: Sequence[dict[str, Any]],
    measured: Sequence[MeasuredCase],
    openings: Sequence[Opening],
    options: DecodeOptions,
    workers: int,
) -> list[str]:
    """Note in the rows what the float32 model says of Tandem's output at the largest batch size. Returns notes."""
    if not options.rescore:
        return []
    try:
        from benchmarks.decoding.rescoring import Searched, rescored
    except ModuleNotFoundError as error:
        return [f"not rescored: the package {error.name!r} is not installed"]
    largest = max(one.case.batch_size for one in measured)
    for row, one, opening in zip(rows, measured, openings, strict=True):
        case = one.case
        if not isinstance(opening, TandemOpening) or case.batch_size != largest:
            continue
        bundle = Bundle.load(opening.path)
        targets = {place: batch.target for batch in case.batches for place in batch.indices}
        ids = case.system.tokenise([case.workload.texts[place] for place in case.indices])
        chosen = sample([len(source) for source in ids], options.rescore)
        places = [case.indices[index] for index in chosen]
        searched = [
            Searched(ids[index], targets[place], one.passes[0].hypotheses[place])
            for index, place in zip(chosen, places, strict=True)
        ]
        row["rescored"] = rescored(bundle, searched, opening.search(bundle), workers)
    return []


def _memory(cases: Sequence[Case], openings: Sequence[Opening], workers: int) -> dict[Opening, dict[str, float]]:
    """Of each system, measured once at its largest batches."""
    memory: dict[Opening, dict[str, float]] = {}
    for case, opening in sorted(zip(cases, openings, strict=True), key=lambda pair: -pair[0].batch_size):
        if opening not in memory:
            largest = case.largest(2 * workers)
            batches = [[case.workload.texts[index] for index in batch.indices] for batch in largest]
            memory[opening] = in_own_process(measure_memory, opening, batches, [batch.target for batch in largest])
    return memory


def measure_memory(opening: Opening, texts: Sequence[Sequence[str]], targets: Sequence[int | None]) -> dict[str, float]:
    """Megabytes (10^6 bytes) of this process resident after loading, and the most after decoding some batches.

    Args:
        opening: how to load the system.
        texts: of every batch.
        targets: tokens that each batch decodes, as :class:`benchmarks.decoding.systems.Task` has them.

    Returns:
        ``loaded`` and ``peak``; empty where the system does not tell (anything but Linux).
    """
    if not memory_of():
        return {}
    system = opening.open()
    loaded = memory_of()["rss_mb"]
    system.decode([Task(tuple(system.tokenise(batch)), target) for batch, target in zip(texts, targets, strict=True)])
    system.close()
    return {"loaded": round(loaded, 1), "peak": round(memory_of()["peak_mb"], 1)}
