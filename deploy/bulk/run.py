"""A file from its first line to its last, or from where it stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.bulk.destination import Destination, FileDestination, StreamDestination
from deploy.bulk.journal import BEGIN_AGAIN, Counts, InputMark, Journal, as_text, fingerprint, new_hash
from deploy.bulk.pool import Done, Pool, WorkerDied
from deploy.bulk.progress import Meter
from deploy.bulk.records import Record
from deploy.bulk.sources import Oversize, Row, Source, chunks_of, open_sources, read_rows
from deploy.bulk.stopping import Stopped, Stopper
from deploy.bulk.translator import BulkTranslator
from models.bundle import Bundle
from models.errors import ConfigError, CorpusError


@dataclass(frozen=True, slots=True)
class Request:
    """Which files, and how to go about them.

    Attributes:
        sources: input, one file for each of the bundle's sources; ``-`` is standard input.
        out: None for standard output.
        report: where bad lines are told; None for beside the output, or nowhere where that is no file.
        resume: go on where an earlier run stopped.
        workers: processes that translate.
        save_every: seconds of work that a sudden end may cost, beside the lines that are being translated.
        max_line_bytes: longer lines are not translated.
    """

    sources: tuple[Path, ...]
    out: Path | None = None
    report: Path | None = None
    resume: bool = False
    workers: int = 1
    save_every: float = 10.0
    max_line_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of a file.

    Attributes:
        counts: of all lines, those of earlier runs among them.
        before: lines of earlier runs.
        seconds: of this run.
        report: where bad lines are told, if any.
    """

    counts: Counts
    before: int
    seconds: float
    report: Path | None


def translate_files(translator: BulkTranslator, request: Request) -> Summary:
    """Translate line by line, in order.

    Raises:
        ConfigError, CorpusError, BundleError: input, output, bundle and options are not what they must be.
        WorkerDied: a process is gone; what was translated is kept, as when Stopped.
        Stopped: by a signal.
    """
    bundle = translator.open()
    if len(translator.widths) == len(bundle.sources):
        check_count(bundle, request.sources)
    _check_names(request)
    with ExitStack() as stack:
        sources = open_sources(request.sources, translator.widths, request.max_line_bytes)
        for source in sources:
            stack.callback(source.close)
        options = as_text(translator.settled.mapping() | {"max_line_bytes": request.max_line_bytes})
        inputs = tuple(InputMark(source.name, source.size, digest=new_hash().hexdigest()) for source in sources)
        destination = _destination(request)
        stack.callback(destination.close)
        begun = destination.begin(Journal(fingerprint(bundle), options, inputs), resume=request.resume)
        kept = None if translator.options.bad == "empty" else translator.kept
        run = _Run(sources, destination, begun, kept)
        if begun.state != "finished":
            run.translate(translator, request)
        elif None not in (source.size for source in sources):  # a pipe need not be filled again for that
            run.skip()
        report = destination.report if run.bad else None
        return Summary(run.counts, begun.counts.lines, run.seconds, report)


