"""Spaces around what placeholders stand for."""

from __future__ import annotations

import pytest

from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.placeholders import found_parts, marked, restored, set_apart
from tandem.service.text.protect import Protector
from tandem.service.text.spans import Span

NAMES = ("⟨ph0⟩", "⟨ph1⟩")


@pytest.mark.parametrize(
    ("sentence", "written", "wanted"),
    [
        ("<x id=1/>Datei öffnen<x id=2/>", "⟨ph0⟩ open the file ⟨ph1⟩", "<x id=1/>open the file<x id=2/>"),
        ("Eine <b>Datei</b> ist da", "There is a ⟨ph0⟩ file ⟨ph1⟩ here", "There is a <b>file</b> here"),
        ("Bild <x id=1/> und <x id=2/>", "⟨ph0⟩ and ⟨ph1⟩ picture", "<x id=1/> and <x id=2/> picture"),
        ("{n}fach und %1$s", "⟨ph0⟩ times and ⟨ph1⟩", "{n} times and %1$s"),
        ("{n}px von v%1$s", "⟨ph0⟩ px of v ⟨ph1⟩", "{n}px of v%1$s"),
        ("{n}px", "⟨ph0⟩ pxs", "{n} pxs"),
        ("%1$s:%2$s fehlt", "⟨ph0⟩: ⟨ph1⟩ is missing", "%1$s:%2$s is missing"),
        ("%1$s: %2$s fehlt", "⟨ph0⟩: ⟨ph1⟩ is missing", "%1$s: %2$s is missing"),
        ("{% if x %}Ja{% endif %}", "⟨ph0⟩ Yes ⟨ph1⟩", "{% if x %}Yes{% endif %}"),
        ("10&nbsp;km", "10 ⟨ph0⟩ kilometers", "10&nbsp;kilometers"),
        ("Tag &amp; Nacht", "Tag-⟨ph0⟩-Nacht", "Tag &amp; Nacht"),
    ],
)
def test_tags_touch_the_words_that_they_touched(sentence: str, written: str, wanted: str) -> None:
    masked = Masked.of(sentence).hide(Protector.of(["placeholders"]).find(sentence))
    assert restored(written, masked, NAMES[: len(masked.hidden)]) == wanted


@pytest.mark.parametrize(
    ("sentence", "written", "wanted"),
    [
        ("Open \uf0e0 Settings", "⟨ph0⟩-Einstellungen öffnen", "\uf0e0 Einstellungen öffnen"),
        ("Open \uf0e0Settings", "Öffne ⟨ph0⟩-Einstellungen", "Öffne \uf0e0Einstellungen"),
        ("News & Articles", "News-⟨ph0⟩-Artikel", "News & Artikel"),
        ("Open ★-Settings", "Öffne ⟨ph0⟩-Einstellungen", "Öffne ★-Einstellungen"),
        ("Open ★ Settings", "Öffne ⟨ph0⟩ - Einstellungen", "Öffne ★ - Einstellungen"),
    ],
)
def test_a_sign_becomes_no_part_of_a_word(sentence: str, written: str, wanted: str) -> None:
    masked = Masked.of(sentence).hide([(Span(5, 6), Hidden.kept(sentence[5], asked=False))])
    assert restored(written, masked, NAMES[:1]) == wanted


def test_a_translation_without_placeholders_stays() -> None:
    masked = Masked.of("Das {x} ist").hide(Protector.of(["placeholders"]).find("Das {x} ist"))
    assert restored("This is", masked, ("",)) == "This is"


def test_parts_that_were_copied_touch_what_they_touched() -> None:
    sentence = "{{^leer}}Ja{{/leer}} %s:%s"
    masked = Masked.of(sentence).hide(Protector.of(["placeholders"]).find(sentence))
    written = "{{^leer}} Yes {{/leer}} %s: %s"
    assert restored(*marked(written, masked, ("",) * 4)) == "{{^leer}}Yes{{/leer}} %s:%s"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("She logged in the ⟨ph0⟩", "She logged in on May 3"),
        ("It is of ⟨ph0⟩", "It is on May 3"),
        ("The ⟨ph0⟩ is it", "On May 3 is it"),
        ("It is lathe ⟨ph0⟩", "It is lathe on May 3"),
        ("It is the, ⟨ph0⟩", "It is the, on May 3"),
    ],
)
def test_what_a_part_says_itself_is_not_said_twice(written: str, wanted: str) -> None:
    part = Hidden("am 3. Mai", "on May 3", "am 3. Mai", at_once=True, instead_of=frozenset(["the", "of"]))
    masked = Masked.of("Es ist am 3. Mai").hide([(Span(7, 16), part)])
    assert restored(written, masked, NAMES[:1]) == wanted


ONCE, TWICE = ("one", "two"), ("one", "one")


@pytest.mark.parametrize(
    ("parts", "written", "wanted"),
    [
        (ONCE, "⟨ph0⟩⟨ph1⟩ here", "onetwo here"),
        (ONCE, "⟨ph1⟩⟨ph0⟩ here", "two one here"),
        (ONCE, "⟨ph0⟩ and⟨ph1⟩ here", "one and two here"),
        (ONCE, "so ⟨ph0⟩ ⟨ph1⟩ here", "so onetwo here"),
        (TWICE, "⟨ph0⟩⟨ph0⟩ here", "oneone here"),
        (TWICE, "⟨ph0⟩ here", "one here"),
        (TWICE, "⟨ph0⟩⟨ph0⟩⟨ph0⟩ here", "oneone one here"),
    ],
)
def test_parts_that_stand_side_by_side_stay_so(parts: tuple[str, str], written: str, wanted: str) -> None:
    """A part that stands beside itself has one placeholder, twice."""
    places = zip((Span(0, 3), Span(3, 6)), map(Hidden.kept, parts), strict=True)
    masked = Masked.of(f"{''.join(parts)} hier").hide(list(places))
    names = NAMES if parts == ONCE else NAMES[:1] * 2
    assert restored(written, masked, names) == wanted


def test_a_part_that_is_read_is_found_as_what_stands_for_it_and_a_placeholder_as_itself() -> None:
    term = Hidden("Haus", "house", "Haus")
    for text, found in (("a house", True), ("House", True), ("a housing", False)):
        assert found_parts(text, [term], [""]) == (found,)
    assert found_parts("a house", [term], ["⟨ph0⟩"]) == (False,)
    assert found_parts("a ⟨ph0⟩", [term], ["⟨ph0⟩"]) == (True,)


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("{a}px, v{b}", "X1 px, v X2"),
        ("{a}{b}!", "X1 X2!"),
        ("({a}) {b}.", "(X1) X2."),
        ("Es ist {a}", "Es ist X1"),
    ],
)
def test_codes_run_into_no_word(sentence: str, read: str) -> None:
    masked = Masked.of(sentence).hide(Protector.of(["placeholders"]).find(sentence))
    names = ("X1", "X2")[: len(masked.hidden)]
    assert masked.fill(set_apart(masked, names, names)) == read
    assert set_apart(masked, [part.source for part in masked.hidden], ("",) * len(names)) == [
        part.source for part in masked.hidden
    ]
