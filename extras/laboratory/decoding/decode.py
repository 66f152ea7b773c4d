"""`tandem bench decode`: how fast batches and single sentences are decoded, beside what a user would pick instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tandem.extras.laboratory.decoding.passes import Case, Kind, MeasuredCase, Workload, against, measure_cases, row_of
from tandem.extras.laboratory.decoding.systems import TANDEM, DecodingSystem, Label, Task
from tandem.extras.laboratory.decoding.tandem import SHORTLIST_GRAPH, Tandem
from tandem.extras.laboratory.options import LARGEST_BATCH, PEERS, DecodeOptions
from tandem.extras.laboratory.workload import check_one_text, texts
from tandem.extras.loadtest.server import memory_of
from tandem.extras.shared.report import (
    console,
    environment,
    in_own_process,
    names,
    numbers,
    say,
    show_environment,
    table,
)
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.runtimes.sessions import native_operators
from tandem.service.telemetry.cgroups import usable_cores

_TITLES = {
    "forced": "Forced lengths: every batch decodes its mean source length",
    "text": "Real text: sentences stop by themselves",
}
_COLUMNS = {
    "name": "system",
    "batch": "batch",
    "threads": "threads",
    "sentences": "sentences",
    "target_tokens": "target tokens",
    "sentences_per_s": "sentences/s",
    "spread": "± IQR",
    "tokens_per_s": "tokens/s",
    "decode_sentences_per_s": "decoding alone",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "bleu": "BLEU",
    "loaded": "MB loaded",
    "peak": "MB peak",
}


@dataclass(frozen=True, slots=True, eq=False)
class Entrant:
    """A system that takes part.

    Attributes:
        label: of its rows.
        open: loads it; plain data behind it, so that another process can load it as well.
        kinds: of workload that it does.
    """

    label: Label
    open: Callable[[], DecodingSystem]
    kinds: tuple[Kind, ...]


def entrants(
    bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack
) -> tuple[list[Entrant], dict[str, str]]:
    """Those that take part, and why a peer does not.

    Args:
        bundle: Tandem's.
        options: of the benchmark.
        workers: threads of each system.
        stack: keeps the peers' models on disk for as long as it is open.

    Raises:
        ConfigError: a peer that nobody knows, or a shortlist that the bundle does not have; ``ct2_from`` names a bundle
            that is not a Transformer with one source.
    """
    kinds: tuple[Kind, ...] = ("forced", "text") if options.source else ("forced",)
    taking_part, left_out = list(_tandem(bundle, options, workers, kinds)), dict[str, str]()
    if names(options.peers, "--peers", PEERS):
        if find_spec("ctranslate2") is None:
            left_out["ctranslate2"] = "not installed: install tandem with its extra [bench]"
        else:
            taking_part += _ctranslate2(bundle, bundle if options.random else None, options, workers, stack, "forced")
            if options.source and options.ct2_from:
                taking_part += _trained(bundle, options.ct2_from, options, workers, stack)
            elif options.source:
                left_out["ctranslate2, text"] = "real text needs a trained model: --ct2-from BUNDLE"
    return taking_part, left_out


def _tandem(bundle: Bundle, options: DecodeOptions, workers: int, kinds: tuple[Kind, ...]) -> Iterator[Entrant]:
    """With the whole vocabulary, and with the shortlist where that is asked for or simply there.

    Each as it is, and with our own operators where they are built.
    """
    for shortlist in _lists(bundle, options):
        for native in (False, True) if native_operators() else (False,):
            label = Label(TANDEM, bundle.manifest.name, options.precision, shortlist, native)
            yield Entrant(label, partial(Tandem.open, label, bundle.path, options.beam_size, workers), kinds)


def _lists(bundle: Bundle, options: DecodeOptions) -> tuple[bool, ...]:
    """Without a bundle's shortlist, and with it where that is asked for or simply there."""
    has = bundle.shortlist is not None and SHORTLIST_GRAPH in bundle.graph_specs(options.precision)
    return (False, True) if options.shortlist or (options.shortlist is None and has) else (False,)


