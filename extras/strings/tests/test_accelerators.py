"""Accelerators of labels: found, left out of what is read, and given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.strings.accelerators import find_accelerator, with_accelerator, with_word_shown
from tandem.extras.strings.strings import AcceleratorStage
from tandem.service.text.masking import Masked
from tandem.service.text.protect import Protector, always_kept
from tandem.service.translation.stages import StagedSentence
from tests.service.support import served, tiny_bundle

STAGE = AcceleratorStage()


@pytest.mark.parametrize(
    ("label", "read"),
    [
        ("&File", "File"),
        ("Save &As…", "Save As…"),
        ("(&Hilfe)", "(Hilfe)"),
        ("E&xit", "Exit"),
        ("Dat&ei öffnen", "Datei öffnen"),
        ("Optio&nen", "Optionen"),
        ("Spiel&modus", "Spielmodus"),
        ("Drag&drop", "Drag&drop"),
        ("Close _window", "Close window"),
        ("_Öffnen", "Öffnen"),
        ("Datei ~öffnen", "Datei öffnen"),
        ("max_filesize", "max_filesize"),
        ("Fi_le", "File"),  # where names are hidden
        ("Prefere_nces...", "Preferences..."),
        ("Save_As", "Save_As"),
        ("_so_", "_so_"),
        ("~5 Minuten", "~5 Minuten"),
        ("&Open_it", "&Open_it"),
        ("Save (&S)...", "Save..."),
        ("Hilfe (&H)", "Hilfe"),
        ("(&H)", "(H)"),
        ("Optione&n", "Optionen"),
        ("&2 Spalten", "2 Spalten"),
        ("AT&T", "AT&T"),
        ("R&D", "R&D"),
        ("H&m", "H&m"),
        ("Salz & Pfeffer", "Salz & Pfeffer"),
        ("&File &Edit", "&File &Edit"),
        ("&&", "&&"),
        ("x" * 100 + " &File", "x" * 100 + " &File"),
    ],
)
def test_what_is_read(label: str, read: str) -> None:
    assert STAGE.prepare(Masked(label)).text == read


@pytest.mark.parametrize(
    ("label", "translation", "written"),
    [
        ("&File", "Datei", "&Datei"),
        ("&File", "Eine Datei für alle", "Eine Datei &für alle"),
        ("E&xit", "Beenden", "&Beenden"),
        ("E&xit", "Hexe", "He&xe"),
        ("&Öffnen", "Open", "&Open"),
        ("&Exit", "…", "…"),
        ("&Exit", "&Ende", "&Ende"),
        ("Haus", "House", "House"),
        ("Save (&S)...", "Speichern...", "Speichern (&S)..."),
        ("Hilfe (&H)", "Help", "Help (&H)"),
        ("Close _window", "Fenster schließen", "_Fenster schließen"),
        ("Datei ~öffnen", "Open file", "~Open file"),
    ],
)
def test_where_it_comes_back(label: str, translation: str, written: str) -> None:
    assert STAGE.finish(translation, StagedSentence(Masked(label), Masked(label))) == written


@given(st.text(alphabet="&aBc .ö1", max_size=12), st.text(alphabet="&aBc .ö1", max_size=12))
def test_a_mark_is_added_once_before_a_letter_or_digit(label: str, translation: str) -> None:
    found = find_accelerator(label)
    if found is None:
        return
    written = with_accelerator(translation, label[found.end - 1])
    assert written.replace("&", "") == translation.replace("&", "")
    assert written.count("&") in (translation.count("&"), 1)
    assert "&" in translation or not any(map(str.isalnum, translation)) or written[written.index("&") + 1].isalnum()


WORDS = {"a": 1, "Haus": 1, "Bahnhof": 1, "Bahn": 1, "Vor": 1, "Vorname": 2, "Vor name": 2}


def pieces(text: str) -> int:
    """Tokens of a text, the tag of a language among them; of what is no word each letter is one."""
    return 1 + WORDS.get(text, len(text))


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("Ha_us", True),
        ("Bahn_hof", True),  # one word to the vocabulary, whatever its halves are
        ("Ha_us öffnen...", True),
        ("Vor_name", False),
        ("ha_us", False),
        ("Ha_Us", False),
        ("Ist Ha_us da?", False),
        ("Ha_us und Bahn_hof", False),
    ],
)
def test_a_word_with_a_sign_within_it_is_no_name(label: str, shown: bool) -> None:
    masked = Masked.of(label).hide(always_kept(label, names=True))
    assert masked.hidden
    assert with_word_shown(masked, pieces) == (Masked(label) if shown else masked)
    asked = Masked.of(label).hide(Protector.of(["Ha_us"]).find(label))
    assert with_word_shown(asked, pieces) == asked


@pytest.mark.anyio
@pytest.mark.parametrize("label", ["Dat&ei", "_Datei"])
async def test_a_label_goes_through_a_server(tmp_path: Path, label: str) -> None:
    """The model copies: what comes back is what was sent, at the place where it stood, and not for a fault."""
    async with served({"de-en": tiny_bundle(tmp_path)}) as service:
        reply = (await service.translate(label, details=True)).json()
        assert len(service.graphs.encoded) == 1
    assert reply["translatedText"] == label
    (sentence,) = reply["details"][0]["sentences"]
    assert (sentence["source"], "faults" in sentence) == ({"start": 0, "end": 6}, False)
