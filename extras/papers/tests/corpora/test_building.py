"""Building a corpus: what is missing or wrong is said once and clearly, and nothing half-made is left."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.papers.corpora.build import CHUNK, build_corpus
from tandem.extras.papers.corpora.specs import (
    TABLE,
    CorpusSpec,
    Download,
    HoldOut,
    Part,
    Split,
    TextProcessing,
    find_corpus,
    read_table,
)
from tandem.extras.papers.tests.corpora.distributions import lines, sgm, write
from tandem.models.errors import ConfigError, CorpusError

PLACE = Download("the invented corpus", "https://example.org/corpus")


def part(name: str, segments: int = 0, references: int = 1) -> Part:
    files = ((f"{name}.de",), *((f"{name}.en{index or ''}",) for index in range(references)))
    return Part(files, PLACE, segments)


TOY = CorpusSpec(
    name="toy",
    title="An invented corpus",
    papers=("nobody",),
    fields=("de", "en"),
    languages=("de", "en"),
    splits=(
        Split("train", (part("train"),), (3, 5)),
        Split("valid", (part("valid", 2),), (2, 2)),
        Split("extra", (part("extra"),), optional=True),
    ),
    licence="CC0",
    attribution="the test",
)


def fill(folder: Path, **texts: list[str]) -> Path:
    """The toy's files; the German side, unless it is given, and the English one are alike."""
    content: dict[str, list[str]] = {"train": ["a", "b", "c"], "valid": ["d", "e"]} | texts
    for name, text in content.items():
        for side in ("de", "en"):
            write(folder / f"{name}.{side}", lines(text))
    return folder


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return fill(tmp_path / "raw")


def refusal(raw: Path, out: Path, corpus: CorpusSpec = TOY) -> str:
    """What is said when the corpus cannot be made, which leaves nothing behind."""
    with pytest.raises(CorpusError) as error:
        build_corpus(corpus, raw, out)
    assert not out.exists() or not list(out.iterdir())
    return str(error.value)


# --- files ----------------------------------------------------------------------------------------------------------


def test_all_missing_files_are_named_at_once_with_where_to_get_them(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "train.de", b"x\n")
    write(tmp_path / "raw" / "extra.en", b"x\n")
    message = refusal(tmp_path / "raw", tmp_path / "out")
    listed = [line.strip() for line in message.splitlines()[1:]]
    assert listed == [f"{name}: {PLACE.name}, {PLACE.url}" for name in ("train.en", "valid.de", "valid.en", "extra.de")]


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    assert "not a folder" in refusal(tmp_path / "raw", tmp_path / "out")


def test_files_are_found_below_and_packed(tmp_path: Path) -> None:
    plain = fill(tmp_path / "plain", extra=["x"])
    packed = tmp_path / "packed"
    write(packed / "deep" / "train.de.gz", gzip.compress((plain / "train.de").read_bytes()))
    names = ("train.en", "valid.de", "valid.en", "extra.de", "extra.en")
    for name in names:
        write(packed / "folder" / name, (plain / name).read_bytes())
    build_corpus(TOY, plain, tmp_path / "a")
    build_corpus(TOY, packed, tmp_path / "b")
    for name in ("train.de", *names):
        assert (tmp_path / "a" / "toy" / name).read_bytes() == (tmp_path / "b" / "toy" / name).read_bytes()


def test_a_file_comes_before_its_packed_copy(raw: Path, tmp_path: Path) -> None:
    write(raw / "old" / "train.de.gz", gzip.compress(b"old\n"))
    assert build_corpus(TOY, raw, tmp_path / "out").pairs["train"] == 3


def test_two_files_of_one_name_are_not_guessed_between(raw: Path, tmp_path: Path) -> None:
    write(raw / "other" / "train.de", b"x\n")
    message = refusal(raw, tmp_path / "out")
    assert "train.de is there 2 times" in message and str(raw / "other" / "train.de") in message


def test_a_file_that_is_cut_short_is_named(raw: Path, tmp_path: Path) -> None:
    (raw / "train.de").unlink()
    write(raw / "train.de.gz", gzip.compress(b"a\nb\nc\n")[:-4])
    assert "train.de.gz: damaged or cut short" in refusal(raw, tmp_path / "out")


