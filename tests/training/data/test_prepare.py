"""Preparation end to end on made-up text: what lands in the folder, and when it is redone or refused."""

from __future__ import annotations

import json
import lzma
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tandem.models.errors import ConfigError, CorpusError, VocabularyError
from tandem.models.text import as_read, normalise
from tandem.models.vocabulary import MappedVocabulary, Vocabulary, train_sentencepiece
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from tandem.training.data.dataset import (
    PreparedData,
    TokenArray,
    TokenWriter,
    load_vocabularies,
    text_path,
    vocabulary_digest,
)
from tandem.training.data.prepare import prepare
from tandem.training.data.summary import PreparedSummary
from tests.models.vocabulary.test_bytepairs import VOCABULARY as BYTE_PAIRS

GERMAN = ["der", "hund", "katze", "haus", "läuft", "sieht", "groß", "klein", "und", "mit", "von", "heute"]
ENGLISH = ["the", "dog", "cat", "house", "runs", "sees", "big", "small", "and", "with", "of", "today"]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = random.Random(1)
    for split, count in (("train", 300), ("valid", 20), ("test", 20)):
        rows = [[rng.randrange(12) for _ in range(rng.randint(2, 9))] for _ in range(count)]
        german = [f"{' '.join(GERMAN[i] for i in row)} Tom {n}" for n, row in enumerate(rows)]
        english = [f"{' '.join(ENGLISH[i] for i in row)} Tom {n}" for n, row in enumerate(rows)]
        if split == "valid":
            english[0] += " and" * 80  # longer than any limit below
        write(tmp_path / "data/toy" / f"{split}.de.xz", german)
        write(tmp_path / "data/toy" / f"{split}.en.xz", english)
    return tmp_path / "data"


CORPUS = CorpusConfig("toy", ("toy/{split}.de.xz",), "toy/{split}.en.xz", "CC0", "nobody")
CONFIG = DataConfig(
    (CORPUS,), vocabulary=VocabularyConfig(size=340), max_source_tokens=60, max_target_tokens=60, placeholder_share=0.2
)


def make(root: Path, config: DataConfig = CONFIG, *, seed: int = 1, force: bool = False) -> PreparedSummary:
    out = root.parent / "out"
    return prepare(config, languages=("de", "en"), root=root, out=out, seed=seed, force=force)


def words(size: int = 60) -> DataConfig:
    return replace(CONFIG, vocabulary=VocabularyConfig(kind="word", size=size, joint=False))


def test_text_comes_back(root: Path) -> None:
    summary = make(root, replace(CONFIG, corpora=(replace(CORPUS, repeat=2),)))
    out = root.parent / "out"
    data = PreparedData.open(out, "train")
    (source,), target = load_vocabularies(out)
    german = lzma.decompress((root / "toy/train.de.xz").read_bytes()).decode().split("\n")
    plain = marked = 0
    for index in range(len(data)):
        (ids,), target_ids = data.sources(index), data.target(index)
        assert ids[-1] == source.eos
        assert len(ids) == data.source_lengths[index]
        assert len(target_ids) + 1 == data.target_lengths[index]
        used = set(ids.tolist()) & set(source.placeholders)
        assert used == set(target_ids.tolist()) & set(target.placeholders)
        marked += bool(used)
        if not used:
            plain += 1
            assert source.decode(ids.tolist()) == german[index % 300]
    assert marked == summary.splits["train"].placeholders == 120
    assert len(data) == summary.splits["train"].pairs == 600
    assert summary.corpora[0].segments == 300
    assert summary.splits["train"].source_tokens == (int(data.source_lengths.sum()),)
    (side,) = data.source_sides
    assert isinstance(side, TokenArray) and side.tokens.dtype == np.uint16


def test_sources_are_prepared_as_they_are_read_in_use(root: Path) -> None:
    """No-break and repeated spaces, soft hyphens and signs without width; targets stay as they are written."""
    german = ["der\u00a0hund  läuft\u202f!", "die kat\u00adze\u200b sieht", "das\u2009haus ist klein"] * 40
    english = ["the\u00a0dog runs\u202f!", "the cat sees", "the house is small"] * 40
    write(root / "toy/train.de.xz", german)
    write(root / "toy/train.en.xz", english)
    make(root, replace(CONFIG, filters=FilterConfig(deduplicate=False), placeholder_share=0.0))
    data = PreparedData.open(root.parent / "out", "train")
    (source,), target = load_vocabularies(root.parent / "out")
    for index, (line, reference) in enumerate(zip(german, english, strict=True)):
        assert data.sources(index)[0][:-1].tolist() == source.encode(as_read(normalise(line)))
        assert data.target(index).tolist() == target.encode(reference)


