"""Preparation of post-editing: targets become edits of the last source."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.models.errors import ConfigError, VocabularyError
from tandem.models.vocabulary import EDITS, train_sentencepiece
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.models.vocabulary.edits import Operations, apply
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from tandem.training.data.dataset import PreparedData, load_dictionary, load_vocabularies
from tandem.training.data.prepare import prepare
from tandem.training.data.summary import PreparedSummary
from tandem.training.data.vocabularies import most_frequent_words
from tests.training.toy import write_lines

WORDS = ["das", "haus", "ist", "gross", "klein", "und", "rot", "maus", "läuft", "heute"]
ENGLISH = [f"the{word}" for word in WORDS]
CORPUS = CorpusConfig("ape", ("{split}.src", "{split}.mt"), "{split}.pe", "CC0", "nobody")
CONFIG = DataConfig(
    (CORPUS,),
    filters=FilterConfig(deduplicate=False),
    vocabulary=VocabularyConfig(size=340),
    max_source_tokens=80,
    max_target_tokens=80,
    placeholder_share=0.0,
    target_form="edits",
)
SIDES = ("src", "mt", "pe")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Translations that lack words, have others too many, and keep a name and a number."""
    chance = random.Random(3)
    for split, count in (("train", 120), ("valid", 10), ("test", 10)):
        lines: dict[str, list[str]] = {side: [] for side in SIDES}
        for number in range(count):
            rows = [chance.randrange(len(WORDS)) for _ in range(chance.randint(2, 7))]
            words = [WORDS[row] for row in rows]
            lines["src"].append(" ".join([ENGLISH[row] for row in rows] + ["Tom", str(number)]))
            lines["mt"].append(" ".join([*words[1:], "äh", "Tom", str(number)]))
            lines["pe"].append(" ".join([*words, "Tom", str(number)]))
        for side in SIDES:
            write_lines(tmp_path / f"{split}.{side}", lines[side])
    return tmp_path


def make(root: Path, config: DataConfig = CONFIG, **options: object) -> PreparedSummary:
    return prepare(config, languages=("en", "de", "de"), root=root, out=root / "out", seed=1, **options)  # type: ignore[arg-type]


def column(root: Path, side: str) -> list[str]:
    return (root / f"train.{side}").read_text(encoding="utf-8").splitlines()


def test_targets_are_edits_that_lead_to_the_post_edit(root: Path) -> None:
    make(root)
    data = PreparedData.open(root / "out", "train")
    sources, target = load_vocabularies(root / "out")
    assert {vocabulary.to_bytes() for vocabulary in sources} == {target.to_bytes()}
    operations = Operations.of(target)
    for index, (translation, wanted) in enumerate(zip(column(root, "mt"), column(root, "pe"), strict=True)):
        before = data.sources(index)[1].tolist()
        assert target.decode(before) == translation
        script = data.target(index).tolist()
        assert target.decode(apply(script, before[:-1], operations)) == wanted
        assert script.count(operations.keep) + script.count(operations.delete) == len(before) - 1
        assert script.count(operations.keep) > len(script) / 3


def test_placeholders_are_kept_not_written(root: Path) -> None:
    summary = make(root, replace(CONFIG, placeholder_share=0.5))
    assert summary.splits["train"].placeholders == 60
    data = PreparedData.open(root / "out", "train")
    target = load_vocabularies(root / "out")[1]
    marks = set(target.placeholders)
    marked = 0
    for index in range(len(data)):
        used = set(data.sources(index)[1].tolist()) & marks
        marked += bool(used)
        assert not set(data.target(index).tolist()) & marks
        edited = apply(data.target(index).tolist(), data.sources(index)[1].tolist(), Operations.of(target))
        assert set(edited) & marks == used
    assert marked == 60


