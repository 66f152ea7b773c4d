"""One part of a corpus as rows of parallel text, whatever the format of its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath

from models.errors import CorpusError
from training.corpora.raw import RawFile
from training.corpora.segments import ENDINGS, align_segments
from training.corpora.tagged import PREFIX, tagged_lines

Row = tuple[str, ...]  # the fields in order, then further references of the last


def read_rows(files: Sequence[RawFile]) -> Iterator[Row]:
    """The rows of parallel files.

    Raises:
        CorpusError: a file cannot be read or is malformed, the files differ in length or in their segments, or one of
            them has numbered segments and another has not.
    """
    numbered = [file.name.endswith(ENDINGS) for file in files]
    if all(numbered):
        yield from zip(*align_segments(files), strict=True)
        return
    if any(numbered):
        raise CorpusError(f"{files[0]} and {files[-1]}: one has numbered segments, the other lines; take both alike")
    columns = [_lines(file) for file in files]
    for number, row in enumerate(zip_longest(*columns), 1):
        short = [file for file, text in zip(files, row, strict=True) if text is None]
        if short:
            long = next(file for file, text in zip(files, row, strict=True) if text is not None)
            raise CorpusError(f"{long}, segment {number}: no counterpart; {short[0]} has {number - 1} segments")
        yield row


def _lines(file: RawFile) -> Iterator[str]:
    is_tagged = PurePosixPath(file.name).name.startswith(PREFIX)
    return tagged_lines(file.lines()) if is_tagged else file.lines()