# --- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\ncaf\xe9\n", "valid.en, line 2: not UTF-8"),
        (b"only one\n", "valid.de, segment 2: no counterpart"),
    ],
)
def test_lines_must_be_utf8_and_parallel(content: bytes, message: str, raw: Path, tmp_path: Path) -> None:
    write(raw / "valid.en", content)
    assert message in refusal(raw, tmp_path / "out")


def test_lines_and_numbered_segments_do_not_mix(raw: Path, tmp_path: Path) -> None:
    files = (("valid.de",), ("valid.en.sgm",))
    write(raw / "valid.en.sgm", sgm("refset", "valid", {"": ["d", "e"]}))
    toy = replace(TOY, splits=(TOY.splits[0], Split("valid", (Part(files, PLACE),))))
    assert "one has numbered segments" in refusal(raw, tmp_path / "out", toy)


def numbered(folder: Path, source: bytes, target: bytes) -> tuple[Path, CorpusSpec]:
    write(folder / "set.de.sgm", source)
    write(folder / "set.en.sgm", target)
    splits = (Split("valid", (Part((("set.de.sgm",), ("set.en.sgm",)), PLACE),)),)
    return folder, replace(TOY, splits=splits)


GOOD = sgm("srcset", "set", {"": ["one", "two"]})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (sgm("refset", "set", {"r": ["one"]}), "holds 1 segments where"),
        (sgm("refset", "set", {"r": ["one", "two"]}, documents=("other",)), "4 are in one only"),
        (sgm("refset", "set", {"r": ["one", "two"]}, documents=("d1", "d1")), "two segments '1'"),
        (b"<refset></refset>", "no <seg> is in it"),
        (GOOD + b"\xe9", "set.en.sgm: not utf-8-sig; convert it"),
    ],
)
def test_sets_that_do_not_fit_are_refused(target: bytes, message: str, tmp_path: Path) -> None:
    raw, toy = numbered(tmp_path / "raw", GOOD, target)
    assert message in refusal(raw, tmp_path / "out", toy)


def test_a_source_may_be_in_the_encoding_of_nist_and_no_other(tmp_path: Path) -> None:
    source = sgm("srcset", "set", {"": ["一", "二"]}).decode()
    raw, toy = numbered(tmp_path / "raw", source.encode("gb18030"), GOOD)
    build_corpus(toy, raw, tmp_path / "out")
    assert (tmp_path / "out" / "toy" / "valid.de").read_text() == "一\n二\n"
    write(raw / "set.de.sgm", GOOD + b"\xff")
    assert "set.de.sgm: not utf-8-sig or gb18030" in refusal(raw, tmp_path / "other", toy)


def test_a_source_has_one_version(tmp_path: Path) -> None:
    raw, toy = numbered(tmp_path / "raw", sgm("srcset", "set", {"a": ["one"], "b": ["one"]}), GOOD)
    assert "2 systems in a source file" in refusal(raw, tmp_path / "out", toy)


def test_segments_may_span_lines_stay_open_and_hold_entities(tmp_path: Path) -> None:
    target = b'<REFSET><DOC DOCID=d1>\n<SEG ID=1> AT&amp;T\n  &lt;b&gt; R&D <seg id="2">x < y</DOC></REFSET>'
    raw, toy = numbered(tmp_path / "raw", GOOD, target)
    build_corpus(toy, raw, tmp_path / "out")
    assert (tmp_path / "out" / "toy" / "valid.en").read_text() == "AT&T <b> R&D\nx < y\n"


def test_a_reference_that_only_some_segments_have_is_left_out(raw: Path, tmp_path: Path) -> None:
    write(raw / "valid.en1", b"f\ng\n")
    toy = replace(TOY, splits=(TOY.splits[0], Split("valid", (part("valid", references=2), part("train")))))
    report = build_corpus(toy, raw, tmp_path / "out")
    assert report.warnings == ["valid.en.1 left out: only 2 of 5 segments have that reference"]
    assert not (tmp_path / "out" / "toy" / "valid.en.1").exists()


