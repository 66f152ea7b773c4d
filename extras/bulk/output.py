"""Where translations and reports go. What is written is how far a run has come: complete lines are never done again."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from tandem.extras.bulk.lines import LineResult
from tandem.extras.bulk.sources import CHUNK
from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError, DataInUse
from tandem.models.folders import complete_file, hold, named, sync_folder

FORMAT = 2  # of the journal
_PACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),  # no name, no time: equal text, equal files
    ".xz": partial(lzma.open, mode="wb"),
    ".bz2": partial(bz2.open, mode="wb"),
}


@dataclass(frozen=True, slots=True)
class Journal:
    """What an output was begun with, and that it is finished: what ``--resume`` checks before it goes on.

    How far a run has come is not here: the output's complete lines say so.

    Attributes:
        begun_with: what the translations depend on, by name: bundle, options, and the inputs by size and hash, which
            are empty where an input is no file.
        finished: lines of the whole output; None while it is being written.
        output: bytes of the whole output.
    """

    begun_with: Mapping[str, str]
    finished: int | None = None
    output: int = 0
    format: int = FORMAT

    @classmethod
    def read(cls, path: Path) -> Journal | None:
        """The journal of a file; None where there is none.

        Raises:
            ConfigError: it is damaged, or of another version.
        """
        try:
            mapping = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: no readable journal ({error}); remove it to begin again") from error
        if not isinstance(mapping, dict) or mapping.get("format") != FORMAT:
            raise ConfigError(f"{path}: no journal of this version; remove it to begin again")
        return load_dataclass(cls, mapping, str(path))

    def write(self, path: Path) -> None:
        """Replace the journal: a reader finds the old one or the new one, whenever it looks."""
        unfinished = path.with_name(f"{path.name}.new")
        with named(unfinished), unfinished.open("w", encoding="utf-8") as file:
            file.write(json.dumps(to_mapping(self), indent=1) + "\n")
        complete_file(unfinished, path)

    def check(self, now: Mapping[str, str]) -> None:
        """Refuse to go on where something is not as it was.

        Args:
            now: what the present run would begin with.

        Raises:
            ConfigError: every difference.
        """
        pairs = {name: (self.begun_with.get(name), now.get(name)) for name in sorted({*self.begun_with, *now})}
        faults = [
            f"{name} was {old or 'no file'} and is {new or 'no file'}"
            for name, (old, new) in pairs.items()
            if old != new
        ]
        if faults:
            raise ConfigError(
                f"cannot resume: {'; '.join(faults)}. Resume with what it began with, or remove the journal to begin"
                " again"
            )


@dataclass(slots=True)
class Tally:
    """What became of the lines so far.

    Attributes:
        lines: all of them.
        bad: those whose translation is missing, or not all of it is there.
        reasons: how often each finding was made; of earlier runs those of bad lines.
    """

    lines: int = 0
    bad: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, record: LineResult) -> None:
        self.lines += 1
        self.bad += record.bad
        self.reasons.update(finding.reason for finding in record.findings)


class LineReport:
    """Counts lines, and tells the bad ones as JSON lines: in a file that is there only if there are any, or a pipe.

    Attributes:
        path: of the file, device or pipe; None to tell nothing.
        tally: of all lines so far.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.tally = path, Tally()
        self._file: IO[bytes] | None = None

    def resume(self, lines: int) -> None:
        """Keep what is told of the first so many lines, and count it."""
        self.tally = Tally(lines)
        if self.path is None or not self.path.is_file():
            return
        bad, kept = set(), 0
        with (
            suppress(ValueError, KeyError, TypeError),
            self.path.open("rb") as file,
        ):  # what is torn or not ours ends it
            for line in file:
                entry = json.loads(line)
                if entry["line"] > lines or not line.endswith(b"\n"):
                    break
                self.tally.reasons[entry["reason"]] += 1
                bad.add(entry["line"])
                kept += len(line)
        self.tally.bad = len(bad)
        if kept:
            os.truncate(self.path, kept)
        else:
            self.path.unlink()

    def take(self, results: Iterable[LineResult]) -> None:
        """The next lines; what is told is on disk before the lines are written."""
        told: list[bytes] = []
        for result in results:
            self.tally.count(result)
            for finding in result.findings:
                if finding.bad:
                    entry = {"line": self.tally.lines, "reason": finding.reason, "detail": finding.detail}
                    told.append(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        if self.path is not None and told:
            with named(self.path):
                self._file = self._file or self.path.open("ab" if self.path.is_file() else "wb")
                self._file.write(b"".join(told))
                _sync(self._file)

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # of what came after an error that says more
                self._file.close()


class StreamOutput:
    """Takes lines: standard output, or a device. Nothing of it can be resumed."""

    lines = 0
    """How many an earlier run has written."""

    def __init__(self, path: Path | None) -> None:
        """Raises ConfigError where standard output is closed."""
        if path is None and sys.stdout is None:
            raise ConfigError("standard output is closed: name a file with --out")
        self._own = path is not None
        self._file: IO[bytes] = path.open("wb") if path is not None else sys.stdout.buffer

    def begin(self, now: Mapping[str, str], *, resume: bool) -> Journal:
        """Get ready to write.

        Args:
            now: what the translations depend on, by name.
            resume: whether to go on where an earlier run stopped.

        Returns:
            The journal of the output as it is now.

        Raises:
            ConfigError: it cannot be resumed, or must be.
        """
        if resume:
            raise ConfigError("--resume needs --out with the name of a file")
        return Journal(now)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def flush(self, *, sync: bool) -> None:
        """What was written survives this process, and with ``sync`` this machine."""
        self._file.flush()

    def finish(self, lines: int) -> None:
        """All of so many lines are written."""
        self._file.flush()

    def close(self) -> None:
        if self._own:
            with suppress(OSError):  # of what could not be written, after an error that says more
                self._file.close()


class FileOutput(StreamOutput):
    """A file, which has its name only when it is complete; until then its lines are appended to ``NAME.part``.

    ``NAME.part`` is plain text, locked for this process; what is to be compressed is compressed at the end.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.part, self.journal, self._packed = (
            out.with_name(f"{out.name}{suffix}") for suffix in (".part", ".journal", ".packed")
        )
        self._own = False
        self._begun: Journal

    @property
    def files(self) -> tuple[Path, ...]:
        """All that are written."""
        return self.out, self.part, self.journal, self._packed

    def begin(self, now: Mapping[str, str], *, resume: bool) -> Journal:
        """Look at what an earlier run has left, and go on there or begin."""
        old = Journal.read(self.journal)
        if resume and old is not None:
            old.check(now)
            if old.finished is not None:
                return self._name(old)
        if resume and old is None and self.out.exists():
            raise ConfigError(f"nothing to resume: {self.out} is there, but not {self.journal}. Leave out --resume")
        self._file, self._own = _locked(self.part), True
        self.lines, size = (0, 0) if old is None or old.finished is not None else _complete_lines(self.part)
        if self.lines and not resume:
            raise ConfigError(
                f"{self.part} holds {self.lines:,} lines of an earlier run: go on with --resume, or remove"
                f" {self.journal} to begin again"
            )
        with named(self.part):
            self._file.truncate(size)  # a line that was torn by the end of the run is done again
        self._begun = old if resume and old is not None else Journal(now)
        if self._begun is not old:
            self._begun.write(self.journal)
        return self._begun

    def write(self, data: bytes) -> None:
        with named(self.part):
            self._file.write(data)

    def flush(self, *, sync: bool) -> None:
        """Errors name the file."""
        with named(self.part):
            _sync(self._file) if sync else self._file.flush()

    def finish(self, lines: int) -> None:
        """Give the output its name; a run that is ended in between is finished by the next."""
        self.flush(sync=True)
        packer, ready = _PACKERS.get(self.out.suffix), self.part
        if packer is not None:
            ready = self._packed
            with named(ready), self.part.open("rb") as plain, ready.open("wb") as file:
                with packer(file) as packed:
                    shutil.copyfileobj(plain, packed, CHUNK)
                _sync(file)
        last = replace(self._begun, finished=lines, output=ready.stat().st_size)
        last.write(self.journal)
        self._name(last)

    def _name(self, journal: Journal) -> Journal:
        """Raises ConfigError where the finished file is not there."""
        ready = self._packed if self.out.suffix in _PACKERS else self.part
        if ready.exists() and ready.stat().st_size == journal.output:
            os.replace(ready, self.out)
            sync_folder(self.out.parent)
        self.part.unlink(missing_ok=True)
        if not self.out.exists() or self.out.stat().st_size != journal.output:
            raise ConfigError(f"nothing to resume: {self.out} was finished, and removed or changed since")
        return journal


def _locked(path: Path) -> IO[bytes]:
    """A file opened for appending by this process alone. Raises ConfigError where another one writes it."""
    try:
        file = hold(path)
    except DataInUse as error:
        raise ConfigError(f"{path}: another process is writing it") from error
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    file.close()  # that process was there until now, and has renamed what it wrote
    raise ConfigError(f"{path}: another process has just finished it")


def _complete_lines(path: Path) -> tuple[int, int]:
    """How many lines of a file have their end, and the bytes of these."""
    lines, size, position = 0, 0, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            lines += chunk.count(b"\n")
            if b"\n" in chunk:
                size = position + chunk.rindex(b"\n") + 1
            position += len(chunk)
    return lines, size


def _sync(file: IO[bytes]) -> None:
    file.flush()
    if os.path.isfile(file.fileno()):  # there is no disk behind a pipe
        os.fsync(file.fileno())
