"""Which words of a sentence are nouns that a model may lose, and what they are in the translation."""

from __future__ import annotations

import pytest

from extras.rewriting.lexicon import Lexicon
from extras.rewriting.nouns import Nouns
from models.vocabulary import WordVocabulary
from tests.service.support import tiny_vocabulary

GERMAN = {
    "Löffel": ("spoon",),
    "Füchse": ("foxes",),
    "Haus": ("house", "home"),
    "laufen": ("run",),
    "Laufen": ("running",),
    "Server": ("Server",),
    "Ei": ("egg",),
    "gute": ("good",),
}
ENGLISH = {
    "spoon": ("Löffel",),
    "smoke": ("Rauch", "rauchen"),
    "foxes": ("Füchse",),
    "she": ("sie",),
    "May": ("Mai",),
}
FRENCH = {"gants": ("gloves",), "arbre": ("tree", "wood"), "mange": ("eats",), "porte-clés": ("key ring",)}


def found(text: str, *hops: tuple[str, str, dict[str, tuple[str, ...]]]) -> list[tuple[str, str, tuple[str, ...]]]:
    lexicons = [(Lexicon({(source, target): words}), source, target) for source, target, words in hops]
    places = Nouns(lexicons, tiny_vocabulary()).find(text)
    assert all(text[span.start : span.end] == one.source and not one.asked for span, one in places)
    return [(one.source, one.target, one.accepted) for _, one in places]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dieser Löffel ist neu", ["Löffel"]),
        ("Füchse laufen", ["Füchse"]),
        ("Laufen ist gesund", []),  # which of two it is, the beginning of a sentence does not say
        ("das Laufen", ["Laufen"]),
        ("im löffel", []),
        ("der Server", []),
        ("das Ei", []),
        ("alles Gute", []),
        ("das Haus-Löffel, Haus.txt @Haus /Haus Haus's", []),
        ("„Haus“ (Haus), Haus.", ["Haus"] * 3),
    ],
)
def test_german_writes_them_with_capitals(text: str, words: list[str]) -> None:
    assert [word for word, _, _ in found(text, ("de", "en", GERMAN))] == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my spoon is new", ["spoon"]),
        ("Foxes run, foxes sleep", ["foxes"]),  # "Block ads" begins with a verb
        ("do not smoke", []),  # it may be a verb
        ("She's here in May", []),
        ("the spoon's", []),
    ],
)
def test_into_german_they_are_what_always_gets_a_capital(text: str, words: list[str]) -> None:
    assert [word for word, _, _ in found(text, ("en", "de", ENGLISH))] == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("une paire de gants", ["gants"]),
        ("L'arbre mange", ["arbre"]),
        ("l’arbre et les Gants", ["arbre"]),
        ("il mange gants", []),
        ("un porte-clés", ["porte-clés"]),
    ],
)
def test_elsewhere_they_stand_behind_what_stands_before_nouns(text: str, words: list[str]) -> None:
    assert [word for word, _, _ in found(text, ("fr", "en", FRENCH))] == words


PARTS = {
    "Regal": ("shelf", "rack"),
    "Buch": ("book",),
    "Kunde": ("customer",),
    "Kunden": ("customers",),
    "Dienst": ("service",),
    "rot": ("red",),
    "Wein": ("wine",),
    "Bücherregal": ("bookcase",),
}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("Kundendienst", "customers service"),
        ("Dienstbuch", "service book"),
        ("Dienstesbuch", "service book"),
        ("Rotwein", "red wine"),
        ("Bücherregal", "bookcase"),
        ("Weinzeitung", None),
        ("Zeitungswein", None),
        ("Buchung", None),
        ("weinregal", None),
    ],
)
def test_a_compound_is_its_parts(word: str, said: str | None) -> None:
    assert [one for _, one, _ in found(f"ein {word}", ("de", "en", PARTS))] == [said][: said is not None]


def test_any_way_to_say_the_last_part_of_a_compound_will_do() -> None:
    assert found("im Weinregal", ("de", "en", PARTS)) == [("Weinregal", "wine shelf", ("shel", "rack"))]


def test_a_language_that_has_other_compounds_gets_none() -> None:
    assert found("im Weinregal", ("de", "fr", PARTS)) == []
    assert found("im Weinregal", ("de", "en", PARTS), ("en", "fr", {"shelf": ("étagère",)})) == []


def test_a_language_of_which_nothing_is_known_has_none() -> None:
    assert found("kupuj noże", ("pl", "en", {"noże": ("knives",)})) == []


def test_the_first_way_is_written_and_any_is_accepted_in_all_its_forms() -> None:
    assert found("im Haus", ("de", "en", GERMAN)) == [("Haus", "house", ("hous", "home"))]
    assert found("The foxes", ("en", "de", {"foxes": ("Füchse", "Fuchs")})) == [("foxes", "Füchse", ("füch", "fuch"))]


def test_through_a_language_between_all_ways_of_all_ways_are_accepted() -> None:
    first = ("de", "en", GERMAN)
    both = found("im Haus", first, ("en", "fr", {"house": ("maison",), "home": ("domicile",)}))
    assert both == [("Haus", "maison", ("mais", "domici"))]
    assert found("im Haus", first, ("en", "fr", {"home": ("domicile",)})) == []


def test_what_the_vocabulary_has_whole_is_not_lost() -> None:
    lexicon = Lexicon({("de", "en"): GERMAN})
    nouns = Nouns([(lexicon, "de", "en")], WordVocabulary(["Löffel"]))
    assert nouns.find("der Löffel und das Haus") == []
