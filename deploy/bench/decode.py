"""`tandem bench decode`: how fast batches and single sentences are decoded, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from deploy.bench.entrants import Entrant, entrants
from deploy.bench.measure import Case, Measured, Work, measure
from deploy.bench.memory import measure_memory
from deploy.bench.options import DecodeOptions
from deploy.bench.report import Output, console
from deploy.bench.rows import Row, against, row_of
from deploy.bench.statistics import environment
from deploy.bench.systems import Opening
from deploy.bench.tables import draw, show
from deploy.bench.tandem import TandemOpening, check_one_text
from deploy.bench.workload import sample, texts
from models.bundle import Bundle
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores


def decode_command(options: DecodeOptions, output: Output) -> None:
    """Measure, then print tables or JSON, write the JSON and draw curves where asked."""
    output.check()
    result = run_decode(options)
    output.write(result)
    if not output.as_json:
        show(result)
    if output.plot is not None:
        for path in draw(result["rows"], output.plot):
            console(error=True).print(str(path), highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A case, and how its system was loaded."""

    case: Case
    opening: Opening


def run_decode(options: DecodeOptions) -> dict[str, Any]:
    """Everything that is measured: ``environment``, ``settings``, ``rows`` and ``notes``.

    Raises:
        ConfigError: a bundle that does not read one text, or a real text without a line that is not empty.
        CorpusError: files that cannot be read or are not parallel.
    """
    bundle = Bundle.load(options.bundle)
    check_one_text(bundle)
    workers = options.workers or usable_cores()
    works = _works(bundle, options)
    with ExitStack() as stack:
        taking_part, skipped = entrants(bundle, options, workers, stack)
        entries = _entries(taking_part, works, options, workers, stack)
        measured = _measure([entry.case for entry in entries], options.passes)
        rows = [
            replace(row_of(one, options.beam_size), against=against(one, measured), bleu=_bleu(one, bundle))
            for one in measured
        ]
        rows, notes = _rescored(rows, measured, entries, options, workers)
        rows = _with_memory(rows, entries, workers)
    return {
        "environment": environment(workers),
        "settings": _settings(bundle, options),
        "rows": [row.mapping() for row in (*rows, *skipped)],
        "notes": notes,
    }


def _works(bundle: Bundle, options: DecodeOptions) -> list[Work]:
    works = [Work("forced", tuple(texts(bundle.source_vocabularies[0], options.sentences)))]
    text = options.text
    if text.source is not None:
        from training.data.corpus import read_parallel

        paths = [text.source, *([text.references] if text.references else [])]
        lines = [row for row in zip(*read_parallel(paths), strict=True) if row[0].strip()][: text.limit]
        if not lines:
            raise ConfigError(f"--source: {text.source} has no line that is not empty")
        columns = list(zip(*lines, strict=True))
        works.append(Work("text", columns[0], columns[1] if text.references else ()))
    return works


def _entries(
    taking_part: Sequence[Entrant], works: Sequence[Work], options: DecodeOptions, workers: int, stack: ExitStack
) -> list[Entry]:
    """Work by work and batch size by batch size, all systems that do it next to each other."""
    opened = [(entrant, entrant.opening.open()) for entrant in taking_part]
    for _, system in opened:
        stack.callback(system.close)
    return [
        Entry(Case.of(system, work, size, workers=workers, single=options.single), entrant.opening)
        for work in works
        for size in options.batch_sizes
        for entrant, system in opened
        if work.name in entrant.works
    ]


def _measure(cases: Sequence[Case], passes: int) -> list[Measured]:
    """All cases, with what runs now shown on the terminal."""
    shown = console(error=True)
    if not shown.is_terminal:
        return measure(cases, passes)
    with shown.status("warming up") as status:

        def progress(case: Case, number: int) -> None:
            when = f"pass {number} of {passes}" if number else "warming up"
            status.update(f"{when}: {case.system.label}, {case.work.name}, batch {case.batch_size}")

        return measure(cases, passes, progress)


def _bleu(measured: Measured, bundle: Bundle) -> float | None:
    """Of text with references that was decoded as a whole, where BLEU is the task's measure."""
    work = measured.case.work
    if not work.references or len(measured.case.indices) < len(work.texts) or bundle.manifest.task == "summarize":
        return None
    from training.metrics import translation_scores

    written = [measured.output.texts[index] for index in range(len(work.texts))]
    return translation_scores(written, work.references)[0].value


def _rescored(
    rows: Sequence[Row], measured: Sequence[Measured], entries: Sequence[Entry], options: DecodeOptions, workers: int
) -> tuple[list[Row], list[str]]:
    """The rows with what the float32 model says of Tandem's output at the largest batch size, and notes."""
    if not options.rescore:
        return list(rows), []
    try:
        from deploy.bench.rescoring import Found, rescored
    except ModuleNotFoundError as error:
        return list(rows), [f"not rescored: the package {error.name!r} is not installed"]
    done = list(rows)
    for index, (one, entry) in enumerate(zip(measured, entries, strict=True)):
        if not isinstance(entry.opening, TandemOpening) or one.case.batch_size != max(options.batch_sizes):
            continue
        bundle = Bundle.load(entry.opening.path)
        targets = {place: batch.target for batch in one.case.batches for place in batch.indices}
        indices = one.case.indices
        ids = one.case.system.tokenise([one.case.work.texts[place] for place in indices])
        chosen = sample([len(source) for source in ids], options.rescore)
        found = [Found(ids[i], targets[indices[i]], one.output.hypotheses[indices[i]]) for i in chosen]
        quality = rescored(bundle, found, entry.opening.search(bundle), workers)
        done[index] = replace(done[index], rescored=quality)
    return done, []


def _with_memory(rows: Sequence[Row], entries: Sequence[Entry], workers: int) -> list[Row]:
    """The rows with the memory of their system, measured once for each at its largest batches."""
    found: dict[Opening, dict[str, float]] = {}
    for entry in sorted(entries, key=lambda one: -one.case.batch_size):
        if entry.opening not in found:
            largest = entry.case.largest(2 * workers)
            given = [[entry.case.work.texts[index] for index in batch.indices] for batch in largest]
            found[entry.opening] = measure_memory(entry.opening, given, [batch.target for batch in largest])
    return [replace(row, memory_mb=found[entry.opening] or None) for row, entry in zip(rows, entries, strict=True)]


def _settings(bundle: Bundle, options: DecodeOptions) -> dict[str, Any]:
    text = options.text
    return {
        "bundle": bundle.manifest.name,
        "batch_sizes": list(options.batch_sizes),
        "beam": options.beam_size,
        "passes": options.passes,
        "sentences": options.sentences,
        "single": options.single,
        "source": text.source.name if text.source else None,
        "references": text.references.name if text.references else None,
        "limit": text.limit,
    }
