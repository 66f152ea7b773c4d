"""Texts of load tests: lengths of real text, the same for the same seed, and markup that is sound."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.extras.loadtest.texts import LANGUAGES, TextWriter, read_lines
from tandem.models.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]


class Tags(HTMLParser):
    """Which tags are open, at most how deep, and how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@settings(max_examples=5)
@given(st.sampled_from(sorted(LANGUAGES)), st.text(max_size=5))
def test_the_seed_decides(language: str, seed: str) -> None:
    first, second = TextWriter.of(language, seed), TextWriter.of(language, seed)
    assert [first.page(), first.document(), first.sentence()] == [second.page(), second.document(), second.sentence()]


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_sentences_are_sentences_and_hardly_come_twice(language: str) -> None:
    writer = TextWriter.of(f"{language.upper()}-XX", "1")
    made = [writer.sentence() for _ in range(1000)]
    for sentence in made:
        assert sentence[0].isupper() and sentence.endswith(".")
        assert sentence == " ".join(sentence.split()) and "|" not in sentence and " ," not in sentence
    long = [sentence for sentence in made if len(sentence.split()) > 8]
    assert len(set(long)) > 0.99 * len(long) and len(set(made)) > 0.9 * len(made)


@given(st.integers(0, 10_000))
def test_documents_have_paragraphs_and_pages_sound_markup(seed: int) -> None:
    writer = TextWriter.of("de", str(seed))
    paragraphs = writer.document().split("\n\n")
    assert 2 <= len(paragraphs) <= 6 and all(paragraph.endswith(".") for paragraph in paragraphs)
    tags = Tags()
    tags.feed(writer.page())
    assert not tags.open
    assert tags.count["h1"] == tags.count["ul"] == 1
    assert tags.count["p"] >= 1 and tags.count["li"] >= 1


def test_real_lines_are_taken_where_there_are_some(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(" a < b. \n\nc & d.\n", encoding="utf-8")
    lines = read_lines(file)
    assert lines == ["a < b.", "c & d."]
    writer = TextWriter.of("xx", "1", lines)
    assert {writer.sentence() for _ in range(50)} == set(lines)
    assert "&lt;" in writer.page() + writer.page() + writer.page()


def test_what_nothing_can_be_made_of_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="made in de, en, fr, es, but not in xx: give real ones"):
        TextWriter.of("xx", "1")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(ConfigError, match="at least one line"):
        read_lines(empty)
    with pytest.raises(ConfigError, match="text file in UTF-8"):
        read_lines(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="text file in UTF-8"):
        read_lines(tmp_path / "bytes.txt")


def test_a_writer_draws_from_its_own_source() -> None:
    random.seed(1)
    first = TextWriter.of("en", "1").sentence()
    random.seed(2)
    assert TextWriter.of("en", "1").sentence() == first
