"""Processes that rewrite ahead: the same batches whoever rewrites, and an end of everything, whatever happens."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.extras.augmentation import rewriters
from tandem.extras.augmentation.augmentation import Augmentation, load_augmentation, with_texts
from tandem.extras.augmentation.rewriters import RewriterDied, Rewriters, ShardRewriter, parts_of, rewriters_here
from tandem.models.errors import CorpusError
from tandem.training.data import stream
from tandem.training.data.config import AugmentationConfig, CorpusConfig, DataConfig, NoiseConfig, VocabularyConfig
from tandem.training.data.dataset import PreparedData
from tandem.training.data.features import FeatureArray
from tandem.training.data.prepare import prepare
from tandem.training.data.stream import Group, Stream, TextRewriting
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe
from tests.shipped import ROOT
from tests.training.toy import write_lines

PATIENCE = 60.0  # seconds after which a test that waits for something has failed
PAIRS = 5600  # five and a half blocks: three shards of two, the last one not full
CONFIG = DataConfig(
    (CorpusConfig("toy", ("toy/{split}.de",), "toy/{split}.en", "CC0", "nobody", both_ways=True),),
    tagged=True,
    vocabulary=VocabularyConfig(size=380),
    max_source_tokens=60,
    max_target_tokens=60,
    placeholder_share=0.1,
    join_share=0.2,
    bpe_dropout_source=0.2,
    bpe_dropout_target=0.1,
    noise=NoiseConfig(0.2, 0.2, 0.2),
    augmentation=AugmentationConfig(0.4, 0.4, 0.3, 0.1, 0.1, 0.2, 0.05),
)
RECIPE = Recipe("toy", "translate", ("de",), "en", CONFIG, "dpn")
LIMITS: dict[str, Any] = {
    "seed": 1,
    "max_tokens": 4000,
    "join_share": 0.2,
    "join_most": 3,
    "max_source_tokens": 60,
    "max_target_tokens": 60,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, out = tmp_path_factory.mktemp("corpora"), tmp_path_factory.mktemp("prepared") / "data"
    rng = random.Random(1)
    words = {"de": ["Hund", "Katze", "läuft", "heute,"], "en": ["dog", "cat", "runs", "today,"]}
    for split, count in (("train", PAIRS // 2), ("valid", 20), ("test", 20)):
        rows = [[rng.randrange(4) for _ in range(rng.randint(2, 6))] for _ in range(count)]
        for code, own in words.items():
            lines = [f"Tom {split} {n} {' '.join(own[i] for i in row)}." for n, row in enumerate(rows)]
            write_lines(root / f"toy/{split}.{code}", lines)
    prepare(CONFIG, languages=("de", "en"), root=root, out=out, seed=1)
    return out


@pytest.fixture
def augmentation(folder: Path) -> Augmentation:
    return load_augmentation(RECIPE, folder)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several shards, of several parts each; and no process is left behind."""
    monkeypatch.setattr(stream, "SHARD", 2048)
    monkeypatch.setattr(rewriters, "PART", 1)
    yield
    assert not multiprocessing.active_children()


def rewriting_by(augmentation: Augmentation, folder: Path, processes: int) -> TextRewriting:
    return TextRewriting(partial(ShardRewriter, augmentation, Rewriters(folder, processes)), processes)


def same(first: list[Group], second: list[Group]) -> bool:
    """Whether the groups are the same to the byte, and the places after them."""
    return len(first) == len(second) and all(map(_same, first, second))


def _same(one: Group, other: Group) -> bool:
    def arrays(group: Group) -> list[bytes]:
        return [
            side.numpy().tobytes()
            for batch in group.batches
            for side in (*(source.values for source in batch.sources), batch.target_in, batch.target_out)
        ]

    places = [(group.epoch, group.batch, group.shards) for group in (one, other)]
    return places[0] == places[1] and arrays(one) == arrays(other)


