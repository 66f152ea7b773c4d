"""How growth is told from memory, and that no two requests of a soak are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.laboratory.abuse.memory import (
    checkpoints,
    distinct_texts,
    growth_of,
    growth_verdict,
    memory,
    soak_bodies,
)
from tandem.extras.laboratory.abuse.trials import Setting
from tandem.extras.laboratory.options import ReliabilityOptions
from tandem.models.errors import ConfigError
from tests.service.support import tiny_bundle
from tests.shipped import SHIPPED


@given(st.floats(-50, 50), st.floats(0, 1000), st.lists(st.integers(0, 100_000), min_size=2, unique=True))
def test_a_straight_line_has_its_own_slope(rate: float, start: float, requests: list[int]) -> None:
    slope, error = growth_of([(number, start + rate * number / 10_000) for number in sorted(requests)])
    assert slope == pytest.approx(rate, abs=1e-6)
    assert error == pytest.approx(0, abs=1e-6)


def test_a_step_that_goes_back_is_no_growth() -> None:
    slope, error = growth_of([(0, 100.0), (1000, 100.0), (2000, 130.0), (3000, 100.0), (4000, 100.0)])
    assert slope == 0.0
    # Of these residuals the sum of squares is 720, over 3 degrees of freedom; the requests' is 10 million.
    assert error == pytest.approx(10_000 * (720 / 3 / 1e7) ** 0.5)
    assert growth_of([(0, 0.0), (1000, 3.0), (2000, 3.0)])[0] == pytest.approx(15.0)


@pytest.mark.parametrize("points", [[], [(5, 1.0)], [(5, 1.0), (5, 2.0)]])
def test_growth_needs_two_moments(points: list[tuple[int, float]]) -> None:
    with pytest.raises(ConfigError, match="two numbers of requests at least"):
        growth_of(points)


def rows(*memory: float, **figures: Any) -> list[dict[str, Any]]:
    watched = [{"requests": 2000 + 1000 * i, "rss_mb": mb} for i, mb in enumerate(memory)]
    return [{**row, "rejected": 0, "failed": 0, **figures} for row in watched]


def test_growth_is_bad_where_it_is_no_noise_and_where_requests_fail() -> None:
    verdict = growth_verdict(rows(100.0, 100.05, 100.1))
    assert (round(verdict.value or 0, 6), verdict.met) == (0.5, True)
    assert growth_verdict(rows(100.0, 100.2, 100.4)).met is False
    assert growth_verdict(rows(100.0, 100.0, 100.0, failed=1)).met is False  # what fails needs no memory
    slope, error = growth_of([(0, 0.0), (1000, 3.0), (2000, 3.0)])
    noisy = growth_verdict([{**row, "requests": row["requests"] - 2000} for row in rows(0.0, 3.0, 3.0)])
    assert noisy.value == pytest.approx(slope - 2 * error)


@given(st.integers(2, 30_000))
def test_memory_is_noted_regularly_and_at_the_end(requests: int) -> None:
    marks = checkpoints(requests)
    assert marks[-1] == requests
    assert marks == sorted(set(marks))
    assert marks[0] >= 1
    gaps = [after - before for before, after in zip([0, *marks], marks, strict=False)]
    assert max(gaps) <= 1500
    if requests >= 5000:
        assert set(gaps[:-1]) == {1000}


def test_no_two_texts_are_equal(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    texts = distinct_texts(bundle, 200)
    assert len(set(texts)) == len(texts) == 200
    assert texts == distinct_texts(bundle, 200)


def test_options_are_mixed_and_come_again(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    bodies = soak_bodies(bundle, [f"eins {number}" for number in range(200)])
    fields = [json.loads(body) for body in bodies]
    assert {field.get("beam_size") for field in fields} >= {None, 1, 2, 8}
    assert any("sampling" in field for field in fields) and any("alternatives" in field for field in fields)
    assert bodies == soak_bodies(bundle, [f"eins {number}" for number in range(200)])


@pytest.mark.slow
def test_the_service_is_watched() -> None:
    finding = memory(Setting(ReliabilityOptions(bundle=SHIPPED, requests=20, workers=1)))
    assert finding.fault == ""
    assert finding.figures["last_mb"] >= finding.figures["first_mb"] > 10
    (verdict,) = finding.verdicts
    assert verdict.clean and verdict.value is not None
