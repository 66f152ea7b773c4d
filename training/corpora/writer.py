"""The text files of one split, a column each."""

from __future__ import annotations

import lzma
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from training.corpora.columns import Row
from training.corpora.specs import Corpus


class RowWriter:
    """Writes rows to ``folder / {name}.{field}``; further references to ``{name}.{target}.1`` and so on.

    Args:
        folder: where the files go.
        name: the split.
        corpus: the fields, and whether files are compressed.
    """

    def __init__(self, folder: Path, name: str, corpus: Corpus) -> None:
        self.rows = 0
        self._folder, self._name = folder, name
        self._fields, self._suffix = corpus.fields, corpus.suffix
        self._stack = ExitStack()
        self._files: list[IO[str]] = []
        self._counts: list[int] = []
        for column in range(len(corpus.fields)):
            self._open(column)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, row: Row) -> None:
        """Write the fields in order, then the further references that the row has."""
        self.rows += 1
        for column, text in enumerate(row):
            if column == len(self._files):
                self._open(column)
            self._files[column].write(f"{text}\n")
            self._counts[column] += 1

    def finish(self) -> list[str]:
        """After closing: remove references that only some rows have; what was removed."""
        faults = []
        for column, count in enumerate(self._counts):
            if count < self.rows:
                path = self._path(column)
                path.unlink()
                faults.append(f"{path.name} left out: only {count:,} of {self.rows:,} segments have that reference")
        return faults

    def _open(self, column: int) -> None:
        path = self._path(column)
        if self._suffix == ".xz":
            file: IO[str] = lzma.open(path, "wt", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by the stack)
        else:
            file = path.open("w", encoding="utf-8", newline="\n")
        self._files.append(self._stack.enter_context(file))
        self._counts.append(0)

    def _path(self, column: int) -> Path:
        last = len(self._fields) - 1
        field = self._fields[column] if column <= last else f"{self._fields[last]}.{column - last}"
        return self._folder / f"{self._name}.{field}{self._suffix}"