def _trained(bundle: Bundle, path: Path, options: DecodeOptions, workers: int, stack: ExitStack) -> Iterator[Entrant]:
    """CTranslate2 with our trained Transformer, and Tandem with the same bundle beside it."""
    trained = Bundle.load(path)
    check_one_text(trained)
    if trained.path.resolve() != bundle.path.resolve():
        yield from _tandem(trained, replace(options, shortlist=False), workers, ("text",))
    yield from _ctranslate2(trained, trained, options, workers, stack, "text")


def _ctranslate2(
    bundle: Bundle, same: Bundle | None, options: DecodeOptions, workers: int, stack: ExitStack, kind: Kind
) -> Iterator[Entrant]:
    """With the same weights as a bundle, else with random ones, behind a bundle's vocabularies."""
    from tandem.extras.laboratory.decoding import conversion
    from tandem.extras.laboratory.decoding.ctranslate2 import Ct2
    from tandem.extras.laboratory.workload import TransformerSize

    size, types = TransformerSize(), options.peer_vocabulary
    random = f"random Transformer {size.layers}+{size.layers}, d={size.width}, f={size.hidden}, V={types}"
    for precision in names(options.peer_precisions, "--peer-precisions", ("int8", "float32")):
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
        if same is None:
            pieces = (conversion.random_tokens(types),) * 2
            conversion.write_random(folder, size, types, precision)
        else:
            pieces = (conversion.pieces(same.source_vocabularies[0]), conversion.pieces(same.target_vocabulary))
            conversion.write_bundle_model(folder, same, precision)
        for shortlist in _lists(same, options) if same is not None and same.shortlist is not None else (False,):
            label = Label("ctranslate2", random if same is None else same.manifest.name, precision, shortlist)
            opening = partial(Ct2, label, folder, pieces, bundle.path, options.beam_size, workers)
            yield Entrant(label, opening, (kind,))


def measure(options: DecodeOptions) -> dict[str, Any]:
    """Everything that is measured: ``environment``, ``settings``, ``rows`` and ``left_out``.

    Raises:
        ConfigError: an option is out of bounds, a bundle does not read one text, or a real text has only empty lines.
        CorpusError: files that cannot be read or are not parallel.
    """
    for option, value in (("--references", options.references), ("--ct2-from", options.ct2_from)):
        if value is not None and options.source is None:
            raise ConfigError(f"{option} is for real text: give it with --source FILE")
    sizes = numbers(options.batch_sizes, "--batch-sizes", LARGEST_BATCH)
    workers = options.workers or usable_cores()
    with ExitStack() as stack:
        bundle = _bundle(options, stack)
        workloads = _workloads(bundle, options)
        taking_part, left_out = entrants(bundle, options, workers, stack)
        opened = [(entrant, entrant.open()) for entrant in taking_part]
        for _, system in opened:
            stack.callback(system.close)
        # Workload by workload and batch size by batch size, all systems that do it next to each other.
        entered = [
            (entrant, Case.of(system, workload, size, workers=workers, single=options.single))
            for workload in workloads
            for size in sizes
            for entrant, system in opened
            if workload.kind in entrant.kinds
        ]
        measured = _measure([case for _, case in entered], options.passes)
        memory = _memory(entered, workers)
        rows = [
            {
                **row_of(one, options.beam_size),
                "against": against(one, measured),
                "bleu": _bleu(one, bundle),
                "memory_mb": memory[entrant] or None,
            }
            for (entrant, _), one in zip(entered, measured, strict=True)
        ]
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
        "rows": rows,
        "left_out": left_out,
    }


def _bundle(options: DecodeOptions, stack: ExitStack) -> Bundle:
    """What is measured: a bundle, or random weights on disk for as long as ``stack`` is open."""
    if (options.bundle is None) is (options.random == ""):
        raise ConfigError("name what is measured: --bundle FOLDER, or --random SHAPE")
    if options.bundle is not None:
        bundle = Bundle.load(options.bundle)
        check_one_text(bundle)
        return bundle
    from tandem.extras.laboratory.decoding.random_bundle import SHAPES, write_random_bundle

    if options.random not in SHAPES:
        raise ConfigError(f"--random must be one of {', '.join(SHAPES)}, but is {options.random!r}")
    if options.source is not None:
        raise ConfigError("--random says nothing of real text: leave out --source")
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
    return write_random_bundle(folder / "random", options.random, options.vocabulary, listed=bool(options.shortlist))


