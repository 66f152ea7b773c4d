"""Feature matrices: sources that are vectors, not text, such as the regions of an image.

A file holds one array: N x S x D, the S vectors of each of N segments, or N x D, one vector each; float16 or float32.
It is mapped into memory and never copied: prepared data keeps the file's path and the numbers of the rows it uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import CorpusError
from tandem.training.data.config import FEATURES
from tandem.training.data.corpus import read_parallel
from tandem.training.data.summary import FeatureSide

DTYPES = ("float16", "float32")
Matrix = NDArray[np.floating[Any]]


def map_features(path: Path, width: int | None = None) -> Matrix:
    """The array of a file, N x S x D, mapped into memory.

    Args:
        path: a ``.npy`` file.
        width: the D that is expected, if any.

    Raises:
        CorpusError: the file is missing or no array, or has another type, shape or width; the message names them.
    """
    try:
        # A plain view of the map: slicing np.memmap itself is several times slower.
        array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{path}: not a readable .npy array ({error})") from error
    if array.dtype.name not in DTYPES:
        raise CorpusError(f"{path}: features must be {' or '.join(DTYPES)}, but are {array.dtype.name}")
    if array.ndim not in (2, 3) or 0 in array.shape[1:]:
        raise CorpusError(f"{path}: features must be an array N x S x D or N x D, but it has the shape {array.shape}")
    if width is not None and array.shape[-1] != width:
        raise CorpusError(f"{path}: feature vectors must have the width {width}, but have {array.shape[-1]}")
    matrices: Matrix = array if array.ndim == 3 else array[:, None]
    return matrices


def digests(path: Path, matrices: Matrix) -> Iterator[bytes]:
    """A digest of each matrix's content, for telling equal ones apart from others.

    Raises:
        CorpusError: a number is not finite; the message names the row.
    """
    for row, matrix in enumerate(matrices):
        if not np.isfinite(matrix).all():
            raise CorpusError(f"{path}, row {row}: features must be finite, but one is NaN or infinite")
        yield hashlib.blake2b(np.ascontiguousarray(matrix).tobytes(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, eq=False)
class FeatureArray(Sequence[Matrix]):
    """The matrices S x D of one side, wherever they lie.

    Attributes:
        files: mapped arrays, N x S x D; S may differ between them.
        places: for each matrix the number of its file and its row there.
    """

    files: tuple[Matrix, ...]
    places: NDArray[np.int64]

    @classmethod
    def open(cls, path: Path, width: int | None = None) -> FeatureArray:
        """All matrices of one file, every number checked.

        Raises:
            CorpusError: as :func:`map_features` and :func:`digests`.
        """
        matrices = map_features(path, width)
        for _ in digests(path, matrices):
            pass
        rows = np.arange(len(matrices))
        return cls((matrices,), np.stack([np.zeros_like(rows), rows], axis=1))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Vectors of each matrix."""
        sizes = np.array([file.shape[1] for file in self.files], np.int64)
        found: NDArray[np.int64] = sizes[self.places[:, 0]]
        return found

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Matrix: ...
    @overload
    def __getitem__(self, index: slice) -> FeatureArray: ...
    def __getitem__(self, index: int | slice) -> Matrix | FeatureArray:
        if isinstance(index, slice):
            return FeatureArray(self.files, self.places[index])
        file, row = self.places[index]
        matrix: Matrix = self.files[file][row]
        return matrix

    def gather(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The chosen matrices side by side, B x S x D padded with 0, and their lengths B."""
        lengths = self.lengths[chosen]
        values = np.zeros((len(chosen), int(lengths.max(initial=0)), self.files[0].shape[2]), np.float32)
        for row, index in enumerate(chosen.tolist()):
            values[row, : lengths[row]] = self[index]
        return values, lengths


class FeatureSelection:
    """Which rows of which files the pairs of each split have, collected while corpora are read and filtered.

    Args:
        sides: the names of the feature sources by their place among the sources.
        widths: the width that each is to have, 0 where any will do.
    """

    def __init__(self, sides: Mapping[int, str], widths: Mapping[int, int]) -> None:
        self._sides = dict(sides)
        self._widths = {index: widths.get(index, 0) for index in sides}
        self._files: dict[int, dict[str, dict[str, str]]] = {index: {} for index in sides}
        self._places: dict[str, list[NDArray[np.int64]]] = {}

    def __bool__(self) -> bool:
        """Whether there are feature sources."""
        return bool(self._sides)

    def read(self, corpus: str, split: str, paths: Sequence[Path], lines: int) -> list[str]:
        """Check a corpus' files.

        Args:
            corpus: its name.
            split: of the files.
            paths: of every source, in order.
            lines: how many segments the text has.

        Returns:
            What tells each segment's features from others; empty without feature sources.

        Raises:
            CorpusError: a file is no array of features, has another width, or not one matrix for each line.
        """
        marks = [""] * lines if self._sides else []
        for index in self._sides:
            path = paths[index]
            matrices = map_features(path, self._widths[index] or None)
            self._widths[index] = matrices.shape[2]
            if len(matrices) != lines:
                raise CorpusError(
                    f"{path}: must have one matrix for each of the {lines} lines, but has {len(matrices)}"
                )
            marks = [mark + own.hex() for mark, own in zip(marks, digests(path, matrices), strict=True)]
            self._files[index].setdefault(split, {})[corpus] = str(path.resolve())
        return marks

    def keep(self, split: str, rows: Sequence[int]) -> None:
        """The rows, in order and as often as they are used, of the corpus that was read last."""
        if not self._sides:
            return
        parts = self._places.setdefault(split, [])
        file = len(next(iter(self._files.values()))[split]) - 1
        parts.append(np.stack([np.full(len(rows), file), np.asarray(rows, np.int64)], axis=1))

    def save(self, folder: Path, split: str, kept: Sequence[int]) -> None:
        """Write where the features of a split's pairs lie: of those that were kept, the pairs that are left."""
        if self._sides:
            np.save(folder / f"{split}.rows.npy", np.concatenate(self._places[split])[list(kept)])

    def summary(self) -> dict[str, FeatureSide]:
        """By side, what prepared data has to remember."""
        return {side: FeatureSide(self._widths[index], self._files[index]) for index, side in self._sides.items()}


def read_columns(paths: Sequence[Path], feature_widths: Sequence[int]) -> list[Sequence[Any]]:
    """Parallel files: a list of lines of each text, the matrices of each source of feature vectors.

    Args:
        paths: the sources in order, then any further text.
        feature_widths: per source the width of its vectors, 0 where it is text.

    Raises:
        CorpusError: a file cannot be read, is not what it should be, or is not parallel to the others.
    """
    widths = [*feature_widths, *[0] * (len(paths) - len(feature_widths))]
    texts = [path for path, width in zip(paths, widths, strict=True) if not width]
    if wrong := [path for path in texts if path.suffix == FEATURES]:
        raise CorpusError(f"{wrong[0]}: text is expected here, not feature vectors")
    lines = iter(read_parallel(texts) if texts else ())
    columns: list[Sequence[Any]] = [
        FeatureArray.open(path, width) if width else next(lines) for path, width in zip(paths, widths, strict=True)
    ]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[-1]):
            raise CorpusError(f"{path}: has {len(column)} segments, but {paths[-1]} has {len(columns[-1])}")
    return columns
