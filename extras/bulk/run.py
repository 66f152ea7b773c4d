"""A file from its first line to its last, or from where it stopped."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tandem.extras.bulk.output import FileOutput, LineReport, StreamOutput, Tally
from tandem.extras.bulk.pool import Done, RowTranslator, translate_rows
from tandem.extras.bulk.progress import ProgressMeter
from tandem.extras.bulk.sources import InputRow, Source, fingerprint, open_sources, read_rows
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.runtime import check_count
from tandem.models.bundle import MANIFEST, sha256
from tandem.models.errors import ConfigError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Request:
    """Which files, and how to go about them.

    Attributes:
        sources: input, one file for each of the bundle's sources; ``-`` is standard input.
        out: None for standard output.
        report: None for beside the output, or nowhere where that is no file.
        workers: processes that translate.
    """

    sources: tuple[Path, ...] = ()
    out: Path | None = None
    report: Annotated[Path | None, typer.Option(help="Where bad lines are told, as JSON lines. [OUT.report.jsonl]")] = (
        None
    )
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run of this command ended.")] = False
    workers: int = 1
    save_every: Annotated[float, typer.Option(min=0.0, help="Seconds until lines are on disk for good.")] = 10.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of a file.

    Attributes:
        counts: of all lines, those of earlier runs among them.
        before: lines of earlier runs.
        seconds: of this run.
        report: where bad lines are told, if any.
    """

    counts: Tally
    before: int
    seconds: float
    report: Path | None


def translate_files(translator: BulkTranslator, request: Request, translate: RowTranslator = translate_rows) -> Summary:
    """Translate line by line, in order; ``translate`` says where.

    Raises:
        ConfigError, CorpusError, BundleError: input, output, bundle and options are not what they must be.
        WorkerDied: a process is gone; what was translated is kept, as when Stopped.
        Stopped: by a signal.
    """
    started = time.monotonic()
    bundle = translator.open()
    if len(translator.widths) == len(bundle.sources):
        check_count(bundle, request.sources)
    output, report = _outputs(request)
    with ExitStack() as stack:
        stack.callback(report.close)
        stack.callback(output.close)
        sources = open_sources(request.sources, translator.widths)
        for source in sources:
            stack.callback(source.close)
        journal = output.begin(_begun_with(translator, request), resume=request.resume)
        before = output.lines if journal.finished is None else journal.finished
        report.resume(before)
        if journal.finished is None:
            rows = _left(read_rows(sources), before, sources)
            meter = ProgressMeter(_size(sources), before, sum(source.position for source in sources))
            stack.enter_context(stoppable())
            with meter, closing(translate(translator, rows, request.workers)) as blocks:
                for rows_of_block in _write(blocks, output, report, request.save_every):
                    meter.advance(len(rows_of_block), sum(row.span for row in rows_of_block))
            output.finish(report.tally.lines)
    return Summary(report.tally, before, time.monotonic() - started, report.path if report.tally.bad else None)


def _begun_with(translator: BulkTranslator, request: Request) -> dict[str, str]:
    """What the translations depend on, by name."""
    options = asdict(translator.settled)
    for name in ("device", "max_batch_sentences"):  # of as little weight as the processor's make
        del options[name]
    inputs = {f"input {number}": fingerprint(path) for number, path in enumerate(request.sources, 1)}
    bundle = {"bundle": sha256(translator.open().path / MANIFEST)}
    return bundle | {name: json.dumps(value) for name, value in options.items()} | inputs


def _write(
    blocks: Iterable[Done], output: StreamOutput, report: LineReport, save_every: float
) -> Iterator[list[InputRow]]:
    """Write block by block; yields the rows of each."""
    saved = time.monotonic()
    for block, results in blocks:
        report.take(results)
        output.write(b"".join(result.data + b"\n" for result in results))
        sync = time.monotonic() - saved >= save_every
        output.flush(sync=sync)
        saved = time.monotonic() if sync else saved
        yield block


def _left(rows: Iterator[InputRow], done: int, sources: Sequence[Source]) -> Iterator[InputRow]:
    """The rows without those that are done. Raises ConfigError where there are not so many."""
    found = sum(1 for _ in islice(rows, done))
    if found < done:
        names = ", ".join(source.name for source in sources)
        raise ConfigError(
            f"cannot resume: the input {names} has changed: {done:,} lines of it are done, but it has {found:,}"
        )
    return rows


def _size(sources: Sequence[Source]) -> int | None:
    """Bytes of all inputs; None where nobody knows."""
    sizes = [source.size for source in sources if source.size is not None]
    return sum(sizes) if len(sizes) == len(sources) else None


def _outputs(request: Request) -> tuple[StreamOutput, LineReport]:
    """Where lines and findings go. Raises ConfigError where one file would be read and written, or written as two."""
    out, report = _real(request.out), _real(request.report)
    streams = out is None or _is_stream(out)
    files = [] if out is None else [out]
    if out is not None and not streams:
        files, report = [*FileOutput(out).files], report or out.with_name(f"{out.name}.report.jsonl")
    for path in [*files, *([report] if report else [])]:
        for source in request.sources:
            if path.is_file() and source.is_file() and path.samefile(source):
                raise ConfigError(f"{path} is both a source and written to: name another file")
    if report in files:
        raise ConfigError(f"--report must be a file of its own, but {report} is written as another one, too")
    return StreamOutput(out) if out is None or streams else FileOutput(out), LineReport(report)


def _real(path: Path | None) -> Path | None:
    """Behind links: they are kept, and what they lead to (a file, where it is /dev/stdout) is replaced."""
    return path.resolve() if path is not None and path.is_symlink() and not _is_stream(path) else path


def _is_stream(path: Path) -> bool:
    """A device or a named pipe."""
    return path.exists() and not path.is_file()


class Stopped(BaseException):
    """The work was ended from outside: what is written stays, and what was begun is cut off by the run that goes on.

    Like KeyboardInterrupt no Exception: a search that fails is done again sentence by sentence, whatever the error is,
    and that is no answer to a signal.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(f"stopped by {signal.Signals(number).name}")


@contextmanager
def stoppable() -> Iterator[None]:
    """Raises Stopped on the first signal; the second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():  # nobody else may set handlers
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        raise Stopped(number)

    def restore() -> None:
        for other, handler in before.items():
            signal.signal(other, handler)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        restore()
