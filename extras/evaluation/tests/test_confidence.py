"""Calibration: curves and areas against restatements that look at everything, and what a scale refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tandem.extras.evaluation.confidence import area_under_curve, fit_scale, held_out_area, measure_reliability, pooled
from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search.confidence import Confidence, Reliability, Scale

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("draw", range(20))
def test_the_curve_is_the_nearest_rising_one(draw: int) -> None:
    """Isotonic regression in one formula: the largest mean of what begins before, of the least of what ends after."""
    rng = np.random.default_rng(draw)
    values, counts = rng.random(9), rng.integers(1, 5, 9).astype(float)
    nearest = [
        max(min(np.average(values[a:b], weights=counts[a:b]) for b in range(i + 1, 10)) for a in range(i + 1))
        for i in range(9)
    ]
    scores = np.arange(9.0)
    found = pooled(scores, values, counts)
    np.testing.assert_allclose(found[1], list(dict.fromkeys(np.round(nearest, 12))), atol=1e-9)
    blocks = [np.isclose(nearest, value) for value in found[1]]
    np.testing.assert_allclose(found[0], [np.average(scores[block], weights=counts[block]) for block in blocks])


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    scores, positive = RNG.integers(0, 8, 60) / 8, RNG.random(60) < 0.3
    pairs = [(one > other) + (one == other) / 2 for one in scores[positive] for other in scores[~positive]]
    assert area_under_curve(scores, positive) == pytest.approx(np.mean(pairs))
    assert area_under_curve(scores, np.zeros(60, bool)) == 0.5


def test_chances_are_found_again() -> None:
    """Of things whose chance depends on two numbers out of three, and bends on the way."""
    numbers = RNG.normal(size=(20_000, 3)) * (1.0, 5.0, 0.1)
    chance = 0.9 / (1 + np.exp(-(numbers @ (1.0, -0.4, 0.0))))
    scale = fit_scale(numbers[:10_000], (RNG.random(20_000) < chance)[:10_000].astype(float))
    assert scale.weights[1] / scale.weights[0] == pytest.approx(-0.4, rel=0.1)
    own, other = numbers[10_000:], chance[10_000:]
    found = measure_reliability(scale(own), other, other < 0.45)
    assert found.auc > 0.99
    assert sum(one.count for one in found.bins) == 10_000
    assert found.error < 0.02


def test_numbers_that_say_nothing_gain_nothing_on_what_was_held_out() -> None:
    telling, noise = RNG.normal(size=(300, 1)), RNG.normal(size=(300, 60))
    worth = 1 / (1 + np.exp(-telling[:, 0] + RNG.normal(size=300)))
    bad = worth < 0.5
    alone, with_noise = (held_out_area(numbers, worth, bad) for numbers in (telling, np.hstack([telling, noise])))
    assert 0.5 < with_noise < alone - 0.01
    assert alone == pytest.approx(area_under_curve(-telling[:, 0], bad), abs=0.03)


def test_shares_are_weighed_like_chances() -> None:
    numbers = np.linspace(-2, 2, 400)[:, None]
    scale = fit_scale(numbers, 1 / (1 + np.exp(-numbers[:, 0])))
    np.testing.assert_allclose(scale(np.array([[-1.0], [0.5]])), 1 / (1 + np.exp([1.0, -0.5])), atol=0.01)


def test_numbers_that_say_nothing_give_the_mean() -> None:
    scale = fit_scale(np.ones((60, 2)), np.tile([0.0, 1.0], 30))
    assert scale(np.ones((1, 2))) == [0.5]
    with pytest.raises(CorpusError, match="at least 50"):
        fit_scale(np.ones((49, 2)), np.ones(49))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"scores": [0.0]}, "equally many"),
        ({"scores": [1.0, 1.0]}, "scores must rise"),
        ({"values": [0.5, 0.4]}, "must not fall"),
        ({"values": [0.5, 1.1]}, "must not fall"),
        ({"weights": [1.0]}, "must weigh 3"),
        ({"weights": [1.0, 0.0, 0.0, 0.0, 0.0]}, "must weigh 3"),
    ],
)
def test_what_a_manifest_may_not_say(changes: dict[str, Any], fault: str) -> None:
    scale, measured = Scale((1.0, 0.0, 0.0), (-1.0, 0.0), (0.2, 0.9)), Reliability(0.5, ())
    content = json.loads(json.dumps(to_mapping(Confidence(scale, scale, measured, measured, "tandem calibrate"))))
    with pytest.raises(ConfigError, match="attentive_words must weigh 5"):
        load_dataclass(Confidence, content | {"attentive_words": content["words"]}, "confidence")
    del content["attentive_sentences"], content["attentive_words"]  # as bundles that were calibrated before
    assert load_dataclass(Confidence, content, "confidence").words == scale
    content["words"] |= changes
    with pytest.raises(ConfigError, match=fault):
        load_dataclass(Confidence, content, "confidence")
