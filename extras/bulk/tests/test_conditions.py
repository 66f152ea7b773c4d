"""The robustness suite with translators whose weaknesses are known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tandem.extras.bulk.conditions import AT_ONCE, LONG_WORDS, PLAIN, TYPO_RATE, ConditionResult, conditions, suite
from tandem.models.errors import CorpusError

WORDS = ("The", "station", "is", "closed,", "and", "nobody", "Knows", "why", "today.")
SOURCES = [" ".join((*WORDS[: 3 + number % 6], f"Number{number}.")) for number in range(60)]


def by_name(findings: Sequence[ConditionResult]) -> dict[str, ConditionResult]:
    return {one.condition: one for one in findings}


def test_every_condition_changes_the_sources_and_no_reference() -> None:
    plain, lower, bare, typed, several, long = conditions(SOURCES, SOURCES)
    assert plain.sources == lower.references == bare.references == typed.references == tuple(SOURCES)
    for one in (lower, bare, typed):
        assert len(one.sources) == 60
        assert sum(new != old for new, old in zip(one.sources, SOURCES, strict=True)) == 60
    assert several.sources[0] == " ".join(SOURCES[:AT_ONCE]) and len(several.sources) == 60 // AT_ONCE
    assert several.sizes == (AT_ONCE,) * 15
    assert all(LONG_WORDS <= len(line.split()) < LONG_WORDS + 10 for line in long.sources)
    assert len(long.sources) == len(long.sizes) and sum(long.sizes) <= 60
    assert 0 < TYPO_RATE < 1
    assert conditions(SOURCES, SOURCES, seed=2)[3].sources != typed.sources
    assert conditions(SOURCES, SOURCES)[3].sources == typed.sources


def test_a_copier_loses_where_the_text_has_changed_and_has_no_symptoms() -> None:
    found = by_name(suite(list, SOURCES, SOURCES, "en"))
    assert len(found) == 6
    assert found[PLAIN].scores[0].value == pytest.approx(100)
    assert found["lower case"].loss == pytest.approx(0), "case is not asked for where the source has none"
    assert found["no punctuation"].loss > 1
    assert found["typing errors"].loss > 1
    assert found[f"{AT_ONCE} sentences at once"].loss == pytest.approx(0)
    assert all(one.share_lost == 0 for one in found.values())


def test_a_model_that_stops_after_one_sentence_is_found_out() -> None:
    found = by_name(suite(lambda lines: [f"{line.split('.')[0]}." for line in lines], SOURCES, SOURCES, "en"))
    assert found[PLAIN].symptoms == {}
    several, long = found[f"{AT_ONCE} sentences at once"], found[f"{LONG_WORDS} words at once"]
    assert several.symptoms == {"short": 15} and several.share_lost == 1
    assert several.loss > 50 and several.plain[0].value == pytest.approx(100)
    source, text = long.examples["short"]
    assert source.startswith(text)


def test_a_model_that_loops_on_typos_is_found_out() -> None:
    known = set(SOURCES)

    def looping(lines: Sequence[str]) -> list[str]:
        return [line if line in known or len(line.split()) > 10 else "I am I am I am I am" for line in lines]

    found = by_name(suite(looping, SOURCES, SOURCES, "en"))
    assert found["typing errors"].symptoms["loop"] > 50
    assert found[PLAIN].symptoms == {}


def test_a_small_test_set_has_no_long_lines() -> None:
    assert len(suite(list, SOURCES[:5], SOURCES[:5], "en")) == 5
    with pytest.raises(CorpusError, match="equally many"):
        conditions(SOURCES, SOURCES[:3])
    with pytest.raises(CorpusError, match="at least 1"):
        suite(list, [], [], "en")
