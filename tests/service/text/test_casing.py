"""Sentences in capitals, and without any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.lexicon import Lexicon
from service.text.casing import calm, is_shouted, shout

LEXICON = Lexicon({("de", "en"): {"Haus": ("house",), "weg": ("away",), "Weg": ("way",), "USB": ("USB",)}})


def spelling(word: str) -> str:
    return LEXICON.spelling("de", "en", word)


@pytest.mark.parametrize(
    ("text", "shouted", "calmed"),
    [
        ("DAS HAUS IST WEG!", True, "Das Haus ist weg!"),
        ("(1) ÖFFNE DAS USB-HAUS", True, "(1) Öffne das usb-haus"),
        ("DAS USB HAUS", True, "Das USB Haus"),
        ("das haus ist weg", False, "das Haus ist weg"),
        ("HAUS", False, "HAUS"),
        ("Das HAUS ist WEG", False, "Das HAUS ist WEG"),
        ("12 34!", False, "12 34!"),
        ("家 家", False, "家 家"),
        ("", False, ""),
    ],
)
def test_a_sentence_is_read_as_others_are_written(text: str, shouted: bool, calmed: str) -> None:
    assert (is_shouted(text), calm(text, spelling)) == (shouted, calmed)


def test_parts_stay_as_they_are_among_capitals() -> None:
    assert shout("open {name} at a.b/c now", ["{name}", "a.b/c", "a.b"]) == "OPEN {name} AT a.b/c NOW"
    assert shout("with it", ["it"]) == "WITH it"
    assert shout("straße", []) == "STRASSE"


@given(st.text("aÄß .1{", max_size=30))
def test_calming_changes_nothing_but_case(text: str) -> None:
    calmed = calm(text.upper(), lambda word: word)
    assert calmed.upper() == text.upper()
    assert calm(calmed, lambda word: word) in (calmed, calmed.lower())
