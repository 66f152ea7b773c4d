"""Where translations and reports go: what was committed is on disk, and what came after it can be cut off again."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from models.errors import ConfigError
from service.files.disk import sync_folder

# A file of several members is one file to every program that reads these formats: each commit ends a member.
_MEMBERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),  # no name, no time: equal text, equal files
    ".xz": partial(lzma.open, mode="wb"),
    ".bz2": partial(bz2.open, mode="wb"),
}


class Output(Protocol):
    """Takes lines."""

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        ...

    def commit(self) -> int:
        """Put all of it on disk. Returns the file's size in bytes."""
        ...

    def close(self) -> None: ...


class FileOutput:
    """A file that grows, locked for this process; compressed where its suffix says so."""

    def __init__(self, path: Path, suffix: str = "") -> None:
        """
        Args:
            path: of the file.
            suffix: ``.gz``, ``.xz`` or ``.bz2``; anything else is not compressed.

        Raises:
            ConfigError: another process writes it.
        """
        self.path = path
        self._member: IO[bytes] | None = None
        self._open_member = _MEMBERS.get(suffix)
        self._disk = path.open("ab")
        try:
            _lock(self._disk)
        except BlockingIOError as error:
            self._disk.close()
            raise ConfigError(f"{path}: another process is writing it") from error
        if not self._is_named():  # that process was there until now, and has renamed what it wrote
            self._disk.close()
            raise ConfigError(f"{path}: another process has just finished it")

    def cut(self, size: int) -> None:
        """Drop what follows the first so many bytes; they end where a commit ended."""
        with named(self.path):
            self._disk.truncate(size)
            self._disk.seek(0, os.SEEK_END)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return os.fstat(self._disk.fileno()).st_size

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        with named(self.path):
            if self._open_member is None:
                self._disk.write(data)
                return
            if self._member is None:
                self._member = self._open_member(self._disk)
            self._member.write(data)

    def commit(self) -> int:
        """Put all of it on disk."""
        with named(self.path):
            if self._member is not None:
                self._member.close()
                self._member = None
            self._disk.flush()
            os.fsync(self._disk.fileno())
        return self.size

    def seal(self) -> None:
        """Make it a file of its format even where nothing was written."""
        if self._open_member is not None and self._member is None and not self.size:
            self.write(b"")

    def rename(self, path: Path) -> None:
        """Give the committed file its name."""
        os.replace(self.path, path)
        sync_folder(path.parent)

    def close(self) -> None:
        """Close the file; what was not committed may or may not be in it."""
        self._member = None
        with suppress(OSError):  # of what was not committed, after an error that says more
            self._disk.close()

    def _is_named(self) -> bool:
        """Whether the path is still that of the open file."""
        try:
            return os.path.samestat(os.fstat(self._disk.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False


class StreamOutput:
    """Standard output, or a file that is no regular one: nothing can be cut off again."""

    def __init__(self, path: Path | None) -> None:
        """Raises ConfigError where standard output is closed."""
        if path is None and sys.stdout is None:
            raise ConfigError("standard output is closed: name a file with --out")
        self._own = path is not None
        self._file: IO[bytes] = path.open("wb") if path is not None else sys.stdout.buffer

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._file.write(data)

    def commit(self) -> int:
        """Send what was written."""
        self._file.flush()
        return 0

    def close(self) -> None:
        """Close what was opened here."""
        if self._own:
            self._file.close()


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of the disk name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # not on every system
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
