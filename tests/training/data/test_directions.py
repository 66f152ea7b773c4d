"""Tagged recipes: both ways of a corpus, several pairs, back-translations; what lands in the folder."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.errors import ConfigError, VocabularyError
from tandem.models.vocabulary import TaggedVocabulary, train_sentencepiece
from tandem.training.data.batches import collate
from tandem.training.data.config import CorpusConfig, DataConfig, VocabularyConfig
from tandem.training.data.dataset import PreparedData, load_vocabularies, text_path
from tandem.training.data.directions import (
    NO_TAGS,
    directed_corpora,
    reserved_languages,
    source_tags,
    translated_pairs,
)
from tandem.training.data.plans import BatchPlan
from tandem.training.data.prepare import prepare
from tandem.training.data.summary import PreparedSummary
from tandem.training.recipe import Recipe
from tests.training.toy import write_lines

WORDS = {"de": ["hund", "katze", "haus", "tag"], "en": ["dog", "cat", "house", "day"], "fr": ["a", "b", "c", "d"]}


def corpus(name: str, source: str, target: str, **changes: Any) -> CorpusConfig:
    paths: dict[str, Any] = {"source": (f"{name}/{{split}}.{source}",), "target": f"{name}/{{split}}.{target}"}
    return CorpusConfig(name, **paths, licence="CC0", attribution="nobody", **changes)


BOTH = corpus("one", "de", "en", both_ways=True)
FRENCH = corpus("two", "fr", "en", languages=("fr", "en"), repeat=2)
BACK = corpus("three", "de", "en", splits=("train",), back_translated=True)
CONFIG = DataConfig((BOTH, FRENCH, BACK), vocabulary=VocabularyConfig(size=330), tagged=True, placeholder_share=0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = random.Random(3)
    folder = tmp_path / "corpora"
    for name, languages in (("one", ("de", "en")), ("two", ("fr", "en")), ("three", ("de", "en"))):
        for split, count in (("train", 50), ("valid", 5), ("test", 5)):
            rows = [[rng.randrange(4) for _ in range(6)] + [n] for n in range(count)]
            for code in languages:
                lines = [" ".join([*(WORDS[code][i] for i in row[:-1]), f"{name}{split}{row[-1]}"]) for row in rows]
                write_lines(folder / name / f"{split}.{code}", lines)
    return folder


def made(root: Path, config: DataConfig = CONFIG, **options: Any) -> PreparedSummary:
    return prepare(config, languages=("de", "en"), root=root, out=root.parent / "out", seed=1, **options)


def recipe(config: DataConfig = CONFIG, **changes: Any) -> Recipe:
    return Recipe(
        **({"name": "x", "task": "translate", "source_languages": ("de",), "target_language": "en"} | changes),
        data=config,
        architecture="dpn",
    )


def test_directions_and_their_tags() -> None:
    found = directed_corpora(CONFIG, ("de", "en"))
    assert [(one.corpus.name, one.languages, one.reversed, one.tags) for one in found] == [
        ("one", ("de", "en"), False, ("⟨en⟩",)),
        ("one.reversed", ("en", "de"), True, ("⟨de⟩",)),
        ("two", ("fr", "en"), False, ("⟨en⟩",)),
        ("three", ("de", "en"), False, ("⟨en⟩", "⟨bt⟩")),
    ]
    assert found[1].corpus.paths("valid") == ("one/valid.en", "one/valid.de")
    assert translated_pairs(CONFIG, ("de", "en")) == (("de", "en"), ("en", "de"), ("fr", "en"))
    assert recipe().pairs == (("de", "en"), ("fr", "en"), ("en", "de")), "those into the target language first"
    assert reserved_languages(CONFIG, ("de", "en")) == ("de", "en", "fr")
    plain = replace(CONFIG, corpora=(corpus("one", "de", "en"),), tagged=False)
    assert recipe(plain).pairs == ()
    assert [one.tags for one in directed_corpora(plain, ("de", "en"))] == [()]


def test_sources_begin_with_their_tags(root: Path) -> None:
    summary = made(root)
    data = PreparedData.open(root.parent / "out", "train")
    (vocabulary,), target = load_vocabularies(root.parent / "out")
    assert len(data) == 50 + 50 + 100 + 50
    begins = Counter(
        tuple(piece for piece in map(vocabulary.piece_of, data.sources(index)[0][:3].tolist()) if piece[0] == "⟨")
        for index in range(len(data))
    )
    assert begins == {("⟨en⟩",): 150, ("⟨de⟩",): 50, ("⟨en⟩", "⟨bt⟩"): 50}
    forth, back = data.sources(7)[0][1:-1].tolist(), data.target(57).tolist()
    assert vocabulary.decode(forth) == target.decode(back), "the same pair, turned"
    assert [(one.name, one.segments) for one in summary.corpora] == [("one", 50), ("two", 50), ("three", 50)]
    valid = PreparedData.open(root.parent / "out", "valid")
    assert len(valid) == 15
    english = text_path(root.parent / "out", "one.reversed", "valid", "source0").read_text(encoding="utf-8")
    assert english == text_path(root.parent / "out", "one", "valid", "target").read_text(encoding="utf-8")


def test_pairs_are_told_apart_by_their_tags(root: Path) -> None:
    """Of a joined item the first pair alone keeps its own, and only pairs of the same ones are joined."""
    made(root)
    out = root.parent / "out"
    data, (first, *_) = PreparedData.open(out, "train"), load_vocabularies(out)[0]
    tags = source_tags(CONFIG, ("de", "en"), out)
    assert (tags.ids, tags.codes) == (tuple(map(first.id_of, ("⟨en⟩", "⟨de⟩", "⟨bt⟩"))), ("en", "de", "bt"))
    groups = tags.groups(data)
    assert groups is not None
    runs = [groups[begin:end] for begin, end in ((0, 50), (50, 100), (100, 200), (200, 250))]
    assert [len(set(run.tolist())) for run in runs] == [1, 1, 1, 1], "a corpus, in the order of the recipe"
    numbers = [int(run[0]) for run in runs]
    assert numbers[0] == numbers[2] and len({*numbers}) == 3
    everything = np.arange(len(data))
    assert tags.before(data.source_sides[0], everything).tolist() == [1] * 200 + [2] * 50
    batch = collate(data, BatchPlan(((200, 201, 202), (50, 51)), 90, 90), tags.before)
    found = [[token for token in row if token in tags.ids] for row in batch.sources[0].values.tolist()]
    assert found == [[tags.ids[0], tags.ids[2]], [tags.ids[1]]]
    plain = replace(CONFIG, corpora=(corpus("one", "de", "en"),), tagged=False)
    assert source_tags(plain, ("de", "en"), out) == NO_TAGS and NO_TAGS.groups(data) is None
    assert NO_TAGS.before(data.source_sides[0], everything).tolist() == [0] * len(data)


def test_what_is_held_out_is_held_out_both_ways(root: Path) -> None:
    for code in ("de", "en"):
        held = (root / f"one/valid.{code}").read_text()
        with (root / f"one/train.{code}").open("a") as file:
            file.write(held)
    assert made(root).splits["train"].dropped == {"held_out": 10}


def test_a_bundles_vocabulary_sets_no_second_tag(root: Path) -> None:
    lines = [line for path in root.rglob("train.*") for line in path.read_text().splitlines()]
    plain = train_sentencepiece(lines, size=330, languages=("de", "en", "fr", "bt"), seed=1)
    tagged = TaggedVocabulary(plain, "en")
    made(root, vocabularies=(tagged, plain))
    first = PreparedData.open(root.parent / "out", "train").sources(0)[0].tolist()
    assert first.count(plain.language_tag("en")) == 1
    without = train_sentencepiece(lines, size=330, languages=("de", "en", "fr"), seed=1)
    with pytest.raises(VocabularyError, match="no piece '⟨bt⟩'"):
        made(root, vocabularies=(without, without), force=True)


def test_rewriting_needs_no_new_preparation(root: Path) -> None:
    first = made(root)
    assert made(root, replace(CONFIG, bpe_dropout_source=0.1)) == first
    with pytest.raises(ConfigError, match="prepared differently"):
        made(root, replace(CONFIG, corpora=(BOTH, FRENCH)))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tagged": False}, "both_ways and languages need tagged"),
        ({"vocabulary": VocabularyConfig(joint=False)}, "vocabulary joint = true"),
        ({"vocabulary": VocabularyConfig(kind="word")}, "vocabulary kind = 'sentencepiece'"),
        ({"corpora": (replace(BOTH, both_ways=False, languages=("fr", "en")),)}, "no corpus with the split train is"),
        ({"corpora": (BOTH, replace(FRENCH, languages=("en", "en")))}, "source and target of a corpus are both 'en'"),
    ],
)
def test_recipes_that_make_no_sense(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        recipe(replace(CONFIG, **changes))


def test_corpora_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="one per source and the target's"):
        corpus("x", "de", "en", languages=("de",))
    with pytest.raises(ConfigError, match="back_translated needs splits"):
        corpus("x", "de", "en", back_translated=True)
    with pytest.raises(ConfigError, match="needs the task 'translate'"):
        recipe(task="summarize")


def test_arrays_are_the_same_as_of_an_untagged_recipe_but_for_the_tags(root: Path) -> None:
    """A recipe without tags is not touched by any of this: same vocabulary given, same tokens."""
    lines = [line for path in root.rglob("train.*") for line in path.read_text().splitlines()]
    plain = train_sentencepiece(lines, size=330, languages=("de", "en"), seed=1)
    one = replace(CONFIG, corpora=(corpus("one", "de", "en"),))
    made(root, replace(one, tagged=False), vocabularies=(plain, plain))
    before = PreparedData.open(root.parent / "out", "train")
    old = [before.sources(index)[0].copy() for index in range(len(before))]
    made(root, one, vocabularies=(plain, plain), force=True)
    after = PreparedData.open(root.parent / "out", "train")
    for index, ids in enumerate(old):
        np.testing.assert_array_equal(after.sources(index)[0], [plain.language_tag("en"), *ids])
