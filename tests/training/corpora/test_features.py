"""Feature matrices: three shapes in, one out; in the order of the text; every fault named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.errors import CorpusError
from tests.training.corpora.distributions import lines, multi30k, tarball, write
from training.corpora.build import build_corpus
from training.corpora.table import find_corpus

MULTI30K = find_corpus("multi30k")
COUNTS = {"train": 5, "val": 2, "test_2016_flickr": 2}
SPLITS = {"train": "train", "val": "valid", "test_2016_flickr": "test_2016_flickr"}


def invented(rows: int, first: int = 0) -> NDArray[np.float16]:
    """Images x 14 x 14 x 512; every row of an image is told by its first numbers."""
    features = np.zeros((rows, 14, 14, 512), np.float16)
    features[..., 0] = np.arange(first, first + rows)[:, None, None]
    features[..., 1] = np.arange(196).reshape(14, 14)
    features[..., 2:] = np.arange(510) / 512
    return features


def written(folder: Path) -> dict[str, NDArray[np.floating]]:
    build_corpus(MULTI30K, folder / "raw", folder / "out")
    out = folder / "out" / "multi30k"
    return {name: np.load(out / f"{name}.vgg16.npy") for name in SPLITS.values()}


@pytest.mark.parametrize("form", ["regions", "grid", "channels first"])
def test_every_form_becomes_regions(form: str, tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    for name, count in COUNTS.items():
        grid = invented(count)
        matrix = {"regions": grid.reshape(count, 196, 512), "grid": grid, "channels first": np.moveaxis(grid, 3, 1)}
        np.save(tmp_path / "raw" / f"{name}.vgg16.npy", matrix[form])
    for name, found in written(tmp_path).items():
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, invented(len(found)).reshape(-1, 196, 512), err_msg=name)


def test_a_pool_of_all_images_is_put_in_the_order_of_the_lists(tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    names = [f"{name}-{number}.jpg" for name, count in COUNTS.items() for number in range(count)]
    np.save(tmp_path / "raw" / "flickr30k.vgg16.npy", invented(len(names))[::-1].astype(np.float32))
    write(tmp_path / "raw" / "flickr30k.vgg16.txt", lines(names[::-1]))
    matrices = written(tmp_path)
    assert {name: matrix[:, 0, 0].tolist() for name, matrix in matrices.items()} == {
        "train": [0, 1, 2, 3, 4],
        "valid": [5, 6],
        "test_2016_flickr": [7, 8],
    }
    assert matrices["train"].dtype == np.float32


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((5, 196, 512), np.float64), "dtype must be float16 or float32, but is float64"),
        (np.zeros((5, 196, 256), np.float16), "but is 5 x 196 x 256"),
        (np.zeros((4, 196, 512), np.float16), "4 rows, but the text has 5 lines"),
        (np.full((5, 196, 512), np.nan, np.float16), "not finite in rows 0 to 4"),
    ],
)
def test_a_wrong_matrix_is_refused(matrix: NDArray[np.floating], message: str, tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    np.save(tmp_path / "raw" / "train.vgg16.npy", matrix)
    with pytest.raises(CorpusError, match=message):
        written(tmp_path)
    assert not (tmp_path / "out" / "multi30k").exists()


def test_what_is_no_matrix_is_refused(tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    write(tmp_path / "raw" / "train.vgg16.npy", b"not a matrix")
    with pytest.raises(CorpusError, match="not a NumPy array"):
        written(tmp_path)


def test_packed_matrices_must_be_unpacked(tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    tarball(tmp_path / "raw" / "features.tgz", {"train.vgg16.npy": b""})
    with pytest.raises(CorpusError, match="unpack it"):
        written(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["train-0.jpg"], "1 names for 2 rows"), (["train-0.jpg", "else.jpg"], "4 images of .* such as train-1.jpg")],
)
def test_a_pool_must_name_every_image(names: list[str], message: str, tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    np.save(tmp_path / "raw" / "flickr30k.vgg16.npy", invented(2))
    write(tmp_path / "raw" / "flickr30k.vgg16.txt", lines(names))
    with pytest.raises(CorpusError, match=message):
        written(tmp_path)
