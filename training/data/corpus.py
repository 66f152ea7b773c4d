"""Corpora on disk: UTF-8 text, one segment a line, parallel by line number, plain or compressed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, cast

from tandem.models.errors import CorpusError
from tandem.models.text import normalise

CHUNK = 2**16  # segments that are in memory at once where a corpus is read piece by piece


def iterate_lines(path: Path) -> Iterator[str]:
    """The segments of a file (``.xz``, ``.gz``, ``.bz2`` or plain) one by one, as they are, without their line ends.

    Lines end at ``\\n`` only: other characters that Unicode calls line breaks occur inside segments.

    Raises:
        CorpusError: the file is missing, cannot be decompressed or is not UTF-8; the message names file and line.
    """
    with unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            yield _decoded(line.removesuffix(b"\n"), f"{path}, line {number}")


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file (``.xz``, ``.gz``, ``.bz2`` or plain).

    Raises:
        CorpusError: the file is missing or cannot be decompressed, also while it is read inside the ``with``.
    """
    try:
        with _open(path) as file:
            yield file
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise CorpusError(f"{path}: damaged or cut short ({error})") from error
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error


def clean_line(line: str) -> str:
    """A segment as it is trained on: normalised, in one line, without white space at its ends."""
    return normalise(line).replace("\n", " ").strip()


def _open(path: Path) -> IO[bytes]:
    match path.suffix:
        case ".xz":
            return lzma.open(path)
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".bz2":
            return bz2.open(path)
    return path.open("rb")


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{where}: not UTF-8 ({error.reason}, byte 0x{line[error.start]:02x})") from error


def read_lines(path: Path) -> list[str]:
    """All that :func:`iterate_lines` gives."""
    return list(iterate_lines(path))


def parallel_chunks(paths: Sequence[Path], most: int) -> Iterator[tuple[list[str], ...]]:
    """The segments of parallel files, ``most`` at a time: one list a file, all of the same length.

    Raises:
        CorpusError: as `iterate_lines`, or the files differ in length, which is found where the shortest ends.
    """
    readers = [iterate_lines(path) for path in paths]
    before = 0
    while True:
        chunk = tuple(list(islice(reader, most)) for reader in readers)
        if len({len(lines) for lines in chunk}) > 1:
            counts = [before + len(lines) + sum(1 for _ in rest) for lines, rest in zip(chunk, readers, strict=True)]
            shortest, longest = counts.index(min(counts)), counts.index(max(counts))
            raise CorpusError(
                f"{paths[longest]}, line {counts[shortest] + 1}: no counterpart; it has {counts[longest]}"
                f" lines, but {paths[shortest]} has {counts[shortest]}"
            )
        if not chunk or not chunk[0]:
            return
        yield chunk
        before += len(chunk[0])


def read_parallel(paths: Sequence[Path]) -> tuple[list[str], ...]:
    """The segments of parallel files, one list a file, all of the same length.

    Raises:
        CorpusError: as `parallel_chunks`.
    """
    columns: tuple[list[str], ...] = tuple([] for _ in paths)
    for chunk in parallel_chunks(paths, CHUNK):
        for column, lines in zip(columns, chunk, strict=True):
            column.extend(lines)
    return columns


def file_digest(path: Path) -> str:
    """SHA-256 of a file as it lies on disk.

    Raises:
        CorpusError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error


def file_names(languages: tuple[str, str]) -> tuple[str, str]:
    """How the two sides' files end: with their languages, where these differ."""
    source, target = languages
    return (source, target) if source != target else ("source", "target")
