"""Placeholders stand for the same text on both sides, and only for text that is copied."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.training.data.placeholders import NameFinder, choose_placeholders

PLACEHOLDER = re.compile(r"⟨ph\d+⟩")
FILLER = (["der hund von heute war gut", "in der stadt"], ["the dog of today was good", "in the town"])


def rewrite(source: str, target: str, *, equal_counts: bool = True, seed: int = 0) -> tuple[str, ...] | None:
    columns = ([*FILLER[0], source], [*FILLER[1], target])
    chosen = choose_placeholders(columns, share=1.0, rng=np.random.default_rng(seed), equal_counts=equal_counts)
    return chosen.get(2)


@pytest.mark.parametrize(
    ("source", "target", "span"),
    [
        ("es kostet 1,250 Euro", "it costs 1,250 euros", "1,250"),
        ("siehe https://a.example/x?y=1.", "see https://a.example/x?y=1.", "https://a.example/x?y=1"),
        ("an me@a.example bitte", "to me@a.example please", "me@a.example"),
        ("das ist Tom Miller heute", "this is Tom Miller today", "Tom Miller"),
        ("setze max_length hier", "set max_length here", "max_length"),
        ("mit FastAPI geht es", "with FastAPI it works", "FastAPI"),
    ],
)
def test_what_is_copied_becomes_a_placeholder(source: str, target: str, span: str) -> None:
    rewritten = rewrite(source, target)
    assert rewritten is not None
    (placeholder,) = set(PLACEHOLDER.findall(rewritten[0]))
    assert rewritten == (source.replace(span, placeholder), target.replace(span, placeholder))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("In der stadt", "In the town"),  # capitalised at the start only
        ("es sind 3", "there are 4"),
        ("es sind 1.5", "there are 1,5"),
        ("Tom und Tom", "Tom and him"),  # not equally often
        ("Tom sagt ⟨ph3⟩", "Tom says ⟨ph3⟩"),  # typed, not ours
    ],
)
def test_what_is_not_copied_stays(source: str, target: str) -> None:
    assert rewrite(source, target) is None


def test_summaries_need_the_span_once() -> None:
    rewritten = rewrite("Tom und Tom", "about Tom", equal_counts=False)
    assert rewritten is not None
    assert len(set(PLACEHOLDER.findall(" ".join(rewritten)))) == 1
    assert "Tom" not in " ".join(rewritten)


NAMES = ["Anna", "Boston", "Peter", "Rome", "7", "42", "x_y"]


@given(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6), min_size=1, max_size=20), st.integers(0, 99))
def test_identical_on_both_sides(rows: list[list[str]], seed: int) -> None:
    columns = ([" und ".join(row) for row in rows], [" and ".join(reversed(row)) for row in rows])
    chosen = choose_placeholders(columns, share=1.0, rng=np.random.default_rng(seed))
    for source, target in chosen.values():
        assert Counter(PLACEHOLDER.findall(source)) == Counter(PLACEHOLDER.findall(target)) != Counter()
    again = choose_placeholders(columns, share=1.0, rng=np.random.default_rng(seed))
    assert again == chosen


def test_share_and_variety() -> None:
    columns = ([f"Tom {n}" for n in range(2000)], [f"Tom {n}" for n in range(2000)])
    chosen = choose_placeholders(columns, share=0.1, rng=np.random.default_rng(1))
    assert len(chosen) == 200
    assert sum("Tom" not in source for source, _ in chosen.values()) <= 10
    assert len({p for pair in chosen.values() for p in PLACEHOLDER.findall(pair[0])}) == 16
    assert not choose_placeholders(columns, share=0.0, rng=np.random.default_rng(1))


def test_names_are_told_from_nouns() -> None:
    names = NameFinder((["Die Hand von Tom", "die Wahl"], ["Hand me Tom", "the hand"]))
    assert names.is_name("Tom")
    assert not names.is_name("Hand")
    assert not names.is_name("I")


def test_names_are_found_in_a_part_of_very_much_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.training.data.placeholders.MOST_LINES", 2)
    columns = [["Haus", "Tom", "haus", "Eva"]] * 2  # the first and the third line are looked at
    assert not NameFinder(columns).is_name("Haus")
    assert not NameFinder([["Haus", "haus", "Haus", "haus"]]).is_name("haus")
    assert NameFinder([["Haus", "haus", "Haus", "haus"]]).is_name("Haus")
