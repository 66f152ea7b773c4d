"""Ranking what ended, and when a sentence is done: the places where an off-by-one would go unseen by whole searches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tandem.models.search.hypotheses import Admitted, Ended, Sentence
from tandem.models.search.options import RATIO_ALLOWANCE, SearchOptions
from tandem.models.search.ranking import COVERAGE_FLOOR, coverage, is_over


def test_a_source_token_is_covered_once_at_most() -> None:
    """GNMT, equation 14: the logarithm of min(attention received, 1): what is looked at twice gains nothing."""
    attention = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.9, 0.1, 0.0]])
    assert coverage([attention]) == pytest.approx(math.log(0.4) + math.log(COVERAGE_FLOOR))
    assert coverage([attention, np.array([[1.0], [1.0], [1.0]])]) == pytest.approx(coverage([attention]))


@pytest.mark.parametrize(("best_live", "over"), [(-4.0, False), (-4.9, True)])
def test_an_exhaustive_search_goes_on_while_a_live_hypothesis_of_any_length_could_win(
    best_live: float, over: bool
) -> None:
    """The longest has three tokens and EOS: four divide its score. -4 / 4 is above -1.2, and -4 / 3 would not be."""
    options = SearchOptions(beam_size=2, n_best=1, exhaustive=True, length_penalty=1.0, max_length=3)
    admitted = Admitted(Sentence("a", (np.array([5, 3]),), options), 0, 3)
    ended = [Ended((5,), (-1.0, -2.4))]
    assert is_over(admitted, ended, best_live) is over


@pytest.mark.parametrize(("tokens", "longest"), [(1, 1), (2, 3), (3, 4), (5, 7)])
def test_the_longest_is_the_ratio_rounded_down_and_the_shortest_rounded_up(tokens: int, longest: int) -> None:
    options = SearchOptions(max_length_ratio=1.5, min_length_ratio=0.5)
    assert options.bounds(tokens) == (math.ceil(tokens / 2), longest + RATIO_ALLOWANCE)
