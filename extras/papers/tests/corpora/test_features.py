"""Feature matrices go beside the text that they belong to; every fault is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tandem.extras.papers.corpora.build import build_corpus
from tandem.extras.papers.corpora.specs import find_corpus
from tandem.extras.papers.tests.corpora.distributions import multi30k, write
from tandem.models.errors import CorpusError

MULTI30K = find_corpus("multi30k")
COUNTS = {"train": 5, "val": 2, "test_2016_flickr": 2}
SPLITS = {"train": "train", "val": "valid", "test_2016_flickr": "test_2016_flickr"}


def invented(rows: int) -> NDArray[np.float16]:
    """Images x 196 x 512; every row of an image is told by its first numbers."""
    features = np.zeros((rows, 196, 512), np.float16)
    features[..., 0] = np.arange(rows)[:, None]
    features[..., 1] = np.arange(196)
    features[..., 2:] = np.arange(510) / 512
    return features


def written(folder: Path) -> dict[str, NDArray[np.floating]]:
    build_corpus(MULTI30K, folder / "raw", folder / "out")
    out = folder / "out" / "multi30k"
    return {name: np.load(out / f"{name}.vgg16.npy") for name in SPLITS.values()}


def test_matrices_go_beside_their_text(tmp_path: Path) -> None:
    multi30k(tmp_path / "raw")
    for name, count in COUNTS.items():
        np.save(tmp_path / "raw" / f"{name}.vgg16.npy", invented(count))
    for name, found in written(tmp_path).items():
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, invented(len(found)), err_msg=name)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((5, 196, 512), np.float64), "must be float16 or float32, but are float64"),
        (np.zeros((5, 196, 256), np.float16), "must have the width 512, but have 256"),
        (np.zeros((4, 196, 512), np.float16), r"must be \(5, 196, 512\), one matrix a line .* is \(4, 196, 512\)"),
        (np.zeros((5, 195, 512), np.float16), r"but is \(5, 195, 512\)"),
        (np.full((5, 196, 512), np.nan, np.float16), "row 0: features must be finite"),
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
    with pytest.raises(CorpusError, match=r"not a readable \.npy array"):
        written(tmp_path)