def test_batches_are_the_same_whoever_rewrites(folder: Path, augmentation: Augmentation) -> None:
    data = PreparedData.open(folder, "train")
    assert len(data) == PAIRS

    def taken(processes: int, *place: Any) -> list[Group]:
        rewriting = rewriting_by(augmentation, folder, processes)
        own = Stream(data, 2, Processes(), augmentation.tags, rewriting, **LIMITS)
        with closing(own.updates(*place)) as groups:
            found: list[Group] = []
            while not found or found[-1].epoch < 1 or len(found[-1].shards) < 2:
                found.append(next(groups))
            return found

    alone = taken(0)
    assert {(group.epoch, len(group.shards)) for group in alone} >= {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)}
    assert same(taken(3), alone)
    for place in (alone[len(alone) // 3], next(group for group in alone if len(group.shards) == 2)):
        rest = alone[alone.index(place) + 1 :]
        assert same(taken(3, place.epoch, place.batch, place.shards), rest)


def test_text_is_the_same_to_the_byte(folder: Path, augmentation: Augmentation) -> None:
    data = PreparedData.open(folder, "train")
    chosen = np.arange(500, 4500, 3)
    expected = augmentation.rewritten(data, chosen, 3)
    with closing(ShardRewriter(augmentation, Rewriters(folder, 2))) as rewriting:
        assert rewriting.rewrites(3)
        found = rewriting.rewritten(data, chosen, 3)
    sides = [(*one.source_sides, one.target_side) for one in (expected, found)]
    for one, other in zip(*sides, strict=True):
        assert one.tokens.dtype == other.tokens.dtype == np.uint16
        np.testing.assert_array_equal(one.tokens, other.tokens)
        np.testing.assert_array_equal(one.offsets, other.offsets)
    assert not np.array_equal(found.target_side.tokens, data.target_side.tokens)


def test_parts_end_where_blocks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriters, "PART", 2)
    pairs = np.r_[np.arange(1020, 1030), np.arange(2048, 2060), np.arange(9000, 12000, 100)]
    parts = list(parts_of(pairs))
    np.testing.assert_array_equal(np.concatenate(parts), pairs)
    assert [sorted({int(pair) // 1024 for pair in part}) for part in parts] == [[0, 1], [2, 8], [9, 10], [11]]


def test_feature_matrices_stay_where_they_are(folder: Path, augmentation: Augmentation) -> None:
    """They are not sent from process to process: the pairs name them."""
    text = PreparedData.open(folder, "train")
    matrices = FeatureArray(
        (np.zeros((9, 4, 2), np.float32),), np.stack([np.zeros(PAIRS, int), np.arange(PAIRS) % 9], 1)
    )
    data = PreparedData((*text.source_sides, matrices), text.target_side)
    chosen = np.array([3, 5, 2000])
    sent = augmentation.rewritten_texts(data, chosen, 0)
    assert len(sent) == 2
    made = with_texts(data, chosen, [sent])
    side = made.source_sides[1]
    assert isinstance(side, FeatureArray) and side.files is matrices.files
    np.testing.assert_array_equal(side.places, matrices.places[chosen])


def test_closing_ends_the_processes_at_once(folder: Path, augmentation: Augmentation) -> None:
    """Also those that have much to do; and who only looks starts none."""
    rewriting = rewriting_by(augmentation, folder, 2)
    own = Stream(PreparedData.open(folder, "train"), 1, Processes(), augmentation.tags, rewriting, **LIMITS)
    own.updates().close()
    groups = own.updates()
    next(groups)
    assert len(multiprocessing.active_children()) == 2
    groups.close()
    assert not multiprocessing.active_children()


def test_no_process_is_started_before_there_is_something_to_rewrite(folder: Path, augmentation: Augmentation) -> None:
    late = replace(augmentation, config=replace(CONFIG, rewriting_from=5))
    rewriting = rewriting_by(late, folder, 2)
    own = Stream(PreparedData.open(folder, "train"), 1, Processes(), late.tags, rewriting, **LIMITS)
    with closing(own.updates()) as groups:
        list(itertools.islice(groups, 3))
        assert not multiprocessing.active_children()


def test_what_a_process_meets_is_raised_as_itself(folder: Path, augmentation: Augmentation, tmp_path: Path) -> None:
    rewriting = rewriting_by(augmentation, tmp_path, 2)
    own = Stream(PreparedData.open(folder, "train"), 1, Processes(), augmentation.tags, rewriting, **LIMITS)
    with closing(own.updates()) as groups, pytest.raises(CorpusError, match=str(tmp_path)):
        next(groups)
    assert not multiprocessing.active_children()


def test_a_killed_process_is_told_and_a_signal_for_the_trainer_is_not_theirs(
    folder: Path, augmentation: Augmentation
) -> None:
    data, pairs = PreparedData.open(folder, "train"), np.arange(PAIRS)
    with closing(ShardRewriter(augmentation, Rewriters(folder, 2))) as rewriting:
        rewriting.rewritten(data, pairs, 0)
        before = {child.pid for child in multiprocessing.active_children()}
        for number in before:
            assert number is not None
            assert os.getpgid(number) != os.getpgid(0)
            os.kill(number, signal.SIGINT)
        rewriting.rewritten(data, pairs, 1)
        assert {child.pid for child in multiprocessing.active_children()} == before
        os.kill(before.pop() or 0, signal.SIGKILL)
        with pytest.raises(RewriterDied, match="has ended, perhaps for want of memory: go on with --resume, and fewer"):
            rewrite_for_ever(rewriting, data)  # the other one may do some work before it is noticed


def test_processes_end_with_a_killed_trainer(folder: Path) -> None:
    code = f"import tandem.extras.augmentation.tests.test_rewriters as own; own.train_until_killed({str(folder)!r})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        children = [Path("/proc") / number for number in trainer.stdout.readline().split()]
        trainer.kill()
    assert len(children) == 2
    deadline = time.monotonic() + PATIENCE
    while any(path.exists() for path in children):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def rewrite_for_ever(rewriting: ShardRewriter, data: PreparedData) -> None:
    for epoch in itertools.count():
        rewriting.rewritten(data, np.arange(PAIRS), epoch)


def train_until_killed(folder: str) -> None:
    """What the test before kills; it prints the numbers of its processes."""
    rewriters.PART = 1
    data = PreparedData.open(Path(folder), "train")
    rewriting = ShardRewriter(load_augmentation(RECIPE, Path(folder)), Rewriters(Path(folder), 2))
    rewriting.rewritten(data, np.arange(PAIRS), 0)
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    rewrite_for_ever(rewriting, data)


@pytest.mark.parametrize(
    ("asked", "cores", "device", "here", "expected"),
    [
        (None, 64, "cpu", 1, 0),
        (None, 16, "cuda", 1, 14),
        (None, 64, "cuda", 1, 16),
        (None, 2, "cuda", 1, 0),
        (None, 1, "cuda", 1, 0),
        (None, 64, "cuda:3", 8, 6),
        (None, 8, "cuda:3", 8, 0),
        (0, 16, "cuda", 1, 0),
        (5, 16, "cpu", 1, 5),
        (40, 16, "cuda", 1, 40),
        (9, 16, "cuda:0", 4, 2),
    ],
)
def test_how_many_there_are(asked: int | None, cores: int, device: str, here: int, expected: int) -> None:
    processes = Processes(0, 2 * here, device, local_count=here)
    assert rewriters_here(asked, cores, processes) == expected