def test_a_share_of_a_corpus(root: Path) -> None:
    """Some of its pairs, in order, the same ones in both directions; evaluation text stays whole."""
    corpus = replace(CORPUS, share=0.3, repeat=2, both_ways=True)
    summary = make(root, replace(CONFIG, corpora=(corpus,), tagged=True, placeholder_share=0.0))
    data = PreparedData.open(root.parent / "out", "train")
    (source,), target = load_vocabularies(root.parent / "out")
    sources = [source.decode(data.sources(index)[0].tolist()) for index in range(len(data))]
    targets = [target.decode(data.target(index).tolist()) for index in range(len(data))]
    used = summary.corpora[0].segments
    assert 60 < used < 120
    assert len(data) == 4 * used
    assert sources[:used] == sources[used : 2 * used] == [f"⟨en⟩ {line}" for line in targets[2 * used : 3 * used]]
    assert targets[:used] == [line.removeprefix("⟨de⟩ ") for line in sources[2 * used : 3 * used]]
    german = lzma.decompress((root / "toy/train.de.xz").read_bytes()).decode().split("\n")
    numbers = [german.index(line.removeprefix("⟨en⟩ ")) for line in sources[:used]]
    assert numbers == sorted(set(numbers))
    assert not summary.splits["train"].dropped
    assert summary.splits["valid"].pairs == 2 * 20 - 2  # but for one that is too long


def test_evaluation_text_is_whole_and_its_arrays_are_not(root: Path) -> None:
    summary = make(root)
    assert summary.splits["valid"].dropped == {"target_tokens": 1}
    assert len(PreparedData.open(root.parent / "out", "valid")) == 19
    text = text_path(root.parent / "out", "toy", "valid", "target").read_text(encoding="utf-8")
    assert text.encode() == lzma.decompress((root / "toy/valid.en.xz").read_bytes())


def test_evaluation_is_filtered_on_demand_only(root: Path) -> None:
    config = replace(CONFIG, filters=FilterConfig(max_target_words=50, evaluation=True))
    assert make(root, config).splits["valid"].dropped == {"target_words": 1}
    text = text_path(root.parent / "out", "toy", "valid", "source0").read_text(encoding="utf-8")
    assert text.count("\n") == 19


def test_the_same_bytes_again(root: Path) -> None:
    make(root)
    out = root.parent / "out"
    names = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "prepared.json")
    before = {path: path.read_bytes() for path in names}
    make(root, force=True)
    assert {path: path.read_bytes() for path in names} == before
    assert not [path for path in root.parent.iterdir() if path.name.startswith(".")]


def test_reading_and_writing_in_pieces_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language in ("de", "en"):
        path = root / f"toy/train.{language}.xz"
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
        write(path, [*lines, *lines[:70], ""])
    config = replace(CONFIG, corpora=(replace(CORPUS, repeat=3),))
    whole = make(root, config)
    out = root.parent / "out"
    before = {path: path.read_bytes() for path in out.glob("*.npy")}
    monkeypatch.setattr("tandem.training.data.prepare.CHUNK", 64)
    monkeypatch.setattr("tandem.training.data.spool.CHUNK", 7)
    monkeypatch.setattr("tandem.training.data.dataset._WRITTEN_AT_ONCE", 50)
    pieces = make(root, config, force=True)
    assert replace(pieces, seconds=whole.seconds) == whole
    assert whole.splits["train"].dropped == {"duplicate": 70, "empty": 1}
    assert before and {path: path.read_bytes() for path in out.glob("*.npy")} == before


