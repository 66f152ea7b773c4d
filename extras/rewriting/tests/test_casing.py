"""Sentences in capitals, and without any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.rewriting.casing import EMPHASISED, calm, has_loud_label, is_shouted, shout, shout_label
from tandem.extras.rewriting.lexicon import Lexicon

WORDS = ("Haus", "weg", "Weg", "USB", "ist", "nicht", "NICHT", "keine", "U", "I")
LEXICON = Lexicon({("de", "en"): dict.fromkeys(WORDS, ("word",))})


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
        ("die 2haus und haus, p.haus. u haus", False, "die 2haus und Haus, p.haus. u Haus"),
        ("das u ist i", False, "das u ist I"),
        ("", False, ""),
    ],
)
def test_a_sentence_is_read_as_others_are_written(text: str, shouted: bool, calmed: str) -> None:
    assert (is_shouted(text), calm(text, spelling)) == (shouted, calmed)


@pytest.mark.parametrize(
    ("text", "calmed"),
    [
        ("Das ist NICHT weg, KEINE USB-Tür", "Das ist nicht weg, keine USB-Tür"),
        ("Das Haus IST NICHT WEG", "Das Haus ist nicht weg"),
        ("NICHT das Haus", "Nicht das Haus"),
        ("(HAUS WEG: das)", "(Haus weg: das)"),
        ("HAUS : das", "Haus : das"),
        ("NIE weg", "Nie weg"),  # not in the lexicon, but in no other way a word
        ("USB: NICHT_weg, NICHT.weg, NICHT/WEG, HAUS", "USB: NICHT_weg, NICHT.weg, NICHT/WEG, HAUS"),
        ("das NICHT UND weg, HAUS:WEG", "das NICHT UND weg, HAUS:WEG"),
    ],
)
def test_loud_words_are_read_as_others_are_written(text: str, calmed: str) -> None:
    assert calm(text, spelling, EMPHASISED["de"]) == calmed


@pytest.mark.parametrize(
    ("text", "loud"), [("WEG DA: x", True), ("(WEG : x", True), ("Weg: x", False), ("WEG:x", False)]
)
def test_labels_are_loud_again(text: str, loud: bool) -> None:
    assert has_loud_label(text) is loud
    assert shout_label("way: {x}: y", ["{x}"]) == "WAY: {x}: y"
    for whole in ("way", "see http://x.y: z", "this is so much more: x"):
        assert shout_label(whole, ["http://x.y"]) == whole.replace("see", "SEE")


def test_parts_stay_as_they_are_among_capitals() -> None:
    assert shout("open {name} at a.b/c now", ["{name}", "a.b/c", "a.b"]) == "OPEN {name} AT a.b/c NOW"
    assert shout("with it", ["it"]) == "WITH it"
    assert shout("straße", []) == "STRASSE"


@given(st.text("aÄß .1{", max_size=30))
def test_calming_changes_nothing_but_case(text: str) -> None:
    calmed = calm(text.upper(), lambda word: word)
    assert calmed.upper() == text.upper()
    assert calm(calmed, lambda word: word) in (calmed, calmed.lower())