class _Run:
    """The books of a file that is being translated."""

    def __init__(self, sources: Sequence[Source], destination: Destination, begun: Journal, kept: int | None) -> None:
        self._sources, self._destination, self._begun, self._kept = sources, destination, begun, kept
        self._hashes = [new_hash() for _ in sources]
        self._done = [mark.done for mark in begun.inputs]
        self._lines, self.bad = begun.counts.lines, begun.counts.bad
        self._reasons = Counter(begun.counts.reasons)
        self._started = time.monotonic()

    @property
    def counts(self) -> Counts:
        return Counts(self._lines, self.bad, dict(self._reasons))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def journal(self) -> Journal:
        marks = zip(self._begun.inputs, self._done, self._hashes, strict=True)
        inputs = tuple(replace(mark, done=done, digest=own.hexdigest()) for mark, done, own in marks)
        seconds = round(self._begun.seconds + self.seconds, 1)
        return replace(self._begun, inputs=inputs, counts=self.counts, seconds=seconds)

    def translate(self, translator: BulkTranslator, request: Request) -> None:
        """All that is left."""
        self.skip()
        sizes = [source.size for source in self._sources]
        size = None if None in sizes else sum(one or 0 for one in sizes)
        meter = Meter(size, self._lines, sum(source.position for source in self._sources))
        saved = time.monotonic()

        def tick(rows: Sequence[Row]) -> None:
            meter.advance(len(rows), sum(row.span for row in rows))

        with Stopper() as stopper, meter, Pool(translator, request.workers) as pool, self._committing():
            for window in pool.windows(read_rows(self._sources), tick):
                with stopper.hold():
                    self._take(window)
                    if time.monotonic() - saved >= request.save_every:
                        self._destination.commit(self.journal)
                        saved = time.monotonic()
        self._destination.finish(self.journal)

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Keep what is done when the work ends early; none of these is raised while a window is half written."""
        try:
            yield
        except (Stopped, CorpusError, WorkerDied):
            self._destination.commit(self.journal)
            raise

    def skip(self) -> None:
        """Read what is done already. Raises ConfigError where it is not what it was."""
        for source, mark, own in zip(self._sources, self._begun.inputs, self._hashes, strict=True):
            found = 0
            for chunk in source.skip(mark.done):
                own.update(chunk)
                found += len(chunk)
            if (found, own.hexdigest()) != (mark.done, mark.digest):
                raise ConfigError(
                    f"cannot resume: the input {source.name} has changed in its first {mark.done} bytes, which are"
                    f" done. {BEGIN_AGAIN}"
                )

    def _take(self, window: Done) -> None:
        for row, record in window:
            self._write(row, record)
            self._lines += 1
            for finding in record.findings:
                self._reasons[finding.reason] += 1
            if record.bad:
                self.bad += 1
                self._destination.tell(self._lines, record)
            for index, cell in enumerate(row.cells):
                for chunk in chunks_of(cell):
                    self._hashes[index].update(chunk)
                    self._done[index] += len(chunk)
                if isinstance(cell, Oversize):
                    cell.file.close()

    def _write(self, row: Row, record: Record) -> None:
        if row.fault is None or self._kept is None:
            self._destination.write(record.data + b"\n")
            return
        last = b""
        for last in chunks_of(row.cells[self._kept]):  # longer than memory: as it is
            self._destination.write(last)
        if not last.endswith(b"\n"):
            self._destination.write(b"\n")


def check_count(bundle: Bundle, sources: Sequence[Path]) -> None:
    """Raises CorpusError where there is not one file for each of the bundle's sources."""
    if len(sources) != len(bundle.sources):
        raise CorpusError(f"{bundle.path} has {len(bundle.sources)} sources, but {len(sources)} are given")


def _check_names(request: Request) -> None:
    """Raises ConfigError where one file would be read and written, or written as two."""
    out, report = _real(request.out), _real(request.report)
    files = [path for path in (out, report) if path is not None]
    if out is not None and not _is_stream(out):
        destination = FileDestination(out, report)
        files = [out, destination.part, destination.journal, *([destination.report] if destination.report else [])]
    for path in files:
        for source in request.sources:
            if path.is_file() and source.is_file() and path.samefile(source):
                raise ConfigError(f"{path} is both a source and written to: name another file")
    if report is not None and files.count(report) > 1:
        raise ConfigError(f"--report must be a file of its own, but {report} is written as another one, too")


def _destination(request: Request) -> Destination:
    out, report = _real(request.out), _real(request.report)
    if out is None or _is_stream(out):
        return StreamDestination(out, report)
    return FileDestination(out, report)


def _real(path: Path | None) -> Path | None:
    """Behind links: they are kept, and what they lead to (a file, where it is /dev/stdout) is replaced."""
    return path.resolve() if path is not None and path.is_symlink() and not _is_stream(path) else path


def _is_stream(path: Path) -> bool:
    """A device or a named pipe."""
    return path.exists() and not path.is_file()
