"""Kendall's tau and its permutation test, against every order there is."""

from __future__ import annotations

from itertools import combinations, permutations
from math import sqrt

import pytest

from tandem.extras.papers.claims.agreement import Agreement, agreement

Told = list[tuple[float, float]]


def excess(told: Told) -> int:
    """Concordant pairs without the discordant ones."""
    products = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(told, 2)]
    return sum(product > 0 for product in products) - sum(product < 0 for product in products)


def tau_b(told: Told) -> float:
    first, second = ([(one, one) for one in column] for column in zip(*told, strict=True))
    return excess(told) / sqrt(excess(first) * excess(second))


@pytest.mark.parametrize(
    "told",
    [
        [(1, 3), (2, 1), (3, 2), (4, 4), (5, 5)],
        [(1, 5), (2, 4), (3, 3), (4, 2), (5, 1), (6, 6)],
        [(2, 1), (1, 1), (2, 3), (3, 2), (3, 3)],
        [(1.5, 2), (1.5, 2), (1.5, 3), (0.5, 4), (7, 1), (7, 9)],
    ],
    ids=["no-ties", "six", "ties", "threes"],
)
def test_against_every_order(told: Told) -> None:
    first, second = zip(*told, strict=True)
    every = [excess(list(zip(first, order, strict=True))) for order in permutations(second)]
    found = agreement(told)
    assert found.tau == pytest.approx(tau_b(told))
    assert found.p_value == pytest.approx(sum(one >= excess(told) for one in every) / len(every))


def test_what_a_random_order_agrees_on() -> None:
    """Of ten rows in the paper's own order one in 10! is as good, and all are as good as the reverse."""
    assert agreement([(n, n) for n in range(10)]) == Agreement(45, 45, 1.0, 1 / 3_628_800)
    assert agreement([(n, -n) for n in range(10)]) == Agreement(0, 45, -1.0, 1.0)


@pytest.mark.parametrize("told", [[], [(1.0, 2.0)], [(1.0, 2.0), (1.0, 3.0)], [(1.0, 2.0), (3.0, 2.0)]])
def test_where_there_is_no_order(told: Told) -> None:
    found = agreement(told)
    assert (found.tau, found.p_value, found.alike) == (None, None, 0)
    assert "tau" not in found.shown


def test_in_words() -> None:
    shown = "2 of 3 pairs of rows are in the paper's order: Kendall's tau +0.33, p = 0.50 (one-sided, of all orders)"
    assert agreement([(1, 2), (2, 1), (3, 3)]).shown == shown
