"""Translations of words and phrases that stand alone, and their file."""

from __future__ import annotations

import gzip

import pytest

from tandem.extras.rewriting.lexicon import Lexicon
from tandem.models.errors import VocabularyError

GERMAN = {"Arm": ("arm",), "arm": ("poor",), "danke": ("thanks", "thank you"), "Haus": ("house",), "Œuvre": ("œuvre",)}
GERMAN |= {"guten Tag": ("good day", "hello"), "Ich weiß": ("I know",), "mir geht's gut": ("I'm fine",)}
GERMAN |= {"Mark": ("Mark",), "mark": ("marrow",), "Ulm": ("Ulm",)}
HELD = Lexicon({("de", "en"): GERMAN, ("en", "de"): {"house": ("Haus", "Zuhause")}})


@pytest.mark.parametrize(
    ("word", "translations"),
    [
        ("Haus", ("house",)),
        ("haus", ("house",)),
        ("HAUS", ("HOUSE",)),
        ("Arm", ("arm",)),
        ("arm", ("poor",)),
        ("aRM", ("poor",)),
        ("Danke", ("Thanks", "Thank you")),
        ("ŒUVRE", ("ŒUVRE",)),
        ("Mark", ("Marrow",)),
        ("Ulm", ("Ulm",)),
        ("Maus", ()),
        ("Guten Tag", ("Good day", "Hello")),
        ("guten tag", ("good day", "hello")),
        ("GUTEN TAG", ("GOOD DAY", "HELLO")),
        ("Ich weiß", ("I know",)),
        ("mir geht's gut", ("I'm fine",)),
        ("Guten Morgen", ()),
    ],
)
def test_words_and_phrases_are_found_whatever_their_capitals(word: str, translations: tuple[str, ...]) -> None:
    assert HELD.translations("de", "en", word) == translations


def test_each_direction_has_its_own_words() -> None:
    assert HELD.translations("en", "de", "House") == ("Haus", "Zuhause")
    assert HELD.translations("en", "de", "Haus") == HELD.translations("en", "fr", "house") == ()
    assert (len(HELD), len(Lexicon())) == (12, 0)


def test_the_file_comes_back_and_is_in_order() -> None:
    packed = HELD.to_bytes()
    content = gzip.decompress(packed)
    lines = content.decode().split("\n")
    assert lines == [*sorted(lines[:-1]), ""]
    assert {"de\ten\tdanke\tthanks\tthank you", "en\tde\thouse\tHaus\tZuhause"} < set(lines)
    assert Lexicon.from_bytes(packed) == Lexicon.from_bytes(content) == HELD  # earlier versions did not pack
    assert Lexicon.from_bytes(content[:-1]) == HELD  # the last line end may be missing
    assert Lexicon.from_bytes(b"") == Lexicon()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"de\ten\ta\tb\n\xff\n", "UTF-8"),
        (b"de\ten\ta\tb\nde\ten\ta\n", "line 2"),
        (b"de\ten\ta\tb\t\n", "line 1"),
        (b"de\ten\t a\tb\n", "line 1"),
        (b"\nde\ten\ta\tb\n", "line 1"),
        (b"\x1f\x8bno", "does not unpack"),
    ],
)
def test_what_is_no_lexicon_is_refused(content: bytes, fault: str) -> None:
    with pytest.raises(VocabularyError, match=fault):
        Lexicon.from_bytes(content)


def test_what_is_packed_and_no_lexicon_is_refused() -> None:
    with pytest.raises(VocabularyError, match="line 1"):
        Lexicon.from_bytes(gzip.compress(b"de\ten\n"))
    with pytest.raises(VocabularyError, match="must be whole"):
        Lexicon.from_bytes(gzip.compress(b"de\ten\ta\tb\n")[:-9])
    with pytest.raises(VocabularyError, match="at most 268,435,456 bytes"):
        Lexicon.from_bytes(gzip.compress(bytes((1 << 28) + 1)))
