"""Medians and spread, and the record of the machine."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.bench.report import as_json, cell, show_environment
from deploy.bench.statistics import Summary, environment, percentile

figures = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_a_summary_is_the_median_and_the_interquartile_range() -> None:
    assert Summary.of([3.0]) == Summary(3.0, 0.0)
    assert Summary.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Summary(3.0, 2.0)
    with pytest.raises(ValueError, match="at least one"):
        Summary.of([])


@given(values=figures, shift=st.floats(-100, 100))
def test_one_slow_pass_moves_a_median_no_further_than_its_neighbours(values: list[float], shift: float) -> None:
    summary = Summary.of(values)
    assert min(values) <= summary.median <= max(values)
    assert 0 <= summary.spread <= max(values) - min(values) + 1e-9
    moved = Summary.of([value + shift for value in values])
    assert moved.median == pytest.approx(summary.median + shift, abs=1e-6)
    assert moved.spread == pytest.approx(summary.spread, abs=1e-6)


@given(values=figures)
def test_percentiles_rise(values: list[float]) -> None:
    assert percentile(values, 0) == min(values)
    assert percentile(values, 50) <= percentile(values, 95) <= percentile(values, 100) == max(values)


def test_the_environment_says_what_a_figure_depends_on() -> None:
    found = json.loads(as_json(environment(2)))
    assert found["threads"] == 2
    assert 1 <= found["usable_cores"] <= found["cores"]
    assert {"numpy", "sentencepiece"} <= found["versions"].keys()
    shown = show_environment(found)
    assert found["processor"] in shown and found["versions"]["numpy"] in shown


def test_numbers_are_shown_with_three_figures() -> None:
    shown = {None: "–", True: "yes", 12345: "12,345", 1234.5: "1,234", 12.345: "12.3", 0.012345: "0.0123", "x": "x"}
    assert {value: cell(value) for value in shown} == shown
