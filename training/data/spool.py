"""Text that waits on disk while a corpus is prepared: memory holds only where each line begins."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, overload

from tandem.training.data.corpus import CHUNK


class Spool(Sequence[str]):
    """Lines in a file of their own, which goes with the ``with`` block.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")
        self._offsets = array("q", [0])

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            data = line.encode()
            self._file.write(data)
            self._offsets.append(self._offsets[-1] + len(data))
        self._file.flush()

    def repeat(self, first: int, times: int) -> None:
        """Append the lines from number ``first`` on so many times more."""
        last = len(self)
        for _ in range(times):
            self.extend(self._lines(first, last))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"index must be 0 to {len(self) - 1}, but is {index}")
        return self._read(index, index + 1).decode()

    def __iter__(self) -> Iterator[str]:
        return self._lines(0, len(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()
        self._path.unlink()

    def _lines(self, first: int, last: int) -> Iterator[str]:
        for start in range(first, last, CHUNK):
            stop = min(start + CHUNK, last)
            data, before = self._read(start, stop), self._offsets[start]
            for index in range(start, stop):
                yield data[self._offsets[index] - before : self._offsets[index + 1] - before].decode()

    def _read(self, start: int, stop: int) -> bytes:
        """The bytes of some lines, wherever the file is being written."""
        return os.pread(self._file.fileno(), self._offsets[stop] - self._offsets[start], self._offsets[start])
