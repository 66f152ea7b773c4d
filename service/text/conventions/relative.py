"""How long ago something was or in how long it will be, as a translation says it: "vor 2 Stunden" is "2 hours ago".

Interfaces are full of it, and small models put both words ("before 2 hours ago"). As CLDR has it, by Babel (BSD).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Literal

from babel.dates import format_timedelta

from service.text.conventions.dates import LANGUAGES, LOOSE
from service.text.masking import HiddenPlace, apart, rewritten
from service.text.spans import Span

_Unit = Literal["year", "month", "week", "day", "hour", "minute", "second"]
_SECONDS: dict[_Unit, int] = {
    "year": 31_536_000,
    "month": 2_592_000,
    "week": 604_800,
    "day": 86_400,
    "hour": 3_600,
    "minute": 60,
    "second": 1,
}


def find_relative(text: str, source: str, target: str) -> list[HiddenPlace]:
    """The times of a normalised sentence that are counted from now, in order; none where a language's are not known.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them.
    """
    return apart(_found(text, source, target)) if {source, target} <= LANGUAGES else []


def _found(text: str, source: str, target: str) -> Iterator[HiddenPlace]:
    for (unit, sign), pattern in _patterns(source).items():
        for match in pattern.finditer(text):
            written = _written(int(match["count"]), unit, sign, target)
            yield rewritten(text, Span(*match.span()), written, LOOSE[target])


@cache
def _patterns(language: str) -> dict[tuple[_Unit, int], re.Pattern[str]]:
    """Of every unit before now (-1) and after (1)."""
    return {(unit, sign): _pattern(unit, sign, language) for unit in _SECONDS for sign in (-1, 1)}


def _pattern(unit: _Unit, sign: int, language: str) -> re.Pattern[str]:
    one, many = ([re.escape(part) for part in _written(n, unit, sign, language).split(str(n))] for n in (1, 2))
    before, behind = (f"(?:{one[side]}|{many[side]})" for side in (0, 1))
    # "il y a 2 heures de route", "hace 2 horas que": two hours, not two hours ago
    return re.compile(rf"(?<![\w.,:/-]){before}(?P<count>\d{{1,4}}){behind}(?![\w-]| (?:de|que)\b)", re.IGNORECASE)


def _written(count: int, unit: _Unit, sign: int, language: str) -> str:
    delta = timedelta(seconds=sign * count * _SECONDS[unit])
    written: str = format_timedelta(delta, unit, float("inf"), add_direction=True, locale=language)
    return written