def _workloads(bundle: Bundle, options: DecodeOptions) -> list[Workload]:
    workloads = [Workload("forced", tuple(texts(bundle.source_vocabularies[0], options.sentences)))]
    if options.source is not None:
        from tandem.training.data.corpus import read_parallel

        paths = [options.source, *([options.references] if options.references else [])]
        lines = [row for row in zip(*read_parallel(paths), strict=True) if row[0].strip()][: options.limit]
        if not lines:
            raise ConfigError(f"--source: {options.source} has no line that is not empty")
        columns = list(zip(*lines, strict=True))
        workloads.append(Workload("text", columns[0], columns[1] if options.references else ()))
    return workloads


def _measure(cases: Sequence[Case], passes: int) -> list[MeasuredCase]:
    """All cases, with what runs now shown on the terminal."""
    screen = console(error=True)
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
    from tandem.training.quality.metrics import task_scores

    written = [measured.passes[0].texts[index] for index in range(len(work.texts))]
    return task_scores("translate", bundle.manifest.target_language, written, work.references)[0].value


def _memory(entered: Sequence[tuple[Entrant, Case]], workers: int) -> dict[Entrant, dict[str, float]]:
    """Of each system, measured once at its largest batches."""
    memory: dict[Entrant, dict[str, float]] = {}
    for entrant, case in sorted(entered, key=lambda pair: -pair[1].batch_size):
        if entrant not in memory:
            largest = case.largest(2 * workers)
            batches = [[case.workload.texts[index] for index in batch.indices] for batch in largest]
            memory[entrant] = in_own_process(measure_memory, entrant.open, batches, [batch.target for batch in largest])
    return memory


def measure_memory(
    open_system: Callable[[], DecodingSystem], texts: Sequence[Sequence[str]], targets: Sequence[int | None]
) -> dict[str, float]:
    """Megabytes (10^6 bytes) of this process resident after loading, and the most after decoding some batches.

    Args:
        open_system: loads the system.
        texts: of every batch.
        targets: tokens that each batch decodes, as :class:`extras.laboratory.decoding.systems.Task` has them.

    Returns:
        ``loaded`` and ``peak``; empty where the system does not tell (anything but Linux).
    """
    if not memory_of():
        return {}
    system = open_system()
    loaded = memory_of()["rss_mb"]
    system.decode([Task(tuple(system.tokenise(batch)), target) for batch, target in zip(texts, targets, strict=True)])
    system.close()
    return {"loaded": round(loaded, 1), "peak": round(memory_of()["peak_mb"], 1)}


def show(result: Mapping[str, Any]) -> None:
    """Print the environment, and a table for each kind of work."""
    screen, settings, rows = console(), result["settings"], result["rows"]
    say(show_environment(result["environment"]))
    for work, title in _TITLES.items():
        own = [
            {**row, **(row["memory_mb"] or {}), **(row["against"] or {}), "name": name_of(row)}
            for row in rows
            if row["workload"] == work
        ]
        if own:
            ratios = {name: f"times {name}" for row in own for name in row["against"] or ()}
            heading = f"{title}; beam {settings['beam']}, medians of {settings['passes']} passes"
            screen.print(table(heading, _COLUMNS | ratios, own))
    say(*dict.fromkeys(f"{_system(row)}: {row['model']}" for row in rows))
    say(*(f"{name}: {reason}" for name, reason in result["left_out"].items()))


def name_of(row: Mapping[str, Any]) -> str:
    """What a row is called: of real text with its model, since there the systems' models differ."""
    return f"{_system(row)}, {row['model']}" if row["workload"] == "text" else _system(row)


def _system(row: Mapping[str, Any]) -> str:
    return str(Label(row["system"], row["model"], row["precision"], row["shortlist"], row["native"]))
