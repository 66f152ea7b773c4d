"""Input of any size: lines of text, plain, compressed or from standard input, and rows of feature matrices.

A line ends at ``\n`` only. What is read is bytes: whether they are text is found out line by line, by who translates.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from tandem.extras.bulk.lines import Field
from tandem.models.bundle import sha256
from tandem.models.errors import ConfigError, CorpusError

CHUNK = 1 << 20  # bytes that are read at a time
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_FOREIGN = {".zst": "zstdcat", ".zip": "unzip -p", ".lz4": "lz4cat", ".7z": "7z x -so"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DAMAGED = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True, slots=True, eq=False)
class InputRow:
    """A line of all sources.

    Attributes:
        fields: one per source: the line without its end, or a matrix.
        span: bytes of the files on disk that were read for it.
    """

    fields: tuple[Field, ...]
    span: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(field.nbytes if isinstance(field, np.ndarray) else len(field) for field in self.fields)


class TextSource:
    """Lines of a file, or of standard input (``-``).

    Attributes:
        name: for messages.
        size: bytes on disk; None where nobody knows.
        position: of these, how many have been read.
    """

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: of the file; its suffix says whether it is compressed.

        Raises:
            ConfigError: a compression that is not read here.
            CorpusError: the file cannot be opened, or is UTF-16.
        """
        self.name = str(path)
        self._offset = 0
        self._stack = ExitStack()
        if path.suffix in _FOREIGN:
            raise ConfigError(
                f"{path}: {path.suffix} is not read here: `{_FOREIGN[path.suffix]} {path} | tandem translate …` is"
            )
        with self._readable():
            self._disk = _standard_input() if self.name == "-" else self._stack.enter_context(path.open("rb"))
            opener = _OPENERS.get(path.suffix)
            self._packed = opener is not None
            opened = self._stack.enter_context(opener(self._disk)) if opener else self._disk
            self._file = opened if hasattr(opened, "peek") else io.BufferedReader(cast("Any", opened), CHUNK)
            start = cast("Any", self._file).peek(2)[:2] if self.name != "-" else b""
        self.size = _size(self._disk)
        if start in _UTF16:
            self.close()
            raise CorpusError(f"{path}: this is UTF-16, but UTF-8 is read here: convert it with `iconv -f UTF-16`")

    @property
    def position(self) -> int:
        """Bytes read of the file on disk."""
        if self._packed:
            with suppress(ValueError):  # it is closed
                return self._disk.tell()
        return self._offset

    def lines(self) -> Iterator[Field]:
        """Lines without their ends."""
        with self._readable():
            for line in self._file:
                self._offset += len(line)
                yield line.removesuffix(b"\n")

    def close(self) -> None:
        self._stack.close()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            raise CorpusError(f"{self.name}: damaged or cut short ({error})") from error
        except OSError as error:
            raise CorpusError(f"{self.name}: cannot be read ({error.strerror or error})") from error


class FeatureSource:
    """Matrices of a ``.npy`` file, which stays on disk; attributes as those of :class:`TextSource`."""

    def __init__(self, path: Path, width: int) -> None:
        """Raises CorpusError where the file is no array of features of that width, or a number is not finite."""
        from tandem.training.data.features import FeatureArray

        self.name = str(path)
        self.size: int | None = path.stat().st_size if path.is_file() else None
        self._matrices = FeatureArray.open(path, width)
        self._row = 0

    @property
    def position(self) -> int:
        """Bytes of the matrices that have been read."""
        return round((self.size or 0) * self._row / max(1, len(self._matrices)))

    def lines(self) -> Iterator[Field]:
        """Matrices."""
        while self._row < len(self._matrices):
            self._row += 1
            yield self._matrices[self._row - 1]

    def close(self) -> None:
        """The map ends with the last matrix that somebody holds."""


Source: TypeAlias = TextSource | FeatureSource


def open_sources(paths: Sequence[Path], widths: Sequence[int]) -> list[Source]:
    """The inputs of a bundle.

    Args:
        paths: one per source.
        widths: per source the width of its feature vectors, 0 where it is text.

    Raises:
        ConfigError, CorpusError: one of them cannot be read, or standard input is named twice.
    """
    for path, width in zip(paths, widths, strict=True):
        if path.suffix == ".npy" and not width:
            raise CorpusError(f"{path}: text is expected here, not feature vectors")
    if sum(str(path) == "-" for path in paths) > 1:
        raise ConfigError("standard input (-) can be one source only")
    with ExitStack() as stack:
        opened: list[Source] = []
        for path, width in zip(paths, widths, strict=True):
            opened.append(FeatureSource(path, width) if width else TextSource(path))
            stack.callback(opened[-1].close)
        stack.pop_all()
    return opened


def read_rows(sources: Sequence[Source]) -> Iterator[InputRow]:
    """The lines of parallel inputs.

    Raises:
        CorpusError: one of them ends before another, or cannot be read.
    """
    before = sum(source.position for source in sources)
    for number, fields in enumerate(zip_longest(*(source.lines() for source in sources))):
        ended = [source.name for source, field in zip(sources, fields, strict=True) if field is None]
        if ended:
            raise CorpusError(
                f"the sources must have equally many lines, but {', '.join(ended)} ended and another went on after"
                f" {number} lines"
            )
        position = sum(source.position for source in sources)
        yield InputRow(fields, position - before)
        before = position


def fingerprint(path: Path) -> str:
    """The size of a file and SHA-256 of what is in it; empty where it is no file."""
    return f"{path.stat().st_size} bytes ({sha256(path)})" if path.is_file() else ""


def _standard_input() -> IO[bytes]:
    """Raises ConfigError where it is closed."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed: name a file with --source")
    return sys.stdin.buffer


def _size(file: IO[bytes]) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except OSError:  # no file of the system, as in a test
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
