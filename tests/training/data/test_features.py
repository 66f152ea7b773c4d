"""Sources of feature vectors: what a file may hold, and that every pair keeps its own rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.errors import ConfigError, CorpusError
from tandem.training.data.batches import collate
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from tandem.training.data.dataset import PreparedData, load_sources, load_vocabularies, open_features, text_path
from tandem.training.data.features import FeatureArray, map_features, read_columns
from tandem.training.data.plans import plan_epoch
from tandem.training.data.prepare import prepare
from tandem.training.data.summary import PreparedSummary
from tests.training.toy import write_lines

VECTORS, WIDTH = 3, 4
CORPUS = CorpusConfig("toy", ("toy/{split}.de", "toy/{split}.npy"), "toy/{split}.en", "CC0", "nobody")
CONFIG = DataConfig(
    (CORPUS,), vocabulary=VocabularyConfig("word", 60, joint=False), max_source_tokens=8, max_target_tokens=8
)


def matrices(count: int, first: int, vectors: int = VECTORS) -> np.ndarray:
    """Each row holds its own number, so that a mistaken one shows."""
    rows = np.arange(first, first + count, dtype=np.float32)
    return np.broadcast_to(rows[:, None, None], (count, vectors, WIDTH)).copy()


def write(root: Path, name: str, split: str, pairs: list[tuple[str, str]], features: np.ndarray) -> None:
    for side, column in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
        write_lines(root / name / f"{split}.{side}", column)
    np.save(root / name / f"{split}.npy", features)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Rows 1 and 4 of the training text are dropped (empty, too long)."""
    pairs = [("eins", "one"), ("", "two"), ("drei", "three"), ("vier", "four"), ("f " * 9, "five"), ("sechs", "six")]
    write(tmp_path / "corpora", "toy", "train", pairs, matrices(6, 0))
    for split, first in (("valid", 100), ("test", 200)):
        write(tmp_path / "corpora", "toy", split, [("eins zwei", "one two"), ("neun", "nine")], matrices(2, first))
    return tmp_path / "corpora"


def make(root: Path, config: DataConfig = CONFIG, **changes: Any) -> PreparedSummary:
    languages = ["de", "zxx", "en"]
    return prepare(config, languages=languages, root=root, out=root.parent / "out", seed=1, **changes)


def rows(data: PreparedData) -> list[float]:
    """The number in the features of every pair."""
    return [float(data.sources(index)[1][0, 0]) for index in range(len(data))]


def test_rows_follow_what_is_left_of_the_text(root: Path) -> None:
    summary = make(root)
    out = root.parent / "out"
    data = PreparedData.open(out, "train")
    assert rows(data) == [0, 2, 3, 5]
    assert summary.splits["train"].dropped == {"empty": 1, "source_tokens": 1}
    assert summary.splits["train"].source_tokens == (8,)
    assert summary == PreparedSummary.load(out)
    assert [bool(size) for size in summary.vocabularies.values()] == [True, False, True]
    assert PreparedSummary.load(out).feature_widths == (0, WIDTH)
    assert data.source_lengths.tolist() == [2, 2, 2, 2]  # vectors are not counted beside text
    assert rows(PreparedData.open(out, "valid")) == [100, 101]
    assert sum(file.stat().st_size for file in out.rglob("*.rows.npy")) < 1000  # numbers, not features
    (german,), _ = load_vocabularies(out)
    sources, _ = load_sources(out)
    assert [one if one is None else one.to_bytes() for one in sources] == [german.to_bytes(), None]


def test_repeated_and_further_corpora(root: Path) -> None:
    """Matrices may have another number of vectors there."""
    write(root, "more", "train", [("zehn", "ten"), ("elf", "eleven")], matrices(2, 50, vectors=5))
    second = replace(CORPUS, name="more", source=("more/{split}.de", "more/{split}.npy"), target="more/{split}.en")
    make(root, replace(CONFIG, corpora=(replace(CORPUS, repeat=2), replace(second, splits=("train",)))))
    data = PreparedData.open(root.parent / "out", "train")
    assert rows(data) == [0, 2, 3, 5, 0, 2, 3, 5, 50, 51]
    (plan,) = plan_epoch(data.source_lengths, data.target_lengths, epoch=0, seed=1, max_tokens=60)
    batch = collate(data, plan)
    text, features = batch.sources
    assert features.values.dtype.is_floating_point and features.values.shape == (10, 5, WIDTH)
    pairs = [pair for (pair,) in plan.items]
    assert features.lengths.tolist() == [5 if pair >= 8 else 3 for pair in pairs]
    for row, pair in enumerate(pairs):
        assert features.values[row, : features.lengths[row]].unique().tolist() == [rows(data)[pair]]
        assert not features.values[row, features.lengths[row] :].any()
    assert batch.source_tokens == int(text.lengths.sum())


def test_evaluation_text_keeps_its_rows(root: Path) -> None:
    """The text is whole unless the recipe filters it; the arrays hold what the limits leave."""
    config = replace(CONFIG, filters=FilterConfig(max_source_words=1, evaluation=True), max_target_tokens=2)
    for chosen, kept in ((replace(CONFIG, max_target_tokens=2), [100.0, 101.0]), (config, [101.0])):
        summary = make(root, chosen, force=True)
        out = root.parent / "out"
        lines = text_path(out, "toy", "valid", "source0").read_text(encoding="utf-8").splitlines()
        found = open_features(out, "valid", summary.features["source1"], evaluation="toy")
        assert [float(one[0, 0]) for one in found] == kept
        assert len(lines) == len(found)
        assert not text_path(out, "toy", "valid", "source1").exists()
        assert rows(PreparedData.open(out, "valid")) == [101.0]


