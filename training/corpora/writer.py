"""The text files of one split, a column each."""

from __future__ import annotations

import lzma
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from training.corpora.rows import Row
from training.corpora.specs import CorpusSpec


class RowWriter(ExitStack):
    """Writes rows to ``folder / {name}.{field}``; further references to ``{name}.{target}.1`` and so on.

    Args:
        folder: where the files go.
        name: the split.
        corpus: the fields, and whether files are compressed.
    """

    def __init__(self, folder: Path, name: str, corpus: CorpusSpec) -> None:
        super().__init__()
        self.rows = 0
        self._folder, self._name, self._corpus = folder, name, corpus
        self._files: list[IO[str]] = []
        self._counts: list[int] = []
        for column in range(len(corpus.fields)):
            self._open(column)

    def add(self, row: Row) -> None:
        """Write the fields in order, then the further references that the row has."""
        self.rows += 1
        for column, text in enumerate(row):
            if column == len(self._files):
                self._open(column)
            self._files[column].write(f"{text}\n")
            self._counts[column] += 1

    def finish(self) -> list[str]:
        """After closing: remove references that only some rows have, and say so."""
        faults = []
        for column, count in enumerate(self._counts):
            if count < self.rows:
                path = self._path(column)
                path.unlink()
                faults.append(f"{path.name} left out: only {count:,} of {self.rows:,} segments have that reference")
        return faults

    def _open(self, column: int) -> None:
        stored = lzma.open if self._corpus.suffix == ".xz" else open
        self._files.append(self.enter_context(stored(self._path(column), "wt", encoding="utf-8", newline="\n")))
        self._counts.append(0)

    def _path(self, column: int) -> Path:
        further = column - len(self._corpus.fields) + 1
        field = self._corpus.fields[column] if further <= 0 else f"{self._corpus.target}.{further}"
        return self._folder / f"{self._name}.{field}{self._corpus.suffix}"
