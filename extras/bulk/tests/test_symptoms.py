"""Signs of a model that has lost the thread, and text that only looks like them."""

from __future__ import annotations

import pytest

from tandem.extras.bulk.symptoms import is_loop, most_rounds, symptom


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("", 0),
        ("one", 1),
        ("very, very good", 1),
        ("very very good", 2),
        ("no no no", 3),
        ("I do not know I do not know I do not know", 3),
        ("the a the a the a the", 3),
        ("a b c d", 1),
    ],
)
def test_rounds(text: str, rounds: int) -> None:
    assert most_rounds(text) == rounds


def test_a_loop_is_more_than_people_write_and_more_than_the_source_has() -> None:
    assert is_loop("no no no")
    assert not is_loop("no no no", "nein nein nein")
    assert is_loop("no no no no", "nein nein nein")
    assert not is_loop("bye bye")
    assert is_loop("ha, ha, ha, ha")


@pytest.mark.parametrize(
    ("text", "reference", "sign"),
    [
        ("", "something", "empty"),
        (" ", "", ""),
        ("the the the the", "the cat sleeps here", "loop"),
        ("short", "this is a reference of eight words here", "short"),
        ("so many words for what is only one thing to say", "three words only", "long"),
        ("two words", "one", ""),
        ("a translation like any other", "a reference like any other", ""),
    ],
)
def test_symptoms(text: str, reference: str, sign: str) -> None:
    assert symptom(text, "eine Quelle", reference) == sign
