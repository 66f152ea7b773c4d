"""Translations of single words, and their file."""

from __future__ import annotations

import pytest

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.dictionary import Dictionary

HELD = Dictionary(({"Haus": "house", "Ärzte": "doctors"}, {}, {"#": "№", "maison": "house"}))


def test_a_word_is_looked_up_in_its_own_source_and_else_copied() -> None:
    assert HELD.translate(0, "Haus") == "house"
    assert HELD.translate(1, "Haus") == "Haus"
    assert HELD.translate(2, "maison") == "house"
    assert HELD.translate(3, "maison") == "maison"
    assert Dictionary().translate(0, "Berlin") == "Berlin"
    assert (len(HELD), len(Dictionary())) == (4, 0)


def test_the_file_comes_back_and_is_in_order() -> None:
    content = HELD.to_bytes()
    assert content.decode() == "0\tHaus\thouse\n0\tÄrzte\tdoctors\n2\t#\t№\n2\tmaison\thouse\n"
    assert Dictionary.from_bytes(content) == HELD
    assert Dictionary.from_bytes(content[:-1]) == HELD  # the last line end may be missing
    assert Dictionary.from_bytes(b"") == Dictionary()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"0\ta\tb\n\xff\n", "UTF-8"),
        (b"0\ta\tb\n0\ta\n", "line 2"),
        (b"0\ta\tb\tc\n", "line 1"),
        (b"x\ta\tb\n", "line 1"),
        (b"-1\ta\tb\n", "line 1"),
        (b"1000000000\ta\tb\n", "line 1"),
        (b"0\ta b\tc\n", "white space"),
        (b"0\ta\t\n", "white space"),
        (b"\n0\ta\tb\n", "line 1"),
    ],
)
def test_what_is_no_dictionary_is_refused(content: bytes, fault: str) -> None:
    with pytest.raises(VocabularyError, match=fault):
        Dictionary.from_bytes(content)
