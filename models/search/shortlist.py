"""Lexical shortlists: for each sentence the target tokens that its source words make likely, and no others.

The output layer and the search over it then cost a tenth (vocabulary selection: Mi, Wang and Ittycheriah 2016;
L'Hostis, Grangier and Auli 2016). Needs NumPy alone. The file is safetensors, which cannot hold code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import safetensors
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from tandem.models.errors import BundleError

SHORTLIST_FORMAT = 2
_UNTAGGED = 1  # the format of files without tags, which older versions read too
WITH_SHORTLIST = ", with shortlist"  # how the manifest names test sets whose scores were measured with one
_HEADER, _ALWAYS, _TAGS = "header", "always", "tags"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The target ids of every id of one source vocabulary, once for each tag of a shortlist that has tags.

    Attributes:
        starts: where each source id's targets start, one more than there are source ids.
        targets: target ids, one source id after another, each's rising.
    """

    starts: NDArray[np.int64]
    targets: NDArray[Any]

    @classmethod
    def of(cls, rows: Sequence[ArrayLike], target_types: int) -> Table:
        """A table from the targets of each source id, in any order."""
        sets = [np.unique(np.asarray(row, np.int64)) for row in rows]
        starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        targets = np.concatenate(sets) if sets else np.zeros(0, np.int64)
        return cls(starts, targets.astype(np.min_scalar_type(target_types)))


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """Which target tokens a sentence may use.

    Attributes:
        tables: one per text source.
        always: target ids of every list, rising.
        target_types: size of the target vocabulary.
        tags: source ids, of which every sentence begins with one that says what language it becomes, and by which a
            table has a part for each; empty where there is one language.
    """

    tables: tuple[Table, ...]
    always: NDArray[np.int64]
    target_types: int
    tags: tuple[int, ...] = ()
    _always_V: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        always_V = np.zeros(self.target_types, np.bool_)
        always_V[self.always] = True
        object.__setattr__(self, "_always_V", always_V)

    def select(self, sources: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """The target ids that one sentence may use, rising and each once.

        Args:
            sources: the sentence's sources in the model's order: ids, or feature matrices, which add nothing.

        Raises:
            ValueError: there is not one table for each text source, or a source begins with none of the tags.
        """
        texts = [source for source in sources if source.ndim == 1]
        if len(texts) != len(self.tables):
            raise ValueError(
                f"the shortlist has tables for {len(self.tables)} text sources, but {len(texts)} are given"
            )
        chosen_V = self._always_V.copy()
        for table, types, ids in zip(self.tables, self.source_types, texts, strict=True):
            own = ids + self._part(ids) * types
            ends = zip(table.starts[own].tolist(), table.starts[own + 1].tolist(), strict=True)
            rows = [table.targets[start:end] for start, end in ends]
            if rows:
                chosen_V[np.concatenate(rows)] = True
        return np.flatnonzero(chosen_V)

    @property
    def source_types(self) -> list[int]:
        """Source ids that each table knows."""
        return [(len(table.starts) - 1) // (len(self.tags) or 1) for table in self.tables]

    def _part(self, ids: NDArray[Any]) -> int:
        """Which part of a table is for a source."""
        if not self.tags:
            return 0
        if not len(ids) or ids[0] not in self.tags:
            raise ValueError(
                f"the source must begin with one of the tags {list(self.tags)}, but is {ids[:3].tolist()}..."
            )
        return self.tags.index(int(ids[0]))

    @classmethod
    def tagged(cls, parts: Sequence[tuple[int, Shortlist]]) -> Shortlist:
        """One shortlist of those for sources that begin with a tag, each with its tag; several of a tag are united.

        All are of the same vocabularies. What every list of one part holds, and not of all, is listed by its tag.
        """
        first, tags = parts[0][1], tuple(dict.fromkeys(tag for tag, _ in parts))
        always = reduce(np.intersect1d, [part.always for _, part in parts])
        tables = []
        for source, types in enumerate(first.source_types):
            rows: list[list[NDArray[Any]]] = [[] for _ in range(types * len(tags))]
            for tag, part in parts:
                table, begin = part.tables[source], types * tags.index(tag)
                own = np.split(table.targets, table.starts[1:-1])
                for row, targets in zip(rows[begin : begin + types], own, strict=True):
                    row.append(targets)
                rows[begin + tag].append(np.setdiff1d(part.always, always))
            tables.append(Table.of([np.concatenate(row) for row in rows], first.target_types))
        return cls(tuple(tables), always, first.target_types, tags)

    def misfits(self, source_types: Sequence[int], target_types: int) -> list[str]:
        """Why it does not belong to vocabularies of these sizes, one sentence each; empty where it does."""
        own, faults = self.source_types, []
        if own != list(source_types):
            faults.append(f"its tables are for source vocabularies of {own} types, but the bundle's {[*source_types]}")
        if self.target_types != target_types:
            faults.append(f"it lists tokens of {self.target_types} target types, but the bundle has {target_types}")
        return faults

    def to_bytes(self) -> bytes:
        """The content of the shortlist's file; the same shortlist gives the same bytes."""
        small = np.min_scalar_type(self.target_types)
        tensors: dict[str, NDArray[Any]] = {
            _HEADER: np.array(
                [SHORTLIST_FORMAT if self.tags else _UNTAGGED, self.target_types, len(self.tables)], np.int64
            ),
            _ALWAYS: self.always.astype(small),
        }
        for number, table in enumerate(self.tables):
            tensors[f"starts.{number}"] = table.starts.astype(np.uint32) if self.tags else table.starts
            tensors[f"targets.{number}"] = table.targets.astype(small)
        if self.tags:
            tensors[_TAGS] = np.array(self.tags, np.int64)
        return save({name: tensors[name] for name in sorted(tensors)}, metadata={"format": "np"})

    @classmethod
    def from_bytes(cls, content: bytes, where: object = "shortlist") -> Shortlist:
        """A shortlist from its file's content.

        Raises:
            BundleError: not such a file, of a newer format, or ids out of bounds; every fault is listed.
        """
        try:
            tensors = load(content)
        except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
            raise BundleError(where, [f"not a shortlist: {error}"]) from error
        if _TAGS in tensors:
            small = [name for name, one in tensors.items() if name.startswith("starts.") and one.dtype == np.uint32]
            tensors |= {name: tensors[name].astype(np.int64) for name in small}
        faults = list(_header_faults(tensors))
        if not faults:
            _, types, count = tensors[_HEADER].tolist()
            faults += _always_faults(tensors[_ALWAYS], types)
            faults += _tag_faults(tensors, count)
            faults += [fault for number in range(count) for fault in _table_faults(tensors, number, types)]
        if faults:
            raise BundleError(where, faults)
        tables = tuple(Table(tensors[f"starts.{number}"], tensors[f"targets.{number}"]) for number in range(count))
        tags = tuple(tensors[_TAGS].tolist()) if _TAGS in tensors else ()
        return cls(tables, tensors[_ALWAYS].astype(np.int64), types, tags)


def _header_faults(tensors: dict[str, NDArray[Any]]) -> Iterator[str]:
    header = tensors.get(_HEADER)
    if header is None or header.dtype != np.int64 or header.shape != (3,):
        yield "not a shortlist: it has no header of three whole numbers"
        return
    version, types, count = header.tolist()
    if version > SHORTLIST_FORMAT:
        yield f"its format {version} is newer than {SHORTLIST_FORMAT}, the newest this version reads; update tandem"
        return
    if version < 1 or not 1 <= types <= 2**31 or not 0 <= count <= len(tensors):
        yield f"its header must be a format, a number of target types and one of tables, but is {header.tolist()}"
        return
    sides = [f"{part}.{number}" for number in range(count) for part in ("starts", "targets")]
    wanted = {_HEADER, _ALWAYS, *sides, *([_TAGS] if version > _UNTAGGED else [])}
    if wanted != set(tensors):
        yield f"it must hold {sorted(wanted)}, but holds {sorted(tensors)}"


def _always_faults(always: NDArray[Any], types: int) -> Iterator[str]:
    if always.ndim != 1 or always.dtype.kind not in "iu":
        yield "the tokens of every list must be a row of whole numbers"
    elif len(always) and not _within(always, types):
        yield f"the tokens of every list must be ids from 0 to {types - 1}"
    elif (np.diff(always.astype(np.int64)) <= 0).any():
        yield "the tokens of every list must rise, each once"


def _tag_faults(tensors: dict[str, NDArray[Any]], count: int) -> Iterator[str]:
    tags = tensors.get(_TAGS)
    if tags is None:
        return
    if tags.ndim != 1 or tags.dtype != np.int64 or not len(tags) or len(set(tags.tolist())) < len(tags):
        yield "its tags must be a row of whole numbers, each once"
        return
    for number in range(count):
        rows = len(tensors[f"starts.{number}"]) - 1 if tensors[f"starts.{number}"].ndim == 1 else 0
        if rows % len(tags) or not 0 <= int(tags.min()) <= int(tags.max()) < rows // len(tags):
            yield f"table {number} must have as many rows for each of the {len(tags)} tags, and the tags be rows"


def _table_faults(tensors: dict[str, NDArray[Any]], number: int, types: int) -> Iterator[str]:
    starts, targets = tensors[f"starts.{number}"], tensors[f"targets.{number}"]
    if starts.ndim != 1 or starts.dtype != np.int64 or targets.ndim != 1 or targets.dtype.kind not in "iu":
        yield f"table {number} must be rows of whole numbers"
    elif not len(starts) or starts[0] != 0 or starts[-1] != len(targets) or (np.diff(starts) < 0).any():
        yield f"table {number} must start at 0, rise and end at its {len(targets)} targets"
    elif len(targets) and not _within(targets, types):
        yield f"table {number} must name ids from 0 to {types - 1}"


def _within(ids: NDArray[Any], types: int) -> bool:
    return int(ids.min()) >= 0 and int(ids.max()) < types
