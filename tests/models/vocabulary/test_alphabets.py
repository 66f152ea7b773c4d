"""Characters that are pieces though the training text lacks them."""

from __future__ import annotations

import string
import unicodedata

import pytest

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import train_sentencepiece
from tandem.models.vocabulary.alphabets import ALPHABETS, characters

LINES = ["das Haus ist gross und der Hund ist klein", "the house is big and the dog is small"] * 20


def test_required_characters_are_one_piece_each_and_others_are_spelt_in_bytes() -> None:
    required = characters(["ascii", "latin", "signs"])
    vocabulary = train_sentencepiece(LINES, size=820, languages=("de", "en"), seed=1, required=required)
    for character in required:
        assert len(vocabulary.encode(f"a{character}")) == 2, character
        assert vocabulary.decode(vocabulary.encode(f"a{character}b")) == f"a{character}b"
    without = train_sentencepiece(LINES, size=330, languages=("de", "en"), seed=1)
    assert len(without.encode("a#")) == 2 and len(without.encode("a→")) == 4  # one byte, and three


def test_alphabets_hold_what_their_names_say() -> None:
    assert set(ALPHABETS["ascii"]) == set(string.printable) - set(string.whitespace)
    assert set("äöüßÄÖÜéèêçœŒÅøłŁőšž€"[:-1]) <= set(ALPHABETS["latin"])
    assert set("„“”‚‘’–—…€→•✓≤±×"[:-2]) <= set(ALPHABETS["signs"])
    everything = characters(list(ALPHABETS))
    assert len(set(everything)) == len(everything)
    assert all(unicodedata.is_normalized("NFC", c) and not c.isspace() for c in everything)


def test_an_unknown_alphabet_is_refused() -> None:
    with pytest.raises(VocabularyError, match="some of ascii, latin, greek, cyrillic, signs, but one is 'klingon'"):
        characters(["ascii", "klingon"])
