"""Which combination is best, and whether the others differ by more than chance."""

from __future__ import annotations

from statistics import stdev

import pytest

from tandem.extras.sweep.outcomes import Outcome
from tandem.extras.sweep.table import ranked
from tandem.training.loop.validation import DecodedText
from tests.training.toy import toy_recipe

REFERENCES = tuple(f"the {word} is here now today" for word in "abcdefghijklmnopqrst")
WORSE = tuple(line.replace("now", "then") for line in REFERENCES)


def outcome(value: float, texts: tuple[str, ...], update: int = 4) -> Outcome:
    return Outcome(update, value, {"toy": DecodedText("en", texts, REFERENCES)})


def test_means_over_seeds_and_a_bootstrap_of_all_their_translations() -> None:
    """Of "good" one seed is perfect and the other wrong in half of the sentences; of "bad" both are wrong in all."""
    half = REFERENCES[:10] + WORSE[10:]
    outcomes = {
        "bad": [outcome(3.0, WORSE), outcome(3.5, WORSE)],
        "good": [outcome(1.0, REFERENCES, 3), outcome(2.0, half)],
    }
    good, bad = ranked(outcomes, toy_recipe())
    assert (good.combination, good.mean) == ("good", 1.5)
    assert good.deviation == pytest.approx(stdev([1.0, 2.0]))
    assert (good.updates, bad.mean) == ((3, 4), 3.25)
    assert [score.metric for score in good.scores] == ["BLEU", "chrF"]
    assert [score.p_value for score in good.scores] == [None, None]
    assert all(score.p_value is not None and score.p_value < 0.01 for score in bad.scores)
    assert bad.scores[0].value < good.scores[0].value < 100


def test_the_same_translations_do_not_differ() -> None:
    first, second = ranked({"a": [outcome(1.0, WORSE)], "b": [outcome(1.1, WORSE)]}, toy_recipe())
    assert first.deviation is None
    assert [score.p_value for score in second.scores] == [1.0, 1.0]


def test_of_a_score_the_highest_is_best() -> None:
    recipe = toy_recipe(metric="bleu", validation_sentences=20)
    rows = ranked({"a": [outcome(10.0, WORSE)], "b": [outcome(90.0, REFERENCES)]}, recipe)
    assert [row.combination for row in rows] == ["b", "a"]


def test_what_diverged_stands_behind_and_is_not_scored() -> None:
    gone = Outcome(diverged="training diverged: the loss is nan")
    rows = ranked(
        {"gone": [gone, gone], "half": [outcome(0.1, REFERENCES), gone], "whole": [outcome(2.0, WORSE)] * 2},
        toy_recipe(),
    )
    assert [(row.combination, row.diverged, row.shown) for row in rows] == [
        ("whole", 0, "2.000 ± 0.000"),
        ("half", 1, "0.100"),
        ("gone", 2, "–"),
    ]
    assert rows[0].scores and not rows[1].scores and not rows[2].scores


def test_without_translations_there_are_means_alone() -> None:
    rows = ranked({"a": [Outcome(3, 2.0)], "b": [Outcome(3, 1.0)]}, toy_recipe())
    assert [(row.combination, row.scores) for row in rows] == [("b", ()), ("a", ())]