def test_edits_count_towards_the_limit(root: Path) -> None:
    """A script names the words of the translation that it deletes as well."""
    pieces = make(root, replace(CONFIG, vocabulary=VocabularyConfig(kind="word", size=200), max_target_tokens=8))
    data = PreparedData.open(root / "out", "train")
    assert data.target_lengths.max() == 8
    assert pieces.splits["train"].dropped == {"target_tokens": 120 - len(data)}
    assert len(data) == sum(len(line.split()) + 2 <= 8 for line in column(root, "pe"))


def test_words_work_the_same_and_bring_a_dictionary(root: Path) -> None:
    words = Dictionary((dict(zip(ENGLISH, WORDS, strict=True)),))
    asked: list[tuple[int, tuple[str, ...], int]] = []

    def align(columns: Sequence[Sequence[str]], languages: Sequence[str], seed: int) -> Dictionary:
        asked.append((len(columns), tuple(languages), seed))
        return words

    make(root, replace(CONFIG, vocabulary=VocabularyConfig(kind="word", size=44)), dictionary=align)
    assert asked == [(3, ("en", "de", "de"), 1)]
    target = load_vocabularies(root / "out")[1]
    operations = Operations.of(target)
    data = PreparedData.open(root / "out", "train")
    for index, line in enumerate(column(root, "pe")):
        script = data.target(index).tolist()
        assert script[0] == target.encode(line)[0]  # what the translation lacks
        assert script[1:] == [operations.keep] * (len(line.split()) - 3) + [operations.delete] + [operations.keep] * 2
    held = load_dictionary(root / "out")
    assert held == words


def test_sentencepiece_has_no_dictionary(root: Path) -> None:
    make(root)
    assert not (root / "out" / "dictionary.tsv").exists()
    assert load_dictionary(root / "out") == Dictionary()


def test_plain_targets_and_their_vocabularies_stay_as_they_were(root: Path) -> None:
    make(root, replace(CONFIG, target_form="text"))
    (first, _), target = load_vocabularies(root / "out")
    assert first.to_bytes() == target.to_bytes()
    with pytest.raises(VocabularyError, match="no piece '⟨keep⟩'"):
        Operations.of(target)
    index = 7
    assert target.decode(PreparedData.open(root / "out", "train").target(index).tolist()) == column(root, "pe")[index]


def test_given_vocabularies_must_fit(root: Path) -> None:
    lines = [line for side in SIDES for line in column(root, side)]
    plain = train_sentencepiece(lines, size=340, languages=("en", "de"), seed=1)
    editing = train_sentencepiece(lines, size=340, languages=("en", "de"), seed=1, further=EDITS)
    with pytest.raises(VocabularyError, match="no piece '⟨keep⟩'"):
        make(root, vocabularies=(plain, plain, plain))
    with pytest.raises(ConfigError, match="one vocabulary for the last source and the target"):
        make(root, vocabularies=(editing, plain, editing))
    make(root, vocabularies=(plain, editing, editing))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"vocabulary": VocabularyConfig(joint=False)}, "joint must be true"),
        ({"truncate_source": True}, "truncate_source must be false"),
        (
            {"copy_share": 0.5, "corpora": (replace(CORPUS, source=("{split}.mt",)),)},
            "copy_share must be 0, but is 0.5",
        ),
        ({"corpora": (replace(CORPUS, source=("{split}.mt", "{split}.npy")),)}, "the last source must be text"),
    ],
)
def test_what_edits_exclude(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        replace(CONFIG, **changes)  # type: ignore[arg-type]


def test_operations_are_reserved() -> None:
    """Nothing that a user types is an operation."""
    text = "a ⟨keep⟩ b ⟨delete⟩"
    pieces = train_sentencepiece(["a b c"] * 9, size=284, languages=(), seed=1, further=EDITS)
    words = most_frequent_words(["a b c"] * 9, size=26, languages=(), further=EDITS)
    for vocabulary in (pieces, words):
        reserved = set(map(vocabulary.id_of, EDITS))
        assert not reserved & set(vocabulary.encode(text))
        assert reserved <= set(vocabulary.encode(text, reserved=True))
    assert pieces.decode(pieces.encode(text)) == text
    assert words.encode("c ⟨keep⟩") == [words.id_of("c"), words.unk]
