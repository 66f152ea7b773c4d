"""One text in several languages, split where all of them split alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.service.text.parallel import ParallelDocument

LANGUAGES = ("de", "en")


def parse(*texts: str, lead: int = 0) -> ParallelDocument:
    return ParallelDocument.parse(texts, LANGUAGES[: len(texts)], lead, "fr")


@pytest.mark.parametrize(
    ("german", "english", "sentences"),
    [
        ("Ja. Nein.", "Yes. No.", [("Ja.", "Yes."), ("Nein.", "No.")]),
        ("Ja. Nein.", "Yes and no.", [("Ja. Nein.", "Yes and no.")]),
        ("Ja.\nNein. Doch.", "Yes.\nNo but.", [("Ja.", "Yes."), ("Nein. Doch.", "No but.")]),
        ("Ja.\n\n\nNein.", "Yes.\nNo.", [("Ja.", "Yes."), ("Nein.", "No.")]),
        ("Ja.\nNein.", "Yes. No.", [("Ja.", "Yes."), ("Nein.", "No.")]),
        ("Ja.\nNein.\nDoch.", "Yes.\nNo.", [("Ja.\nNein.\nDoch.", "Yes.\nNo.")]),
        ("12:30", "12:30", []),
        ("Ja.", "", []),
        ("", "", []),
    ],
)
def test_lines_and_sentences_are_paired_where_all_have_equally_many(
    german: str, english: str, sentences: list[tuple[str, str]]
) -> None:
    found = parse(german, english)
    assert list(found.sentences) == sentences
    assert [piece.text for piece in found.document.sentences] == [one[0] for one in sentences]


def test_the_leading_texts_layout_is_kept() -> None:
    found = parse("- Ja.  Nein.\n\n\t2) Doch 😀\n", "* Yes. No.\n\nIndeed.", lead=0)
    assert found.document.join(["A", "B", "C"])[0] == "- A  B\n\n\t2) C 😀\n"
    other = parse("- Ja.  Nein.\n\n\t2) Doch 😀\n", "* Yes. No.\n\nIndeed.", lead=1)
    assert other.document.join(["A", "B", "C"])[0] == "* A B\n\nC"


def test_a_line_that_does_not_split_alike_keeps_what_stands_around_it() -> None:
    found = parse("- Ja. Nein. 😀\nDoch.", "Yes and no.\nIndeed.")
    assert found.document.join(["A", "B"])[0] == "- A 😀\nB"


text = st.text(st.sampled_from("aB. \n!1-😀"), max_size=40)


@given(first=text, second=text, third=text, lead=st.integers(0, 2))
def test_nothing_is_lost(first: str, second: str, third: str, lead: int) -> None:
    """The pieces of the leading text, joined, are that text, and every sentence has words in all languages."""
    texts = (first, second, third)
    found = ParallelDocument.parse(texts, ("de", "en", "cs"), lead, "fr")
    assert "".join(piece.text for piece in found.document.pieces) == texts[lead]
    assert [one[lead] for one in found.sentences] == [piece.text for piece in found.document.sentences]
    for one in found.sentences:
        assert all(any(map(str.isalpha, part)) and part in whole for part, whole in zip(one, texts, strict=True))
