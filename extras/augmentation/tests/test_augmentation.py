"""What a training batch becomes: another segmentation of the same text, untidy sources, and nothing where not asked."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tandem.extras.augmentation.augmentation import Augmentation, load_augmentation
from tandem.extras.augmentation.rewriters import Rewriters, ShardRewriter
from tandem.models.errors import ConfigError
from tandem.models.vocabulary import EOS, SentencePieceVocabulary, Vocabulary
from tandem.training.data.batches import collate
from tandem.training.data.config import AugmentationConfig, CorpusConfig, DataConfig, NoiseConfig, VocabularyConfig
from tandem.training.data.dataset import PreparedData, load_vocabularies
from tandem.training.data.plans import BatchPlan
from tandem.training.data.prepare import prepare
from tandem.training.data.stream import Stream, TextRewriting
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe
from tests.training.toy import write_lines

GERMAN = ["Der", "Hund", "Katze", "Bahnhof", "läuft", "sieht", "gross", "kleine", "und", "mit,", "von", "heute!"]
ENGLISH = ["The", "dog", "cat", "station", "runs", "sees", "big", "small", "and", "with,", "of", "today!"]
CORPUS = CorpusConfig("toy", ("toy/{split}.de",), "toy/{split}.en", "CC0", "nobody")
TAGGED = replace(CORPUS, both_ways=True)
BACK = CorpusConfig("back", ("back/{split}.de",), "back/{split}.en", "CC0", "nobody", splits=("train",))
CONFIG = DataConfig(
    (CORPUS,), vocabulary=VocabularyConfig(size=420), max_source_tokens=60, max_target_tokens=60, placeholder_share=0.1
)


def write(root: Path, name: str, count: int, seed: int) -> None:
    rng = random.Random(seed)
    rows = [[rng.randrange(12) for _ in range(rng.randint(3, 9))] for _ in range(count)]
    for code, words in (("de", GERMAN), ("en", ENGLISH)):
        lines = [f"{' '.join(words[i] for i in row)} Tom {seed}{n}" for n, row in enumerate(rows)]
        write_lines(root / f"{name}.{code}", lines)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpora")
    for name, count, seed in (("toy/train", 200, 1), ("toy/valid", 20, 2), ("toy/test", 20, 3), ("back/train", 60, 4)):
        write(root, name, count, seed)
    return root


def made(root: Path, out: Path, config: DataConfig) -> Path:
    prepare(config, languages=("de", "en"), root=root, out=out, seed=1)
    return out


@pytest.fixture(scope="module")
def plain(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(root, tmp_path_factory.mktemp("plain") / "data", CONFIG)


@pytest.fixture(scope="module")
def tagged(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = replace(CONFIG, corpora=(TAGGED, replace(BACK, back_translated=True)), tagged=True)
    return made(root, tmp_path_factory.mktemp("tagged") / "data", config)


def recipe(config: DataConfig) -> Recipe:
    return Recipe("toy", "translate", ("de",), "en", config, "dpn")


def load(folder: Path, **changes: object) -> tuple[Augmentation, PreparedData, SentencePieceVocabulary]:
    augmentation = load_augmentation(recipe(replace(CONFIG, **changes)), folder)  # type: ignore[arg-type]
    (vocabulary,), _ = load_vocabularies(folder)
    assert isinstance(vocabulary, SentencePieceVocabulary)
    return augmentation, PreparedData.open(folder, "train"), vocabulary


ALL = np.arange(200)


def texts(data: PreparedData, vocabulary: Vocabulary) -> list[tuple[str, str]]:
    return [
        (vocabulary.decode(data.sources(index)[0][:-1].tolist()), vocabulary.decode(data.target(index).tolist()))
        for index in range(len(data))
    ]


def test_dropout_cuts_otherwise_and_says_the_same(plain: Path) -> None:
    augment, data, vocabulary = load(plain, bpe_dropout_source=0.3)
    assert augment.rewrites(0)
    new = augment.rewritten(data, ALL, 0)
    assert texts(new, vocabulary) == texts(data, vocabulary)
    assert new.source_lengths.sum() > 1.2 * data.source_lengths.sum()
    assert all(new.sources(index)[0][-1] == EOS for index in range(200))
    np.testing.assert_array_equal(new.target_side.tokens, data.target_side.tokens)
    marks = set(vocabulary.placeholders)
    pairs = [index for index in range(200) if marks & set(data.target(index).tolist())]
    assert len(pairs) == 20
    for index in pairs:  # placeholders stay whole
        assert marks & set(data.sources(index)[0].tolist()) == marks & set(new.sources(index)[0].tolist())


def test_the_target_has_a_rate_of_its_own(plain: Path) -> None:
    augment, data, vocabulary = load(plain, bpe_dropout_target=0.3)
    new = augment.rewritten(data, ALL, 0)
    assert texts(new, vocabulary) == texts(data, vocabulary)
    assert new.target_lengths.sum() > 1.2 * data.target_lengths.sum()
    np.testing.assert_array_equal(new.source_lengths, data.source_lengths)


def test_a_pair_is_a_function_of_seed_epoch_and_number(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.extras.augmentation.augmentation.BLOCK", 64)
    augment, data, _ = load(plain, bpe_dropout_source=0.3, noise=NoiseConfig(0.2, 0.2, 0.2))

    def tokens(augmentation: Augmentation, pairs: Sequence[int], epoch: int) -> list[list[int]]:
        new = augmentation.rewritten(data, np.array(pairs), epoch)
        return [new.sources(index)[0].tolist() for index in range(len(new))]

    first = tokens(augment, range(200), 0)
    assert tokens(augment, [5, 70, 71, 199], 0) == [first[5], first[70], first[71], first[199]]
    assert tokens(augment, range(64, 128), 0) == first[64:128]
    assert tokens(pickle.loads(pickle.dumps(augment)), range(200), 0) == first
    assert tokens(augment, range(200), 1) != first
    assert tokens(replace(augment, seed=2), range(200), 0) != first


def test_noise_touches_so_many_sources_and_no_target(plain: Path) -> None:
    augment, data, vocabulary = load(plain, noise=NoiseConfig(lower_case=0.5))
    before, after = texts(data, vocabulary), texts(augment.rewritten(data, ALL, 3), vocabulary)
    assert [target for _, target in after] == [target for _, target in before]
    lowered = [source.lower() == changed for (source, _), (changed, _) in zip(before, after, strict=True)]
    same = [source == changed for (source, _), (changed, _) in zip(before, after, strict=True)]
    assert 60 < sum(lowered) < 140
    assert all(one or other for one, other in zip(lowered, same, strict=True))


def test_every_kind_of_noise_arrives(plain: Path) -> None:
    for kind in ("lower_case", "no_punctuation", "typos"):
        augment, data, vocabulary = load(plain, noise=NoiseConfig(**{kind: 1.0}))
        new = augment.rewritten(data, ALL, 0)
        pairs = zip(texts(data, vocabulary), texts(new, vocabulary), strict=True)
        changed = sum(before[0] != after[0] for before, after in pairs)
        assert changed > 120, kind


def test_sequences_that_would_be_too_long_stay(plain: Path) -> None:
    augment, data, _ = load(plain, bpe_dropout_source=0.9, bpe_dropout_target=0.9)
    source, target = int(data.source_lengths.max()), int(data.target_lengths.max())
    config = replace(augment.config, max_source_tokens=source, max_target_tokens=target)
    new = replace(augment, config=config).rewritten(data, ALL, 0)
    for before, after, most in (
        (data.source_lengths, new.source_lengths, source),
        (data.target_lengths, new.target_lengths, target),
    ):
        assert 0 < sum(after > before) < 200
        assert after.max() <= most


def test_cut_sources_stay_cut(root: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, max_source_tokens=10, truncate_source=True, placeholder_share=0.0)
    folder = made(root, tmp_path / "data", config)
    augmentation = load_augmentation(recipe(replace(config, bpe_dropout_source=0.5)), folder)
    data = PreparedData.open(folder, "train")
    new = augmentation.rewritten(data, ALL, 0)
    assert new.source_lengths.max() == 10
    changed = sum(new.sources(index)[0].tolist() != data.sources(index)[0].tolist() for index in range(200))
    assert changed > 150


def test_tags_stay_in_front_and_only_there(tagged: Path) -> None:
    corpora = (TAGGED, replace(BACK, back_translated=True))
    augment, data, vocabulary = load(tagged, corpora=corpora, tagged=True, join_share=0.5, bpe_dropout_source=0.3)
    english, german, back = (vocabulary.id_of(tag) for tag in ("⟨en⟩", "⟨de⟩", "⟨bt⟩"))
    groups = augment.tags.groups(data)
    assert groups is not None
    assert len(data) == 460 and len(np.unique(groups)) == 3
    first = [data.sources(index)[0][:2].tolist() for index in range(len(data))]
    assert [one[0] for one in first] == [english] * 200 + [german] * 200 + [english] * 60
    assert [one[1] == back for one in first] == [False] * 400 + [True] * 60
    chosen = np.arange(len(data))
    new = augment.rewritten(data, chosen, 0)
    assert [new.sources(index)[0][:2].tolist() for index in range(400, 460)] == first[400:]
    assert new.source_lengths.sum() > 1.2 * data.source_lengths.sum()
    for given in (data, new):
        plan = BatchPlan(((0, 1), (7,), (200, 201), (400, 401, 402)), 90, 90)
        batch = collate(given, plan, augment.tags.before)
        rows, tags = batch.sources[0].values, {english, german, back}
        for row, expected in zip(rows, ([english], [english], [german], [english, back]), strict=True):
            found = [token for token in row.tolist() if token in tags]
            assert found == expected == row[: len(expected)].tolist()
        before = collate(given, plan)
        assert torch.equal(batch.target_out, before.target_out), "targets have no tags"
        assert before.source_tokens - batch.source_tokens == 1 + 1 + 2 * 2
    singles = BatchPlan(((0,), (200,)), 90, 90)
    alone, plain = collate(data, singles, augment.tags.before), collate(data, singles)
    assert torch.equal(alone.sources[0].values, plain.sources[0].values)


def test_batches_are_planned_by_the_new_lengths_whoever_computes_them(tagged: Path) -> None:
    corpora = (TAGGED, replace(BACK, back_translated=True))
    augment, data, _ = load(tagged, corpora=corpora, tagged=True, join_share=0.3, bpe_dropout_source=0.3)
    limits: dict[str, Any] = {
        "seed": 1,
        "max_tokens": 400,
        "join_share": 0.3,
        "max_source_tokens": 60,
        "max_target_tokens": 60,
    }
    rewriting = TextRewriting(partial(ShardRewriter, augment, Rewriters(tagged)))
    stream = Stream(data, 2, Processes(), augment.tags, rewriting, **limits)
    updates = list(islice(stream.updates(), 8))
    for update in updates:
        for batch in update.batches:
            source, target = batch.sources[0].values, batch.target_out
            assert source.shape[1] <= 60 and target.shape[1] <= 60
            assert source.numel() + target.numel() <= 2 * 400
    both = [Stream(data, 2, Processes(rank, 2), augment.tags, rewriting, **limits) for rank in (0, 1)]
    of_both = [list(islice(stream.updates(), 8)) for stream in both]
    for alone, first, second in zip(updates, *of_both, strict=True):
        for batch, shared in zip(alone.batches, (*first.batches, *second.batches), strict=True):
            assert torch.equal(batch.sources[0].values, shared.sources[0].values)
    plans = list(stream.plans(0))
    assert sorted(pair for plan in plans for item in plan.items for pair in item) == list(range(len(data)))
    assert list(stream.plans(1)) != plans


def test_vocabularies_that_cannot_are_refused(root: Path, tmp_path: Path) -> None:
    unigram = replace(CONFIG, vocabulary=VocabularyConfig(size=322, model_type="unigram"))
    folder = made(root, tmp_path / "unigram", unigram)
    with pytest.raises(ConfigError, match="type bpe, but it has a unigram one"):
        load_augmentation(recipe(replace(CONFIG, bpe_dropout_source=0.1)), folder)
    assert load_augmentation(recipe(replace(CONFIG, noise=NoiseConfig(typos=0.1))), folder).config.noise.typos == 0.1
    words = replace(CONFIG, vocabulary=VocabularyConfig(kind="word", size=60, joint=False))
    folder = made(root, tmp_path / "words", words)
    with pytest.raises(ConfigError, match="need sentencepiece"):
        load_augmentation(recipe(replace(CONFIG, noise=NoiseConfig(typos=0.1))), folder)


PAIRWISE = AugmentationConfig(substitutes=0.6, names=0.3, borders=0.4, joins=0.1, capitals=0.1, ends=0.2)


def test_pairs_are_changed_on_both_sides(plain: Path) -> None:
    augment, data, vocabulary = load(plain, augmentation=PAIRWISE)
    assert augment.rewrites(0)
    new = augment.rewritten(data, ALL, 0)
    pairs = list(zip(texts(data, vocabulary), texts(new, vocabulary), strict=True))
    changed = [(old, now) for old, now in pairs if old != now]
    assert 100 < len(changed) < 200
    assert all(old[0] != now[0] and (old[1] != now[1] or now[0] == now[0].title()) for old, now in changed)
    digits = [sorted(filter(str.isdigit, side)) for _, now in changed for side in now]
    assert digits[::2] == digits[1::2]  # whatever was put in stands on both sides
    assert all(new.sources(index)[0][-1] == EOS for index in range(200))


def test_changed_pairs_are_a_function_of_seed_epoch_and_pair(plain: Path) -> None:
    augment, data, vocabulary = load(plain, augmentation=PAIRWISE, noise=NoiseConfig(typos=0.3))
    first = texts(augment.rewritten(data, ALL, 0), vocabulary)
    assert texts(augment.rewritten(data, ALL, 0), vocabulary) == first
    assert texts(augment.rewritten(data, ALL[50:90], 0), vocabulary) == first[50:90]
    assert texts(augment.rewritten(data, ALL, 1), vocabulary) != first
    assert texts(replace(augment, seed=2).rewritten(data, ALL, 0), vocabulary) != first


def test_tagged_pairs_keep_their_tags_and_get_their_targets_quotation_marks(tagged: Path) -> None:
    config = replace(CONFIG, corpora=(TAGGED, replace(BACK, back_translated=True)), tagged=True)
    config = replace(config, augmentation=AugmentationConfig(borders=1.0))
    augment = load_augmentation(recipe(config), tagged)
    data = PreparedData.open(tagged, "train")
    everything = np.arange(len(data))
    new = augment.rewritten(data, everything, 0)
    before = augment.tags.before(data.source_sides[0], everything)
    np.testing.assert_array_equal(augment.tags.before(new.source_sides[0], everything), before)
    for index, tags in enumerate(before.tolist()):
        assert data.sources(index)[0][:tags].tolist() == new.sources(index)[0][:tags].tolist()
    (vocabulary,), _ = load_vocabularies(tagged)
    german = vocabulary.language_tag("de")
    quoted = {mark: set() for mark in ("„", "“")}  # type: dict[str, set[bool]]
    for index in range(len(new)):
        target = vocabulary.decode(new.target(index).tolist())
        if target[0] in quoted:
            quoted[target[0]].add(int(new.sources(index)[0][0]) == german)
    assert quoted == {"„": {True}, "“": {False}}


def test_a_pair_that_would_get_too_long_stays_whole(plain: Path) -> None:
    shortest = int(max(PreparedData.open(plain, "train").source_lengths.max(), 20))
    changes = {"augmentation": PAIRWISE, "max_source_tokens": shortest, "max_target_tokens": shortest}
    augment, data, vocabulary = load(plain, **changes)
    new = augment.rewritten(data, ALL, 0)
    assert new.source_lengths.max() <= shortest and new.target_lengths.max() <= shortest
    for index, (old, now) in enumerate(zip(texts(data, vocabulary), texts(new, vocabulary), strict=True)):
        assert (old == now) or (old[0] != now[0]), index


def test_some_sources_have_a_piece_in_bytes_and_the_same_text(plain: Path) -> None:
    augment, data, vocabulary = load(plain, augmentation=AugmentationConfig(spelt=0.5))
    new = augment.rewritten(data, ALL, 0)
    assert texts(new, vocabulary) == texts(data, vocabulary)
    longer = new.source_lengths > data.source_lengths
    assert 50 < longer.sum() < 150
    np.testing.assert_array_equal(new.target_side.tokens, data.target_side.tokens)