def test_equal_text_with_other_features_is_no_duplicate(root: Path) -> None:
    """Nor is it held out: what is seen decides what is said."""
    pairs = [("was", "dog"), ("was", "dog"), ("was", "dog"), ("was", "dog")]
    features = matrices(4, 0)
    features[2] = features[1]
    write(root, "toy", "train", pairs, features)
    write(root, "toy", "test", pairs[:1], features[3:])
    summary = make(root)
    assert rows(PreparedData.open(root.parent / "out", "train")) == [0, 1]
    assert summary.splits["train"].dropped == {"duplicate": 1, "held_out": 1}


def test_features_alone_can_be_the_source(root: Path) -> None:
    corpus = replace(CORPUS, source=("toy/{split}.npy",))
    out = root.parent / "out"
    config = replace(CONFIG, corpora=(corpus,), placeholder_share=1.0)
    prepare(config, languages=("zxx", "en"), root=root, out=out, seed=1)
    data = PreparedData.open(out, "train")
    assert [float(data.sources(index)[0][0, 0]) for index in range(6)] == [0, 1, 2, 3, 4, 5]
    assert data.source_lengths.tolist() == [VECTORS] * 6
    assert load_vocabularies(out)[0] == ()


def test_one_vector_each_and_half_precision(root: Path) -> None:
    np.save(root / "toy/train.npy", matrices(6, 0)[:, 0].astype(np.float16))
    make(root)
    data = PreparedData.open(root.parent / "out", "train")
    assert data.sources(3)[1].shape == (1, WIDTH)
    (plan,) = plan_epoch(data.source_lengths, data.target_lengths, epoch=0, seed=1, max_tokens=60)
    features = collate(data, plan).sources[1].values
    assert (features.shape, features.dtype.itemsize) == ((4, 1, WIDTH), 4)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((6, 3, 4)), r"train\.npy: features must be float16 or float32, but are float64"),
        (np.zeros((6, 3, 4), np.int64), "but are int64"),
        (np.zeros(6, np.float32), r"N x S x D or N x D, but it has the shape \(6,\)"),
        (np.zeros((6, 0, 4), np.float32), r"has the shape \(6, 0, 4\)"),
        (np.zeros((6, 3, 7), np.float32), "must have the width 4, but have 7"),
        (np.zeros((5, 3, 4), np.float32), "one matrix for each of the 6 lines, but has 5"),
        (np.full((6, 3, 4), np.nan, np.float32), "row 0: features must be finite"),
        (np.array([{}]), "not a readable .npy array"),
    ],
)
def test_files_that_are_refused(root: Path, array: np.ndarray, message: str) -> None:
    np.save(root / "toy/train.npy", array)
    with pytest.raises(CorpusError, match=message):
        make(root, features=(0, WIDTH))


def test_missing_and_damaged_files(root: Path) -> None:
    (root / "toy/test.npy").write_bytes(b"no array")
    with pytest.raises(CorpusError, match=r"test\.npy: not a readable .npy array"):
        make(root)
    (root / "toy/test.npy").unlink()
    with pytest.raises(CorpusError, match="No such file"):
        make(root)


def test_every_file_must_have_the_width_of_the_first(root: Path) -> None:
    np.save(root / "toy/valid.npy", np.zeros((2, 3, 7), np.float32))
    with pytest.raises(CorpusError, match="must have the width 7, but have 4"):
        make(root)


def test_features_that_changed_or_moved_since(root: Path) -> None:
    make(root)
    out = root.parent / "out"
    np.save(root / "toy/train.npy", matrices(3, 0))
    with pytest.raises(CorpusError, match=r"train\.npy has lost rows"):
        PreparedData.open(out, "train")
    with pytest.raises(ConfigError, match=r"the content of toy/train\.npy changed"):
        make(root)
    (root / "toy/train.npy").unlink()
    with pytest.raises(CorpusError, match="put it back, or prepare again"):
        PreparedData.open(out, "train")
    np.save(root / "toy/train.npy", matrices(6, 0))
    (out / "train.rows.npy").unlink()
    with pytest.raises(CorpusError, match="cannot be read"):
        PreparedData.open(out, "train")


OTHER = replace(CORPUS, name="other", source=("toy/{split}.npy", "toy/{split}.de"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"join_share": 0.1}, "join_share must be 0 with a source of feature vectors, .* but is 0.1"),
        ({"corpora": (replace(CORPUS, source=("{split}.npy",)),), "copy_share": 0.1}, "copy_share must be 0"),
        ({"copy_share": 0.2}, "copy_share must be 0 with several sources, but is 0.2"),
        ({"corpora": (CORPUS, OTHER)}, "feature vectors in the same sources"),
    ],
)
def test_what_features_exclude(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **change)


def test_the_target_is_text() -> None:
    with pytest.raises(ConfigError, match="target must be text"):
        replace(CORPUS, target="toy/{split}.npy")


def test_parallel_columns(root: Path) -> None:
    paths = [root / "toy/test.de", root / "toy/test.npy", root / "toy/test.en"]
    text, features, gold = read_columns(paths, (0, WIDTH))
    assert (len(text), len(gold)) == (2, 2)
    assert isinstance(features, FeatureArray)
    assert [float(one[0, 0]) for one in features[1:]] == [201]
    with pytest.raises(CorpusError, match=r"test\.npy: has 2 segments, but .*train\.en has 6"):
        read_columns([root / "toy/train.de", root / "toy/test.npy", root / "toy/train.en"], (0, WIDTH))
    with pytest.raises(CorpusError, match="width 9, but have 4"):
        read_columns(paths, (0, 9))
    assert map_features(paths[1]).shape == (2, VECTORS, WIDTH)
