"""Feature matrices beside the text, such as the regions of an image: checked, put in the order of the text, written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.errors import CorpusError
from training.corpora.raw import RawFile, RawFolder
from training.corpora.specs import FeatureSet

_ROWS = 256  # at a time: 100 MB of VGG features


def feature_files(features: FeatureSet, raw: RawFolder) -> dict[str, tuple[RawFile, ...]]:
    """The files of every split that has features: its own matrix; or the pool's, the pool's names, the split's list.

    Raises:
        CorpusError: a file is there several times, or lies packed where it cannot be mapped into memory.
    """
    pool = raw.find((f"{features.pool}.{features.name}.npy",))
    names = raw.find((f"{features.pool}.{features.name}.txt",))
    found: dict[str, tuple[RawFile, ...]] = {}
    for split, raw_split in features.splits:
        own = raw.find((f"{raw_split}.{features.name}.npy",))
        index = raw.find((f"{features.index}/{raw_split}.txt",))
        if own:
            found[split] = (own,)
        elif pool and names and index:
            found[split] = (pool, names, index)
    for matrix, *_ in found.values():
        if matrix.member or matrix.is_packed:
            raise CorpusError(f"{matrix}: unpack it, matrices are mapped into memory")
    return found


def write_features(features: FeatureSet, files: tuple[RawFile, ...], out: Path, segments: int) -> None:
    """One split's matrix, segments x regions x width, in the order of its text.

    Raises:
        CorpusError: wrong dtype, shape or number of rows; numbers that are not finite; an image that has no features.
    """
    matrix = _load(files[0], features)
    chosen = _chosen(files, len(matrix)) if len(files) > 1 else np.arange(len(matrix))
    if len(chosen) != segments:
        raise CorpusError(f"{files[-1]}: {len(chosen)} rows, but the text has {segments} lines")
    written = np.lib.format.open_memmap(
        out, mode="w+", dtype=matrix.dtype, shape=(segments, features.regions, features.width)
    )
    for start in range(0, segments, _ROWS):
        rows = np.asarray(matrix[chosen[start : start + _ROWS]])
        if not np.isfinite(rows).all():
            raise CorpusError(f"{files[0]}: numbers that are not finite in rows {start} to {start + len(rows) - 1}")
        written[start : start + _ROWS] = _regions(rows, features)
    written.flush()


def _load(file: RawFile, features: FeatureSet) -> NDArray[np.floating]:
    try:
        matrix: NDArray[np.floating] = np.load(file.path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{file}: not a NumPy array ({error})") from error
    if matrix.dtype not in (np.float16, np.float32):
        raise CorpusError(f"{file}: dtype must be float16 or float32, but is {matrix.dtype}")
    wanted = _shapes(features)
    if matrix.shape[1:] not in wanted:
        shapes = " or ".join("N x " + " x ".join(map(str, shape)) for shape in wanted)
        raise CorpusError(f"{file}: shape must be {shapes}, but is {' x '.join(map(str, matrix.shape))}")
    return matrix


def _shapes(features: FeatureSet) -> tuple[tuple[int, ...], ...]:
    """The forms that a matrix may have: regions in one axis, in two, or in two after the width."""
    return (features.regions, features.width), (*features.grid, features.width), (features.width, *features.grid)


def _regions(rows: NDArray[np.floating], features: FeatureSet) -> NDArray[np.floating]:
    if rows.shape[1:] == _shapes(features)[2]:
        rows = np.moveaxis(rows, 1, -1)
    return rows.reshape(len(rows), features.regions, features.width)


def _chosen(files: tuple[RawFile, ...], rows: int) -> NDArray[np.intp]:
    """The row of the pool for every line of a split."""
    _, names_file, index_file = files
    names = [line.strip() for line in names_file.lines()]
    if len(names) != rows:
        raise CorpusError(f"{names_file}: {len(names)} names for {rows} rows of {files[0]}")
    row_of = {name: row for row, name in enumerate(names)}
    # The lists of the first data release append the number of the description to the image: 1000092795.jpg#0.
    wanted = [line.strip().partition("#")[0] for line in index_file.lines()]
    missing = [name for name in wanted if name not in row_of]
    if missing:
        raise CorpusError(f"{names_file}: {len(missing)} images of {index_file} are not there, such as {missing[0]}")
    return np.array([row_of[name] for name in wanted], dtype=np.intp)
