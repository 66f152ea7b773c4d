"""Names in texts, as lexicons know them."""

from __future__ import annotations

import pytest

from extras.rewriting.lexicon import Lexicon
from extras.rewriting.names import NO_NAMES, Names

ENGLISH = Lexicon(
    {
        ("en", "de"): {
            "Anna": ("Anna",),
            "Munich": ("München",),
            "will": ("wird",),
            "Will": ("Will",),
            "the": ("der",),
        },
        ("en", "fr"): {"Munich": ("Munich",), "London": ("Londres",), "Friday": ("vendredi",), "the": ("le",)},
    }
)
GERMAN = Lexicon(
    {
        ("de", "en"): {
            "Anna": ("Anna",),
            "Haus": ("house",),
            "Frau": ("woman",),
            "Montag": ("Monday",),
            "München": ("Munich",),
            "Deutsche": ("German", "Germans"),
        }
    }
)
DE_EN, EN_DE, EN_FR = (GERMAN, "de", "en"), (ENGLISH, "en", "de"), (ENGLISH, "en", "fr")


ADDRESSES = ("Sehr", "Liebe", "Lieber", "Dear", "Herr", "Herrn", "Frau", "Mr", "Mr.", "Mrs", "M.")


def found(names: Names, text: str) -> list[tuple[str, str]]:
    places = names.find(text)
    assert all(text[span.start : span.end] == part.source == part.term and not part.asked for span, part in places)
    assert all(part.read_first == (part.source.split()[0] not in ADDRESSES) for _, part in places)
    return [(part.source, part.target) for _, part in places]


@pytest.mark.parametrize(
    ("hops", "text", "names"),
    [
        ([DE_EN], "Anna hat ein Haus in München.", [("Anna", "Anna"), ("München", "Munich")]),
        ([DE_EN], "Am Montag kommt Kowalski.", [("Montag", "Monday")]),  # of German nouns capitals say nothing
        ([DE_EN], "Da ist Anna Müller.", [("Anna", "Anna"), ("Müller", "Müller")]),  # but beside a name
        ([DE_EN], "Dort sah Bruno Nowak", [("Bruno", "Bruno"), ("Nowak", "Nowak")]),
        ([DE_EN], "Da wohnt Frau Müller", [("Frau Müller", "Ms. Müller")]),
        ([DE_EN], "Da ist meine Frau Anna", [("Anna", "Anna")]),
        ([DE_EN], "Herrn Haus, Herr Präsident, der Herr", [("Herrn Haus", "Mr. Haus")]),  # surnames are words, too
        (
            [DE_EN],
            "Herr und Frau Kowalski, Herrn und Frau Dr. Nowak, Herr und Frau",
            [
                ("Herr und Frau Kowalski", "Mr. and Mrs. Kowalski"),
                ("Herrn und Frau Dr. Nowak", "Mr. and Mrs. Dr. Nowak"),
            ],
        ),
        ([DE_EN], "Sehr geehrter Herr Dr. Nowak, sehr", [("Sehr geehrter Herr Dr. Nowak", "Dear Dr. Nowak")]),
        ([DE_EN], "Liebe Anna, lieber Bruno", [("Liebe Anna", "Dear Anna")]),
        ([DE_EN], "Liebe Anna ist da. Liebe Haus, Sehr geehrte Anna", [("Anna", "Anna")] * 2),
        ([DE_EN, EN_FR], "Liebe Anna!", [("Liebe Anna", "Chère Anna")]),
        ([DE_EN, EN_FR], "Lieber Herr Dr. Nowak", [("Lieber Herr Dr. Nowak", "Cher Monsieur Dr. Nowak")]),
        ([EN_DE], "Dear Anna,", [("Dear Anna", "Hallo Anna")]),
        ([EN_DE], "Dear Mr. and Mrs. Nowak,", [("Dear Mr. and Mrs. Nowak", "Sehr geehrte Eheleute Nowak")]),
        ([EN_FR], "Mr and Mrs. Nowak", [("Mr and Mrs. Nowak", "M. et Mme Nowak")]),
        ([EN_DE], "Mr. and Mrs. Nowak", [("Mr. and Mrs. Nowak", "Herr und Frau Nowak")]),
        ([EN_FR], "Mrs Kowalski and Mr. Nowak", [("Mrs Kowalski", "Mme Kowalski"), ("Mr. Nowak", "M. Nowak")]),
        ([DE_EN, EN_FR], "Herr Müller", [("Herr Müller", "M. Müller")]),
        ([DE_EN], "Da, Anna, Müller und Bruno", [("Anna", "Anna")]),
        ([DE_EN], "Anna Baumhaus, Anna Rot-Grün und Anna Haus", [("Anna", "Anna")] * 3),  # compounds are no names
        ([DE_EN], "Eine Deutsche", []),  # there is more than one way to say it
        ([EN_DE], "Anna lives in Munich.", [("Anna", "Anna")]),  # all German nouns have capitals
        ([EN_DE], "Will the doctor, Kowalski, come?", [("Kowalski", "Kowalski")]),
        ([EN_DE], "Kowalski came. Kowalski went: Kowalski", []),  # may be any words at the beginning
        ([EN_DE], "Mr. Kowalski came. Nowak", [("Mr. Kowalski", "Herr Kowalski")]),
        ([DE_EN], "Frau Prof. Dr. Haus.", [("Frau Prof. Dr. Haus", "Prof. Dr. Haus")]),
        ([EN_DE], "the Gen. Kowalski, M. the", []),
        ([EN_DE], "I Will", []),
        ([EN_FR], "in London's house, Mr Nowak’s", [("London", "Londres"), ("Mr Nowak", "M. Nowak")]),
        ([EN_DE], "in Kowalski's house", [("Kowalski's", "Kowalski's")]),
        ([EN_FR], "On Friday in London", [("London", "Londres")]),
        ([EN_DE], "see Kowalski/Anna.txt, Anna-Maria or x@Anna", [("Anna-Maria", "Anna-Maria")]),
        ([DE_EN, EN_DE], "Anna aus München", [("Anna", "Anna")]),
        ([DE_EN, EN_FR], "Anna aus München", [("Anna", "Anna"), ("München", "Munich")]),
        ([(GERMAN, "de", "fr")], "Anna aus München", []),
    ],
)
def test_names_are_found(hops: list[tuple[Lexicon, str, str]], text: str, names: list[tuple[str, str]]) -> None:
    assert found(Names(hops), text) == names


def test_without_a_lexicon_there_are_none() -> None:
    assert not NO_NAMES and NO_NAMES.find("see Anna") == []
    assert not Names([(Lexicon(), "en", "de")])
    assert not Names([EN_DE, (Lexicon(), "de", "fr")])
