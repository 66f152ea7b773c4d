"""Kinds of text that once came back torn, each at the depth where it is mended."""

from __future__ import annotations

import pytest

from tandem.service.text.glossary import Glossary
from tandem.service.text.layout import Document
from tandem.service.text.masking import Masked
from tandem.service.text.protect import Protector
from tandem.service.text.spans import Span
from tandem.service.translation.masker import Masker


def translated(text: str) -> list[str]:
    """What of a German text is translated."""
    document = Document.parse(text, "de", "en", 100, lambda part: len(part.split()))
    return [piece.text for piece in document.sentences]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("10.000 Menschen kamen.", ["10.000 Menschen kamen."]),
        ("8.30 Uhr Frühstück", ["8.30 Uhr Frühstück"]),
        ("10.5 Millionen leben hier.", ["10.5 Millionen leben hier."]),
        ("3.2 Einrichtung", ["Einrichtung"]),
        ("1.2.10 Einrichtung", ["Einrichtung"]),
        ("« Zurück", ["Zurück"]),
        ("Weiter »", ["Weiter"]),
        ("Haus ›", ["Haus"]),
        ("« Haus » ist neu", ["« Haus » ist neu"]),
        ("Haus<br>Hund<br />Katze", ["Haus", "Hund", "Katze"]),
        (r"Haus\nHund", ["Haus", "Hund"]),
        (r"Haus\r\nHund", ["Haus", "Hund"]),
        (r"C:\neu", [r"C:\neu"]),
        ("Nimm dies:\n```\nnpm run build\n```\nFertig.", ["Nimm dies:", "Fertig."]),
        ("```\nohne Ende", ["ohne Ende"]),
        ("~~~~~~~~\nWillkommen\n~~~~~~~~", ["Willkommen"]),
        ("```a``` ist Code.\nUnd dies.\n```b``` auch.", ["a``` ist Code.", "Und dies.", "b``` auch."]),
        ("````md\n```\nx\n```\n````\nFertig.", ["Fertig."]),
        ("rot    blaues Auto  grün", ["rot", "blaues Auto", "grün"]),
        ("Haus » Garten   Hof  Tor", ["Haus", "Garten", "Hof", "Tor"]),
        ("Haus »Nord«   Ost  West", ["Haus »Nord«", "Ost", "West"]),
        ("Zwei  Wörter.", ["Zwei  Wörter."]),
        ("2.1 Tagesordnung", ["Tagesordnung"]),
        ("A", []),
        ("c", []),
        ("Menü ‹ Zurück", ["Menü", "Zurück"]),
        ("Er sagt ‹ja› dazu", ["Er sagt ‹ja› dazu"]),
        ("B.", []),
        ("Reihe A", ["Reihe A"]),
        ("Ö", ["Ö"]),
        ("I", ["I"]),
        ("a", ["a"]),
        ("A | B | Summe", ["Summe"]),
        ("Hund/Katze", ["Hund", "Katze"]),
        ("männlich/weiblich/divers:", ["männlich", "weiblich", "divers:"]),
        ("TCP/IP", ["TCP/IP"]),
        ("km/h und Ja/Nein", ["km/h und Ja/Nein"]),
        ("<<< Zurück", ["Zurück"]),
        ("»»» Weiter", ["Weiter"]),
        ("A) Hund", ["Hund"]),
        ("Hund;Katze;Maus", ["Hund", "Katze", "Maus"]),
        ("…mehr", ["mehr"]),
        ("...und dann... ging er.", ["und dann... ging er."]),
    ],
)
def test_what_is_layout_and_what_is_text(text: str, sentences: list[str]) -> None:
    assert translated(text) == sentences


def test_a_new_page_is_a_line_end() -> None:
    text = Masked.of("Hund\fKatze\vMaus\r\n").normalised().text
    assert text == "Hund\fKatze\vMaus\r\n" and translated(text) == ["Hund", "Katze", "Maus"]


@pytest.mark.parametrize(
    ("text", "kept", "hidden"), [("CO2 da", (2, 3), "CO2"), ("%d da", (0, 2), "%d"), ("so 2", (3, 4), "2")]
)
def test_what_markup_keeps_is_read_with_the_name_that_it_is_in(text: str, kept: tuple[int, int], hidden: str) -> None:
    masked = Masker(Protector(), Glossary.of({}), names=True).mask(text, [Span(*kept)])
    (part,) = masked.hidden
    assert (part.source, part.read_first) == (hidden, hidden != "2")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Siehe https://haus.de/haus.", []),
        ("Mail an haus@haus.de", []),
        ("Datei {haus} und haus.txt", []),
        ("{n, plural, one {# haus} other {# haus}}", []),
        ("Das haus in {haus}", ["haus"]),
        ("haus_id ist neu", []),
    ],
)
def test_terms_within_what_is_kept_are_none(text: str, found: list[str]) -> None:
    masker = Masker(Protector(), Glossary.of({"haus": "building"}), names=True)
    assert [part.source for part in masker.mask(text).hidden if part.target == "building"] == found


def test_a_term_that_holds_what_is_kept_counts() -> None:
    masker = Masker(Protector(), Glossary.of({"Port 8000_a": "gate"}), names=True)
    assert "gate" in [part.target for part in masker.mask("der Port 8000_a hier").hidden]
