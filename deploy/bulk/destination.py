"""Output, report and journal of a file together: what was committed is never done again, and nothing else is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from deploy.bulk.journal import BEGIN_AGAIN, Journal
from deploy.bulk.output import FileOutput, Output, StreamOutput
from deploy.bulk.records import Record
from models.errors import ConfigError


class Destination(Protocol):
    """Where lines go.

    Attributes:
        report: where bad lines are told; None where they are not.
    """

    report: Path | None

    def begin(self, now: Journal, *, resume: bool) -> Journal:
        """Get ready to write.

        Args:
            now: of the present inputs, bundle and options, with nothing done.
            resume: whether to go on where an earlier run stopped.

        Returns:
            What is done already.
        """
        ...

    def write(self, data: bytes) -> None:
        """Add to the output."""
        ...

    def tell(self, line: int, record: Record) -> None:
        """Add what is bad about a line, counted from 1, to the report."""
        ...

    def commit(self, journal: Journal) -> None:
        """Put on disk what was written, and then how far that is."""
        ...

    def finish(self, journal: Journal) -> None:
        """The last commit."""
        ...

    def close(self) -> None: ...


class _Reporting:
    """Writes the report, which is there only if there is something to report; a device or a pipe is there before."""

    def __init__(self, report: Path | None) -> None:
        self.report = report
        self._stream = report is not None and report.exists() and not report.is_file()
        self._reported: Output | None = None

    def tell(self, line: int, record: Record) -> None:
        """Add to the report."""
        if self.report is None:
            return
        if self._reported is None:
            self._reported = StreamOutput(self.report) if self._stream else FileOutput(self.report)
        for finding in record.findings:
            if finding.bad:
                entry = {"line": line, "reason": finding.reason, "detail": finding.detail}
                self._reported.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def cut_report(self, size: int) -> None:
        """Keep the first so many bytes."""
        if self.report is None or self._stream:
            return
        if not size:
            self.report.unlink(missing_ok=True)
            return
        self._reported = opened = FileOutput(self.report)
        if opened.size < size:
            raise ConfigError(
                f"{self.report} must have {size} bytes, but has {opened.size}: it was changed or removed. {BEGIN_AGAIN}"
            )
        opened.cut(size)

    def commit_report(self) -> int:
        """Put the report on disk. Returns its bytes."""
        return self._reported.commit() if self._reported is not None else 0

    def close_report(self) -> None:
        """Close the report."""
        if self._reported is not None:
            self._reported.close()


class StreamDestination(_Reporting):
    """Standard output, or a device: nothing to resume."""

    def __init__(self, out: Path | None, report: Path | None) -> None:
        """Args: out: None for standard output; report: None for none."""
        super().__init__(report)
        self._output: Output = StreamOutput(out)

    def begin(self, now: Journal, *, resume: bool) -> Journal:
        """Raises ConfigError where there is something to resume."""
        if resume:
            raise ConfigError("--resume needs --out with the name of a file")
        self.cut_report(0)
        return now

    def write(self, data: bytes) -> None:
        """Add to the output."""
        self._output.write(data)

    def commit(self, journal: Journal) -> None:
        """Send what was written."""
        self._output.commit()
        self.commit_report()

    def finish(self, journal: Journal) -> None:
        """Send what was written."""
        self.commit(journal)

    def close(self) -> None:
        """Close what was opened."""
        self._output.close()
        self.close_report()


class FileDestination(_Reporting):
    """A file, which has its name only when it is complete; until then it is ``NAME.part``, beside ``NAME.journal``."""

    def __init__(self, out: Path, report: Path | None = None) -> None:
        """
        Args:
            out: the file.
            report: of bad lines; None for ``NAME.report.jsonl``.
        """
        super().__init__(report or out.with_name(f"{out.name}.report.jsonl"))
        self.out = out
        self.part = out.with_name(f"{out.name}.part")
        self.journal = out.with_name(f"{out.name}.journal")
        self._output: FileOutput | None = None

    def begin(self, now: Journal, *, resume: bool) -> Journal:
        """Look at what an earlier run has left.

        Raises:
            ConfigError: it is unfinished, and nobody asked to resume; or it cannot be resumed, which says why.
        """
        old = Journal.read(self.journal)
        if resume and old is not None:
            old.check(now)
            return self._go_on(old)
        if resume and self.out.exists():
            raise ConfigError(f"nothing to resume: {self.out} is there, but not {self.journal}. Leave out --resume")
        if old is not None and old.state != "finished" and old.counts.lines:
            raise ConfigError(
                f"{self.part} holds {old.counts.lines:,} lines of an earlier run: go on with --resume, or remove"
                f" {self.journal} to begin again"
            )
        self._output = FileOutput(self.part, self.out.suffix)
        self._output.cut(0)
        self.cut_report(0)
        now.write(self.journal)
        return now

    def _go_on(self, old: Journal) -> Journal:
        if old.state == "written" and self.part.exists():
            self._output = FileOutput(self.part, self.out.suffix)
            return self._complete(old)
        if old.state != "running":
            if not self.out.exists() or self.out.stat().st_size != old.output:
                raise ConfigError(f"nothing to resume: {self.out} was finished, and removed or changed since")
            return self._mark_finished(old)
        self._output = FileOutput(self.part, self.out.suffix)
        if self._output.size < old.output:
            raise ConfigError(
                f"{self.part} must have {old.output} bytes, but has {self._output.size}: it was changed or removed."
                f" {BEGIN_AGAIN}"
            )
        self._output.cut(old.output)
        self.cut_report(old.report)
        return old

    def write(self, data: bytes) -> None:
        """Add to the output."""
        self._opened.write(data)

    def commit(self, journal: Journal) -> None:
        """Put everything on disk; the journal comes last and speaks of nothing that is not there."""
        replace(journal, output=self._opened.commit(), report=self.commit_report()).write(self.journal)

    def finish(self, journal: Journal) -> None:
        """Commit, and give the output its name; a run that is ended in between is finished by the next."""
        self._opened.seal()
        last = replace(journal, state="written", output=self._opened.commit(), report=self.commit_report())
        last.write(self.journal)
        self._complete(last)

    def close(self) -> None:
        """Close what was opened."""
        if self._output is not None:
            self._output.close()
        self.close_report()

    def _complete(self, journal: Journal) -> Journal:
        self._opened.rename(self.out)
        return self._mark_finished(journal)

    def _mark_finished(self, journal: Journal) -> Journal:
        finished = replace(journal, state="finished")
        finished.write(self.journal)
        return finished

    @property
    def _opened(self) -> FileOutput:
        if self._output is None:
            raise RuntimeError("nothing has begun")
        return self._output