def test_the_arrays_are_as_numpy_writes_them(tmp_path: Path) -> None:
    for size, dtype in ((300, np.uint16), (70_000, np.int32)):
        writer = TokenWriter(tmp_path, "train", "target", size)
        for ids in ([5, 6], [], [7]):
            writer.add(ids)
        assert writer.total == 3
        writer.close()
        np.save(tmp_path / "expected.npy", np.array([5, 6, 7], dtype))
        assert (tmp_path / "train.target.tokens.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()
        assert np.load(tmp_path / "train.target.offsets.npy").tolist() == [0, 2, 2, 3]


def test_truncation_cuts_and_keeps_eos(root: Path) -> None:
    summary = make(root, replace(CONFIG, max_source_tokens=8, truncate_source=True))
    data = PreparedData.open(root.parent / "out", "train")
    assert len(data) == 300
    assert summary.splits["train"].truncated > 200
    assert data.source_lengths.max() == 8
    assert all(data.sources(index)[0][-1] == 3 for index in range(300))
    (source,), target = load_vocabularies(root.parent / "out")
    for index in range(300):  # no placeholder of the target was cut off the source
        marks = set(data.target(index).tolist()) & set(target.placeholders)
        assert marks <= set(data.sources(index)[0].tolist())
    assert source.size == target.size


def test_too_long_pairs_are_dropped_and_counted(root: Path) -> None:
    split = make(root, replace(CONFIG, max_source_tokens=8)).splits["train"]
    assert split.dropped["source_tokens"] == 300 - split.pairs > 0


def test_word_vocabularies(root: Path) -> None:
    summary = make(root, words())
    (source,), target = load_vocabularies(root.parent / "out")
    assert summary.vocabularies == {"source0": 60, "target": 60}
    assert source.id_of("hund") > 3
    assert target.id_of("dog") > 3
    assert len(target.placeholders) == 16
    assert summary.splits["train"].unknown > 0  # most of the numbers
    with pytest.raises(VocabularyError, match="more than 22 entries"):
        make(root, words(22), force=True)


def test_the_target_vocabulary_may_have_a_size_of_its_own(root: Path) -> None:
    vocabulary = VocabularyConfig(kind="word", size=60, target_size=40, joint=False)
    assert make(root, replace(CONFIG, vocabulary=vocabulary)).vocabularies == {"source0": 60, "target": 40}


def test_up_to_date_is_not_redone_and_differences_are_named(root: Path) -> None:
    first = make(root)
    stamp = (root.parent / "out/prepared.json").stat().st_mtime_ns
    assert make(root, replace(CONFIG, join_share=0.5)) == first  # read at batching only
    assert (root.parent / "out/prepared.json").stat().st_mtime_ns == stamp
    other = replace(CONFIG, filters=FilterConfig(max_source_words=7))
    with pytest.raises(ConfigError, match=r"data\.filters\.max_source_words is 7, but was None"):
        make(root, other)
    with pytest.raises(ConfigError, match="seed is 2, but was 1"):
        make(root, seed=2)
    assert make(root, other, force=True).splits["train"].dropped["source_words"] > 0
    write(root / "toy/train.en.xz", ["changed"])
    with pytest.raises(ConfigError, match=r"the content of toy/train\.en\.xz changed"):
        make(root, other)
    (root / "toy/train.en.xz").unlink()  # prepared data is usable without the corpora
    make(root, other)


def test_keys_that_came_later_are_at_their_defaults(root: Path) -> None:
    """Data prepared before a key existed stays usable, unless the key is now given another value."""
    make(root)
    record = root.parent / "out" / "prepared.json"
    old = json.loads(record.read_text(encoding="utf-8"))
    del old["identity"]["data"]["vocabulary"]["target_size"], old["identity"]["data"]["corpora"][0]["valid_split"]
    record.write_text(json.dumps(old), encoding="utf-8")
    assert make(root).identity == old["identity"]
    with pytest.raises(ConfigError, match=r"data\.corpora\.0\.valid_split is 'dev', but was 'valid'"):
        make(root, replace(CONFIG, corpora=(replace(CORPUS, valid_split="dev"),)))
    old["identity"]["data"]["no_longer_known"] = 1
    record.write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"data\.no_longer_known is None, but was 1"):
        make(root)


def test_a_failure_leaves_what_was_there(root: Path) -> None:
    make(root)
    write(root / "toy/train.en.xz", ["one line only"])
    with pytest.raises(CorpusError, match="no counterpart"):
        make(root, force=True)
    assert len(PreparedData.open(root.parent / "out", "train")) == 300
    assert [path.name for path in root.parent.iterdir() if path.name.startswith(".")] == []


