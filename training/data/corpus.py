"""Corpora on disk: UTF-8 text, one segment a line, parallel by line number, plain or compressed."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Sequence
from pathlib import Path

from models.errors import CorpusError


def read_lines(path: Path) -> list[str]:
    """The segments of a file (``.xz``, ``.gz`` or plain), as they are, without their line ends.

    Lines end at ``\\n`` only: other characters that Unicode calls line breaks occur inside segments.

    Raises:
        CorpusError: the file is missing, cannot be decompressed or is not UTF-8; the message names file and line.
    """
    data = _read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(f"{path}, line {line}: not UTF-8 ({error.reason}, byte 0x{data[error.start]:02x})") from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def read_parallel(paths: Sequence[Path]) -> tuple[list[str], ...]:
    """The segments of parallel files, one list a file, all of the same length.

    Raises:
        CorpusError: as `read_lines`, or the files differ in length.
    """
    columns = tuple(read_lines(path) for path in paths)
    shortest = min(range(len(paths)), key=lambda index: len(columns[index]))
    longest = max(range(len(paths)), key=lambda index: len(columns[index]))
    if len(columns[shortest]) < len(columns[longest]):
        raise CorpusError(
            f"{paths[longest]}, line {len(columns[shortest]) + 1}: no counterpart; it has {len(columns[longest])}"
            f" lines, but {paths[shortest]} has {len(columns[shortest])}"
        )
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


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix == ".xz":
            with lzma.open(path) as file:
                return file.read()
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise CorpusError(f"{path}: damaged or cut short ({error})") from error
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
