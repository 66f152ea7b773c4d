"""How far two orders of the same rows agree, and how likely a random order agrees as much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import sqrt


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of one order with another.

    Attributes:
        alike: pairs of rows that both order the same way.
        pairs: pairs that the first one orders.
        tau: Kendall's tau-b, from -1 (the reverse) to 1; None where either has all rows alike.
        p_value: the share of all orders, each as likely as the others, whose tau is at least as high; None likewise.
    """

    alike: int
    pairs: int
    tau: float | None
    p_value: float | None

    @property
    def shown(self) -> str:
        """In words."""
        counted = f"{self.alike} of {self.pairs} pairs of rows are in the paper's order"
        if self.tau is None or self.p_value is None:
            return counted
        return f"{counted}: Kendall's tau {self.tau:+.2f}, p = {self.p_value:.2f} (one-sided, of all orders)"


def agreement(told: Sequence[tuple[float, float]]) -> Agreement:
    """Of values that are told twice, for each row once by the first and once by the second."""
    pairs = [(_sign(a[0] - b[0]), _sign(a[1] - b[1])) for a, b in combinations(told, 2)]
    products = [first * second for first, second in pairs]
    ordered = [sum(map(abs, column)) for column in zip(*pairs, strict=True)] or [0, 0]
    tau = sum(products) / sqrt(ordered[0] * ordered[1]) if all(ordered) else None
    p_value = None if tau is None else _as_high(told, sum(products))
    return Agreement(products.count(1), ordered[0], tau, p_value)


def _as_high(told: Sequence[tuple[float, float]], observed: int) -> float:
    """The share of the orders of the second values that have so many more concordant pairs than discordant ones.

    Rows are filled from the first one's least to its greatest, those that it has alike together. What a further group
    adds depends on which values are used already, and not on their order: 2^N sets instead of N! orders.
    """
    values = [second for _, second in told]
    above = [[_sign(one - other) for other in values] for one in values]
    sizes = [len(list(group)) for _, group in groupby(sorted(first for first, _ in told))]
    # By the values that are used: how many ways led to each excess of concordant pairs.
    ways: dict[frozenset[int], Counter[int]] = {frozenset(): Counter({0: 1})}
    for size in sizes:
        further: dict[frozenset[int], Counter[int]] = {}
        for used, excesses in ways.items():
            for group in combinations([one for one in range(len(values)) if one not in used], size):
                added = sum(above[one][other] for one in group for other in used)
                total = further.setdefault(used.union(group), Counter())
                for excess, count in excesses.items():
                    total[excess + added] += count
        ways = further
    (excesses,) = ways.values()
    return sum(count for excess, count in excesses.items() if excess >= observed) / excesses.total()


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)
