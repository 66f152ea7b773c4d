"""Comparing systems: scores as everywhere else, and p-values that tell a difference from none."""

from __future__ import annotations

import random

import pytest

from models.errors import CorpusError
from training.metrics import SCORERS
from training.significance import compare_systems

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with a share of their words replaced."""
    rng = random.Random(seed)
    return [" ".join("null" if rng.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture(scope="module")
def references() -> list[str]:
    rng = random.Random(7)
    return [" ".join(rng.choices(WORDS, k=9)) for _ in range(80)]


@pytest.mark.parametrize("task", ["translate", "postedit", "summarize"])
def test_scores_are_those_of_evaluation(references: list[str], task: str) -> None:
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.4, 2)}
    found = compare_systems(task, systems, references, baseline="b", draws=20)
    assert list(found) == ["a", "b"]
    for name, scores in found.items():
        expected = SCORERS[task](systems[name], references)
        assert [(s.metric, s.value) for s in scores] == [(s.metric, s.value) for s in expected]


def test_a_great_difference_is_told_from_a_small_one(references: list[str]) -> None:
    systems = {"base": noisy(references, 0.2, 1), "like": noisy(references, 0.2, 2), "worse": noisy(references, 0.6, 3)}
    found = compare_systems("translate", systems, references, baseline="base", draws=200)
    assert [score.p_value for score in found["base"]] == [None, None]
    for like, worse in zip(found["like"], found["worse"], strict=True):
        assert worse.p_value is not None and worse.p_value < 0.01
        assert like.p_value is not None and like.p_value > 0.05
        assert like.interval is not None and 0 < like.interval < like.value
    assert "seed:12345" in found["base"][0].signature and "bs:200" in found["base"][0].signature


def test_equal_systems_do_not_differ(references: list[str]) -> None:
    """The library alone would call the same output a significant difference."""
    hypotheses = noisy(references, 0.3, 1)
    found = compare_systems("postedit", {"a": hypotheses, "b": list(hypotheses)}, references, baseline="a", draws=50)
    assert [score.p_value for score in found["b"]] == [1.0, 1.0, 1.0]


def test_the_same_comparison_gives_the_same_numbers(references: list[str]) -> None:
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.3, 2)}
    first = compare_systems("translate", systems, references, baseline="a", draws=50)
    assert first == compare_systems("translate", systems, references, baseline="a", draws=50)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(CorpusError, match="the baseline must be one of a, b, but is 'c'"):
        compare_systems("translate", {"a": ["x"], "b": ["x"]}, ["x"], baseline="c")
    with pytest.raises(CorpusError, match="b has 2 hypotheses for 1 references"):
        compare_systems("translate", {"a": ["x"], "b": ["x", "y"]}, ["x"], baseline="a")
    with pytest.raises(CorpusError, match="a has 0 hypotheses for 0 references"):
        compare_systems("translate", {"a": []}, [], baseline="a")
