"""Plain text that is broken into lines of a width is paragraphs; lists, poems and addresses keep their lines."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tandem.extras.documents.tests.documents import segments, translated
from tandem.extras.files.formats.wrapping import paragraphs_of

WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyzäöüß", min_size=1, max_size=12), min_size=60, max_size=120)
LETTER = """Sehr geehrte Frau Müller,

vielen Dank für Ihre Bestellung vom dritten Mai. Wir haben die Ware heute
verschickt, und sie sollte in den nächsten Tagen bei Ihnen ankommen. Bitte
prüfen Sie die Lieferung sofort.

  - Der Hund bellt sehr laut, und die Katze schläft auf dem Sofa im großen
    Zimmer, weil es dort warm ist.
  - Das Haus ist alt.

> Wann kommt meine Bestellung an? Ich warte schon seit zwei Wochen darauf,
> und niemand hat mir geantwortet.

Hans Müller
Hauptstraße 5
12345 Berlin
"""


def texts_of(characters: str) -> list[str]:
    return [paragraph.text for paragraph in paragraphs_of(characters) if paragraph.text]


@given(st.text(st.sampled_from("aB ä.\n\r\t->1\x0c\u2028") | st.characters(exclude_categories=["Cs"]), max_size=300))
def test_paragraphs_are_the_file(characters: str) -> None:
    assert "".join(paragraph.raw for paragraph in paragraphs_of(characters)) == characters


@given(WORDS, st.integers(66, 80), st.sampled_from(["", "  ", "> ", "\t> > "]), st.sampled_from(["\n", "\r\n"]))
def test_what_an_editor_broke_is_read_whole(words: list[str], width: int, before: str, end: str) -> None:
    text = " ".join(words)
    broken = textwrap.wrap(text, width, initial_indent=before, subsequent_indent=before)
    assume(len(broken) >= 3)
    (paragraph,) = paragraphs_of(end.join([*broken, ""]))
    assert paragraph.text == text
    new = paragraph.written(" ".join(reversed(words)))
    assert all(line.startswith(before) and len(line) <= width for line in new.split(end)[:-1])
    assert " ".join(line.removeprefix(before) for line in new.split(end)).split() == words[::-1]


@given(st.lists(st.text("abc ", min_size=1, max_size=55), max_size=20))
def test_short_lines_stay_apart(lines: list[str]) -> None:
    assert texts_of("\n".join(lines)) == [line.strip() for line in lines if line.strip()]


@given(WORDS, st.sampled_from(["- ", "* ", "1. ", "12) ", "a) ", "• ", "[1] ", "## "]))
def test_items_stay_apart(words: list[str], bullet: str) -> None:
    lines = [bullet + line for line in textwrap.wrap(" ".join(words), 72)]
    assert texts_of("\n".join(lines)) == lines


@given(WORDS)
def test_lines_with_room_for_the_next_word_stay_apart(words: list[str]) -> None:
    lines = textwrap.wrap(" ".join(words), 72)
    assert texts_of("\n".join([lines[0], "a b", *lines[1:], "", "x" * 30])) == [lines[0], "a b", *lines[1:], "x" * 30]


@given(WORDS)
def test_lines_that_all_begin_with_a_capital_stay_apart(words: list[str]) -> None:
    lines = [line.capitalize() for line in textwrap.wrap(" ".join(words), 72)]
    assert texts_of("\n".join(lines)) == lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_letter(tmp_path: Path, end: str) -> None:
    content = LETTER.replace("\n", end).encode()
    found = [one.text for one in segments(tmp_path, "txt", content)]
    assert found == [
        "Sehr geehrte Frau Müller,",
        "vielen Dank für Ihre Bestellung vom dritten Mai. Wir haben die Ware heute verschickt, und sie sollte in den "
        "nächsten Tagen bei Ihnen ankommen. Bitte prüfen Sie die Lieferung sofort.",
        "- Der Hund bellt sehr laut, und die Katze schläft auf dem Sofa im großen Zimmer, weil es dort warm ist.",
        "- Das Haus ist alt.",
        "Wann kommt meine Bestellung an? Ich warte schon seit zwei Wochen darauf, und niemand hat mir geantwortet.",
        "Hans Müller",
        "Hauptstraße 5",
        "12345 Berlin",
    ]
    assert translated(tmp_path, "txt", content) == content
    new = translated(tmp_path, "txt", content, ["A", "wort " * 15 + "ende", "- " + "wort " * 15, "- C", "D", *"EFG"])
    assert new.decode() == end.join([
        "A", "", "wort " * 14 + "wort", "ende", "", "  - " + "wort " * 13 + "wort", "    wort", "  - C", "", "> D",
        "", "E", "F", "G", "",
    ])  # fmt: skip


def test_words_that_were_cut_are_whole() -> None:
    text = (
        "Die Geschwindigkeit der Verbindung hängt auch von der Anzahl der Teil-\n"
        "nehmer ab, die gerade an ihren Rechnern sitzen und in Städten, Haupt-\n"
        "und Nebenorten wohnen; wer daheim bleibt, schreibt seine Post als E-\n"
        "Mail und liest\n"
    )
    (paragraph,) = paragraphs_of(text)
    assert "der Teilnehmer ab" in paragraph.text and "Haupt- und Neben" in paragraph.text
    assert "als E-Mail und" in paragraph.text


def test_fenced_code_has_no_text() -> None:
    characters = "Nimm dies:\r\n```\r\n  haus bauen  \r\n```\r\nFertig.\n```\nohne Ende"
    assert texts_of(characters) == ["Nimm dies:", "Fertig.", "```", "ohne Ende"]
    assert "".join(paragraph.raw for paragraph in paragraphs_of(characters)) == characters