def test_other_folders_are_never_replaced(root: Path) -> None:
    (root.parent / "out").mkdir()
    (root.parent / "out/letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="is not prepared data"):
        make(root, force=True)


def test_languages_and_empty_corpora(root: Path) -> None:
    with pytest.raises(ConfigError, match="languages must be one per source"):
        prepare(CONFIG, languages=("en",), root=root, out=root / "x", seed=1)
    with pytest.raises(CorpusError, match=r"no training pair is left; dropped: \{'excluded_pattern': 300\}"):
        make(root, replace(CONFIG, filters=FilterConfig(exclude_pattern="Tom")))
    with pytest.raises(CorpusError, match="no training pair is left"):
        make(root, replace(CONFIG, max_target_tokens=2))
    write(root / "toy/test.de.xz", [])
    write(root / "toy/test.en.xz", [])
    with pytest.raises(CorpusError, match=r"test\.en\.xz is empty"):
        make(root)


def test_damaged_prepared_data(root: Path) -> None:
    out = root.parent / "out"
    with pytest.raises(CorpusError, match="holds no prepared data"):
        PreparedData.open(out, "train")
    make(root)
    with pytest.raises(CorpusError, match="has no split 'dev', only train, valid, test"):
        PreparedData.open(out, "dev")
    record = json.loads((out / "prepared.json").read_text())
    (out / "train.target.tokens.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(CorpusError, match=r"the arrays train\.target\.\* cannot be read"):
        PreparedData.open(out, "train")
    (out / "prepared.json").write_text(json.dumps({**record, "format": 99}))
    with pytest.raises(CorpusError, match="format must be 2, but is 99"):
        PreparedData.open(out, "train")
    (out / "prepared.json").write_text("{")
    with pytest.raises(CorpusError, match="is damaged"):
        make(root)
    make(root, force=True)
    assert len(PreparedData.open(out, "train")) == 300


def test_two_sources(root: Path) -> None:
    corpus = replace(CORPUS, source=("toy/{split}.de.xz", "toy/{split}.en.xz"))
    summary = prepare(
        replace(CONFIG, corpora=(corpus,)), languages=("de", "en", "en"), root=root, out=root.parent / "out", seed=1
    )
    assert list(summary.vocabularies) == ["source0", "source1", "target"]
    data = PreparedData.open(root.parent / "out", "test")
    assert data.sources(3)[1].tolist() == [*data.target(3).tolist(), 3]
    assert data.source_lengths[3] == max(len(source) for source in data.sources(3))


def test_vocabularies_of_ones_own_are_used_and_watched(root: Path) -> None:
    """One for all, or one for the sources and one for the target; another content is another preparation."""
    lines = [line for words in (GERMAN, ENGLISH) for line in words]
    own = train_sentencepiece(lines, size=305, model_type="unigram", languages=(), seed=1)
    (root / "own.model").write_bytes(own.to_bytes())
    summary = make(root, replace(CONFIG, vocabulary=VocabularyConfig(model="own.model")))
    assert summary.vocabularies == {"source0": 305, "target": 305}
    assert not summary.vocabularies_given, "no bundle is to begin from"
    sources, target = load_vocabularies(root.parent / "out")
    assert [one.to_bytes() for one in (*sources, target)] == [own.to_bytes()] * 2

    other = train_sentencepiece(lines, size=310, languages=(), seed=1)
    (root / "other.model").write_bytes(other.to_bytes())
    parted = replace(CONFIG, vocabulary=VocabularyConfig(model="own.model", target_model="other.model", joint=False))
    assert make(root, parted, force=True).vocabularies == {"source0": 305, "target": 310}
    (root / "other.model").write_bytes(own.to_bytes())
    with pytest.raises(ConfigError, match=r"the content of other\.model changed"):
        make(root, parted)


def test_a_model_of_ones_own_that_cannot_be_used_is_refused(root: Path) -> None:
    (root / "none.model").write_bytes(b"none")
    for name, said in (("none.model", "not a readable sentencepiece model"), ("gone.model", "cannot read")):
        with pytest.raises(VocabularyError, match=said):
            make(root, replace(CONFIG, vocabulary=VocabularyConfig(model=name)))
    assert not (root.parent / "out").exists()
    own = train_sentencepiece(GERMAN + ENGLISH, size=320, languages=(), seed=1)
    (root / "own.model").write_bytes(own.to_bytes())
    tagged = replace(CONFIG, tagged=True, vocabulary=VocabularyConfig(model="own.model"))
    with pytest.raises(VocabularyError, match="the vocabulary of 320 pieces has no piece '⟨en⟩'"):
        make(root, tagged)
    for wrong in ({"kind": "word", "model": "a"}, {"joint": False, "model": "a"}, {"target_model": "a"}):
        with pytest.raises(ConfigError, match="vocabulary: "):
            VocabularyConfig(**wrong)


@pytest.mark.parametrize("kind", ["mapped", "byte-pairs"])
def test_vocabularies_of_public_models_come_back(kind: str, root: Path) -> None:
    """Their files end alike, and are no sentencepiece models."""
    own: Vocabulary = BYTE_PAIRS
    if kind == "mapped":
        trained = train_sentencepiece(GERMAN + ENGLISH, size=320, languages=(), seed=1)
        names = ["<pad>", "<unk>", "⟨start⟩", "</s>", *map(trained.piece_of, range(4, 320))]
        own = MappedVocabulary(trained.to_bytes(), names)
    out = root.parent / "out"
    prepare(CONFIG, languages=("de", "en"), root=root, out=out, seed=1, vocabularies=(own, own))
    sources, target = load_vocabularies(out)
    for found in (*sources, target):
        assert type(found) is type(own) and found.to_bytes() == own.to_bytes()
    data = PreparedData.open(out, "train")
    assert own.decode(data.target(0).tolist()).split()
    assert len(vocabulary_digest(out)) == 64