def test_text_that_nothing_happens_to_is_left_byte_by_byte(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw", valid=[" two  spaces\u00a0and\u2028a break ", "x"])
    build_corpus(TOY, raw, tmp_path / "out")
    assert (tmp_path / "out" / "toy" / "valid.de").read_bytes() == (raw / "valid.de").read_bytes()


def test_evaluation_sets_are_kept_whole_training_is_not(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw", train=["a", "", "c"], valid=["d", ""])
    report = build_corpus(TOY, raw, tmp_path / "out")
    assert (report.pairs["train"], report.dropped, report.pairs["valid"]) == (2, 1, 2)
    assert (tmp_path / "out" / "toy" / "valid.de").read_text() == "d\n\n"


def test_counts_that_differ_are_warnings_with_both_numbers(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw", train=["a", "b"], valid=["d"])
    report = build_corpus(TOY, raw, tmp_path / "out")
    assert report.warnings == [
        "valid.de should have 2 segments, but has 1",
        "train should have 3 to 5 pairs, but has 2",
        "valid should have 2 pairs, but has 1",
    ]
    page = (tmp_path / "out" / "toy" / "README.md").read_text()
    assert all(warning in page for warning in report.warnings)
    assert report.notes == ["extra is left out: its files are not there"]


def test_workers_change_nothing(tmp_path: Path) -> None:
    toy = replace(TOY, form=TextProcessing(tokens="moses", lowercase=True), hold_out=HoldOut("heldout", 100))
    raw = fill(tmp_path / "raw", train=[f"Number {number}." for number in range(2 * CHUNK + 1)])
    seen: list[tuple[str, int]] = []
    build_corpus(toy, raw, tmp_path / "one", progress=lambda split, pairs: seen.append((split, pairs)))
    build_corpus(toy, raw, tmp_path / "two", workers=2)
    for path in (tmp_path / "one" / "toy").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "toy" / path.name).read_bytes()
    assert (tmp_path / "two" / "toy" / "heldout.de").read_text().splitlines()[-1] == f"number {2 * CHUNK - 1} ."
    assert ("train", 2 * CHUNK + 1) in seen


# --- the folder that is made ----------------------------------------------------------------------------------------


def test_what_is_there_is_replaced_only_with_force(raw: Path, tmp_path: Path) -> None:
    build_corpus(TOY, raw, tmp_path / "out")
    fill(raw, valid=["new", "text"])
    with pytest.raises(ConfigError, match="add --force"):
        build_corpus(TOY, raw, tmp_path / "out")
    build_corpus(TOY, raw, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "toy" / "valid.de").read_text() == "new\ntext\n"


def test_what_this_command_has_not_made_is_never_replaced(tmp_path: Path) -> None:
    write(tmp_path / "out" / "toy" / "mine.txt", b"mine")
    with pytest.raises(ConfigError, match="was not prepared by this command"):
        build_corpus(TOY, fill(tmp_path / "raw"), tmp_path / "out", force=True)


def test_a_failure_leaves_the_old_corpus(raw: Path, tmp_path: Path) -> None:
    build_corpus(TOY, raw, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "toy").iterdir()}
    write(raw / "valid.en", b"\xff\n")
    with pytest.raises(CorpusError):
        build_corpus(TOY, raw, tmp_path / "out", force=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "toy").iterdir()} == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["toy"]


# --- the table ------------------------------------------------------------------------------------------------------


def test_an_unknown_corpus_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"no corpus is called 'wmt15'; known are iwslt14-de-en, .*wmt-ape-en-de"):
        find_corpus("wmt15")


def test_the_table_refuses_a_key_that_it_does_not_know() -> None:
    text = TABLE.read_text(encoding="utf-8")
    for known, wrong in (("segments = 887", "segmenta = 887"), ("max_source_words = 175", "max_source_wards = 175")):
        with pytest.raises(ConfigError, match=f"has no key '{wrong.split()[0]}': did you mean '{known.split()[0]}'"):
            read_table(text.replace(known, wrong))
