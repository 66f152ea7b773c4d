"""Untidy text: what each perturbation does, what it leaves alone, and that a seed decides everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.augmentation.perturbations import LEAST_LETTERS, lower_case, with_typos, without_punctuation


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_lower_case_leaves_reserved_strings() -> None:
    assert lower_case("Die Straße von ⟨ph3⟩ nach ÖSTERREICH") == "die straße von ⟨ph3⟩ nach österreich"
    assert lower_case("⟨pt-BR⟩ ABC") == "⟨pt-BR⟩ abc"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Wait, what?! No.", "Wait what No"),
        ("Don't pay 3.5, well-known friend", "Don't pay 3.5 well-known friend"),
        ("„Ja“, sagte er – endlich!", "Ja sagte er endlich"),
        ("⟨ph0⟩, hello (⟨ph1⟩)", "⟨ph0⟩ hello ⟨ph1⟩"),
        ("1 + 1 = 2€", "1 + 1 = 2€"),
        ("?!…", "?!…"),
        ("", ""),
    ],
)
def test_punctuation_goes_but_not_inside_words(text: str, bare: str) -> None:
    assert without_punctuation(text) == bare


@given(st.text(max_size=80), st.integers(0, 1000))
def test_typos_keep_words_and_begin_as_they_did(text: str, seed: int) -> None:
    typed = with_typos(text, 0.5, rng(seed))
    assert len(typed.split()) == len(text.split())
    assert typed == with_typos(text, 0.5, rng(seed))


def test_typos_come_in_every_word_that_is_chosen_and_no_other() -> None:
    text = "Katze und Hund, der ⟨ph12⟩ schläft on ⟨placeholder⟩ 2024"
    seen = {with_typos(text, 1.0, rng(seed)) for seed in range(60)}
    assert len(seen) > 20
    for typed in seen:
        cat, _and, dog, der, mark, sleeps, on, other, year = typed.split()
        assert (_and, der, mark, on, other, year) == ("und", "der", "⟨ph12⟩", "on", "⟨placeholder⟩", "2024")
        assert cat != "Katze" and dog != "Hund," and sleeps != "schläft"
        assert (cat[0], dog[0], sleeps[0]) == ("K", "H", "s"), "first letters stay"
        assert all(abs(len(new) - len(old)) <= 1 for new, old in ((cat, "Katze"), (dog, "Hund,"), (sleeps, "schläft")))


def test_all_kinds_of_typos_occur() -> None:
    kinds = set()
    for seed in range(80):
        typed = with_typos("abcdefgh", 1.0, rng(seed))
        kinds.add("same letters" if sorted(typed) == sorted("abcdefgh") else len(typed) - 8)
    assert kinds == {"same letters", -1, 0, 1}


def test_at_least_one_word_is_mistyped_where_there_is_one() -> None:
    assert with_typos("Hello there people", 0.0, rng()) != "Hello there people"
    short = "a bb ccc 12345"
    assert all(len(word) < LEAST_LETTERS for word in short.split()[:3])
    assert with_typos(short, 1.0, rng()) == short
