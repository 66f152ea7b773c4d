"""Spaces around what placeholders stand for."""

from __future__ import annotations

import pytest

from service.text.masking import Masked
from service.text.placeholders import restored
from service.text.protect import Protector

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
