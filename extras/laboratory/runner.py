"""How things are measured: contestants take turns after a warm-up; medians, and ratios within a turn."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Contestant = TypeVar("Contestant")
Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True)
class MedianSpread:
    """A figure over several passes.

    Attributes:
        median: of the passes.
        spread: their interquartile range, in the unit of the figure; 0 for one pass.
    """

    median: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float]) -> MedianSpread:
        """Raises ValueError where there is no value."""
        if not values:
            raise ValueError("a median needs at least one value")
        low, median, high = np.percentile(np.asarray(values, np.float64), (25, 50, 75))
        return cls(float(median), float(high - low))


def take_turns(
    contestants: Sequence[Contestant], passes: int, measure: Callable[[Contestant, int], Measured]
) -> list[list[Measured]]:
    """Pass 0 of all contestants, then pass 1 of all, so that a busy moment falls on all of them.

    Args:
        contestants: those next to each other run next to each other.
        passes: that count; what warms a contestant up comes before.
        measure: runs a contestant once, given the number of the pass.

    Returns:
        For each contestant what its passes gave.
    """
    turns = [[measure(contestant, number) for contestant in contestants] for number in range(passes)]
    return [list(of_one) for of_one in zip(*turns, strict=True)]


def median_ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """The median of the ratios within each pass: what slows a machine for a while slows both."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
