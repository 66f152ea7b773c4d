"""Spaces around what placeholders stand for."""

from __future__ import annotations

import pytest

from service.text.masking import Hidden, Masked
from service.text.placeholders import restored
from service.text.protect import Protector
from service.text.spans import Span

NAMES = ("⟨ph0⟩", "⟨ph1⟩")


@pytest.mark.parametrize(
    ("sentence", "written", "wanted"),
    [
        ("<x id=1/>Datei öffnen<x id=2/>", "⟨ph0⟩ open the file ⟨ph1⟩", "<x id=1/>open the file<x id=2/>"),
        ("Eine <b>Datei</b> ist da", "There is a ⟨ph0⟩ file ⟨ph1⟩ here", "There is a <b>file</b> here"),
        ("Bild <x id=1/> und <x id=2/>", "⟨ph0⟩ and ⟨ph1⟩ picture", "<x id=1/> and <x id=2/> picture"),
        ("{n}fach und %1$s", "⟨ph0⟩ times and ⟨ph1⟩", "{n} times and %1$s"),
    ],
)
def test_tags_touch_the_words_that_they_touched(sentence: str, written: str, wanted: str) -> None:
    masked = Masked.of(sentence).hide(Protector.of(["placeholders"]).find(sentence))
    assert restored(written, masked, NAMES[: len(masked.hidden)]) == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("⟨ph0⟩⟨ph1⟩ here", "onetwo here"),
        ("⟨ph1⟩⟨ph0⟩ here", "two one here"),
        ("⟨ph0⟩ and⟨ph1⟩ here", "one and two here"),
    ],
)
def test_parts_that_stand_side_by_side_stay_so(written: str, wanted: str) -> None:
    masked = Masked.of("onetwo hier").hide([(Span(0, 3), Hidden.kept("one")), (Span(3, 6), Hidden.kept("two"))])
    assert restored(written, masked, NAMES) == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("⟨ph0⟩⟨ph0⟩ here", "oneone here"),
        ("⟨ph0⟩ here", "one here"),
        ("⟨ph0⟩⟨ph0⟩⟨ph0⟩ here", "oneone one here"),
    ],
)
def test_a_part_that_stands_beside_itself_has_one_placeholder_twice(written: str, wanted: str) -> None:
    masked = Masked.of("oneone hier").hide([(Span(0, 3), Hidden.kept("one")), (Span(3, 6), Hidden.kept("one"))])
    assert restored(written, masked, NAMES[:1] * 2) == wanted
