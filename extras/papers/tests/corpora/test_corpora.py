"""Every corpus of the table from files of its own form: splits, order, text; and what a user is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.papers.corpora.build import build_corpus
from tandem.extras.papers.corpora.page import BuildReport
from tandem.extras.papers.corpora.specs import CORPORA, find_corpus
from tandem.extras.papers.tests.corpora.distributions import DISTRIBUTIONS, TED, TRAINING, sentences
from tandem.models.errors import CorpusError
from tandem.training.data.corpus import read_lines, read_parallel


def build(name: str, folder: Path) -> tuple[Path, BuildReport]:
    """Make a corpus from its invented distribution."""
    raw = folder / "raw"
    raw.mkdir()
    DISTRIBUTIONS[name](raw)
    report = build_corpus(find_corpus(name), raw, folder / "corpora")
    return folder / "corpora" / name, report


def test_every_corpus_has_a_distribution() -> None:
    assert [corpus.name for corpus in CORPORA] == list(DISTRIBUTIONS)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_is_written_can_be_read_and_is_the_same_twice(name: str, tmp_path: Path) -> None:
    corpus = find_corpus(name)
    out, report = build(name, tmp_path)
    for split, pairs in report.pairs.items():
        columns = read_parallel([out / f"{split}.{field}{corpus.suffix}" for field in corpus.fields])
        assert len(columns[0]) == pairs
        assert pairs
        assert all(line == " ".join(line.split()) for column in columns for line in column)
    page = (out / "README.md").read_text(encoding="utf-8")
    assert corpus.licence in page and corpus.attribution in page
    assert all(f"| {pairs:,} |" in page for pairs in report.pairs.values())
    assert str(tmp_path) not in page
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    build_corpus(corpus, tmp_path / "raw", tmp_path / "corpora", force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    assert [path.name for path in out.parent.iterdir()] == [name]


@pytest.mark.parametrize("name", ["iwslt14-de-en", "iwslt14-de-en-153k"])
def test_german_ted_talks(name: str, tmp_path: Path) -> None:
    out, report = build(name, tmp_path)
    assert (report.pairs["train"], report.pairs["valid"]) == (TRAINING - 2, 2)
    valid = read_lines(out / "valid.de")
    assert [line.split(" number ")[1].split()[0] for line in valid] == ["23", "46"]  # every 23rd, and no url counted
    train = read_lines(out / "train.en")
    assert train[0] == "this is train-en number 1 , isn 't it ?"  # the talk's title
    order = [line.split("-de")[0] for line in read_lines(out / "test.de")[::2]]
    assert order == [item.lower() for item in (TED[0], "TEDX.dev2012", *TED[1:])]
    assert read_lines(out / "test.en")[0] == "ted.dev2010-en & co : it 's number 1 ."
    assert len(read_lines(out / "test_ted.en")) == 8
    assert "test should have 6,750 pairs, but has 10" in report.warnings


def test_the_two_german_forms_differ_in_the_longest_sentence(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    DISTRIBUTIONS["iwslt14-de-en"](raw)
    for side in ("de", "en"):
        texts = ["word " * 50, "word " * 51, "word " * 175, "word " * 176, "", "one", "two words"]
        (raw / "de-en" / f"train.tags.de-en.{side}").write_text("\n".join(texts) + "\n")
    with (raw / "de-en" / "train.tags.de-en.de").open("a") as file:
        file.write("one two three four\n")
    with (raw / "de-en" / "train.tags.de-en.en").open("a") as file:
        file.write("one two\n")  # twice as long
    long = build_corpus(find_corpus("iwslt14-de-en"), raw, tmp_path / "out")
    short = build_corpus(find_corpus("iwslt14-de-en-153k"), raw, tmp_path / "out")
    assert (long.pairs["train"], long.dropped) == (5, 3)  # longest 175, an empty one, one too different in length
    assert (short.pairs["train"], short.dropped) == (3, 5)


@pytest.mark.parametrize("name", ["iwslt14-ro-en", "iwslt14-es-en"])
def test_other_ted_talks_validate_on_the_old_sets_and_stay_cased(name: str, tmp_path: Path) -> None:
    out, report = build(name, tmp_path)
    assert report.pairs == {"train": TRAINING, "valid": 8, "test": 2}
    assert read_lines(out / "valid.en")[-1] == "TED.tst2012-en & co : it 's number 2 ."
    assert read_lines(out / "test.en")[0] == "TED.tst2014-en & co : it 's number 1 ."


def test_wmt14_german(tmp_path: Path) -> None:
    out, report = build("wmt14-en-de", tmp_path)
    assert report.pairs == {"train": 204, "heldout": 2, "valid": 6, "test": 3, "test_raw": 3, "newstest2015": 3}
    assert [line.split(" number ")[1].split()[0] for line in read_lines(out / "heldout.de")] == ["100", "200"]
    assert read_lines(out / "valid.en")[3].startswith("This is newstest2013 @-@ en number 1")
    assert read_lines(out / "test_raw.de") == sentences("de", "newstest2014")
    assert "europarl-v7.de-en.en should have 1,920,209 segments, but has 200" in report.warnings


def test_wmt14_french_from_plain_and_exported_sets(tmp_path: Path) -> None:
    out, report = build("wmt14-en-fr", tmp_path)
    assert report.pairs == {"train": 211, "valid": 1, "test": 3, "test_raw": 3, "newstest2012-2013": 6}
    train = read_lines(out / "train.fr")
    parts = ["europarl", "commoncrawl", "undoc", "news", "giga"]
    assert [train[index].split()[2].split(".")[0].split("-")[0] for index in (0, 199, 202, 205, 208)] == parts
    assert read_lines(out / "test_raw.fr") == sentences("fr", "newstest2014")


def test_wmt16_romanian(tmp_path: Path) -> None:
    out, report = build("wmt16-en-ro", tmp_path)
    assert (report.pairs["train"], report.pairs["heldout"]) == (204, 2)
    assert read_lines(out / "valid.en") == ['State @-@ of @-@ the @-@ art & " more . "']
    assert read_lines(out / "valid.ro") == ["Și țara & altele ."]  # commas below, not cedillas
    assert read_lines(out / "valid_raw.ro") == ["Şi ţara & altele."]


def test_nist(tmp_path: Path) -> None:
    out, report = build("nist-zh-en", tmp_path)
    assert report.pairs["train"] == 12
    assert read_lines(out / "train.zh")[:2] == ["他 来到 北京 。", "我们 喜欢 翻译 。"]  # segmented alike
    assert read_lines(out / "mt02.zh") == read_lines(out / "mt03.zh") == 2 * ["他 来到 北京 。", "我们 喜欢 翻译 。"]
    assert read_lines(out / "valid.en") == read_lines(out / "mt03.en")
    assert read_lines(out / "mt03.en")[0] == "he came to beijing . ( mt03 , 0 )"
    for index in (1, 2, 3):
        assert read_lines(out / f"mt03.en.{index}")[3] == f"we like translation . ( mt03 , {index} )"
    assert report.pairs["test"] == 5 * 4


def test_gigaword(tmp_path: Path) -> None:
    out, report = build("gigaword", tmp_path)
    assert report.pairs == {"train": 3, "valid": 1, "test": 2, "duc2004": 1}  # an empty title is left out
    assert read_lines(out / "train.title") == ["deficit narrows", "UNK narrows", "no ##"]
    assert read_lines(out / "test.article")[0] == "UNK"
    assert read_lines(out / "duc2004.article") == ["cambodian leader hun sen on friday ## rejected demands"]
    assert read_lines(out / "duc2004.title") + read_lines(out / "duc2004.title.3") == ["title #", "title #"]


def test_records_stay_in_their_split_when_others_come(tmp_path: Path) -> None:
    out, report = build("arxiv-title", tmp_path)
    assert 300 < report.pairs["train"] < 460
    titles = {split: read_lines(out / f"{split}.tgt.xz") for split in ("train", "valid", "test")}
    abstracts = read_lines(out / "train.src.xz")
    assert abstracts[0] == f"We study the number {titles['train'][0].removeprefix('On the number ')}, and find it."
    assert not set(titles["train"]) & {*titles["valid"], *titles["test"]} and not {*titles["valid"]} & {*titles["test"]}
    raw = tmp_path / "raw" / "arxiv-metadata-oai-snapshot.json"
    raw.write_text("".join(raw.read_text(encoding="utf-8").splitlines(keepends=True)[::2]), encoding="utf-8")
    build_corpus(find_corpus("arxiv-title"), raw.parent, tmp_path / "corpora", force=True)
    for split, before in titles.items():
        assert {*read_lines(out / f"{split}.tgt.xz")} <= {*before}
    assert len(read_lines(out / "train.tgt.xz")) < len(titles["train"])


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "1", "title": "x"}', '{"id": "1", "title": 0, "abstract": "x"}'])
def test_what_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "arxiv-metadata-oai-snapshot.json").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"snapshot\.json, line 1: no record with id, abstract, title"):
        build_corpus(find_corpus("arxiv-title"), tmp_path, tmp_path / "corpora")


def test_multi30k_is_left_as_it_is(tmp_path: Path) -> None:
    out, report = build("multi30k", tmp_path)
    assert read_lines(out / "valid.cs.xz") == sentences("cs", "val", 2)
    assert report.notes == ["vgg16 features of train, valid, test_2016_flickr: their files are not there"]


def test_post_editing(tmp_path: Path) -> None:
    out, report = build("wmt-ape-en-de", tmp_path)
    assert report.pairs == {"train": 3, "valid": 3, "test": 3, "train_2017": 3}
    assert read_lines(out / "valid.mt.xz") == sentences("mt", "dev")
    assert report.notes == ["test_2017 is left out: its files are not there"]
