"""Medians and spread, and the record of the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.laboratory.runner import MedianSpread, median_ratio, take_turns
from tandem.extras.loadtest.client import percentile
from tandem.extras.loadtest.server import memory_of
from tandem.extras.shared.report import in_own_process

figures = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_a_summary_is_the_median_and_the_interquartile_range() -> None:
    assert MedianSpread.of([3.0]) == MedianSpread(3.0, 0.0)
    assert MedianSpread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == MedianSpread(3.0, 2.0)
    with pytest.raises(ValueError, match="at least one"):
        MedianSpread.of([])


@given(values=figures, shift=st.floats(-100, 100))
def test_one_slow_pass_moves_a_median_no_further_than_its_neighbours(values: list[float], shift: float) -> None:
    summary = MedianSpread.of(values)
    assert min(values) <= summary.median <= max(values)
    assert 0 <= summary.spread <= max(values) - min(values) + 1e-9
    moved = MedianSpread.of([value + shift for value in values])
    assert moved.median == pytest.approx(summary.median + shift, abs=1e-6)
    assert moved.spread == pytest.approx(summary.spread, abs=1e-6)


@given(values=figures)
def test_percentiles_rise(values: list[float]) -> None:
    assert percentile(values, 0) == min(values)
    assert percentile(values, 50) <= percentile(values, 95) <= percentile(values, 100) == max(values)


def test_contestants_take_turns() -> None:
    seen: list[tuple[str, int]] = []

    def measure(name: str, number: int) -> str:
        seen.append((name, number))
        return f"{name}{number}"

    passes = take_turns("ab", 2, measure)
    assert seen == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert passes == [["a0", "a1"], ["b0", "b1"]]


def test_ratios_are_taken_within_a_pass() -> None:
    """A machine that is slow in one pass is so for both."""
    assert median_ratio([100.0, 10.0, 100.0], [50.0, 5.0, 25.0]) == 2.0
    with pytest.raises(ValueError, match="argument 2 is longer"):
        median_ratio([1.0], [1.0, 2.0])


def test_a_process_of_its_own_has_its_own_memory() -> None:
    ballast = bytearray(200_000_000)
    mine, its = memory_of(), in_own_process(memory_of)
    if mine:
        assert its["rss_mb"] < mine["rss_mb"] - 100 and len(ballast)
        assert its["rss_mb"] <= its["peak_mb"]
