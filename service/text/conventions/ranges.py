"""Days and hours from one to another, as a translation writes them: "vom 3. bis 5. Mai" is "from May 3 to 5".

Read as two dates or times, one of which lacks its month or its "Uhr", they come out wrong ("by May 5"). For German,
English and French, whose words for it stand here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache

from service.text.conventions.dates import ANY_YEAR, LOOSE, Dates, dates_of, half_day
from service.text.masking import HiddenPlace, apart, rewritten
from service.text.spans import Span

_APART = r"(?<![\w.,:/–-])"
_HOUR, _MINUTE = r"(?P<hour{0}>2[0-3]|1\d|0?\d)", r"(?P<minute{0}>[0-5]\d)"
_DAY, _YEAR = r"(?P<day{0}>3[01]|[12]\d|0?[1-9])", r"(?P<year{0}>[12]\d{{3}})(?![.,:]?\d)"
_ENGLISH_DAY = f"{_DAY}(?:st|nd|rd|th)?"
_HALF = r"(?i:[ap]m|[ap]\.m(?:\.(?= |,))?)"


@dataclass(frozen=True, slots=True)
class _Words:
    """What opens a range, and what stands between its ends; as patterns of what is read, then as it is written.

    Attributes:
        opening, until: from one to another.
        among, and_: between two.
        opened, between, bare: with its ends in the braces; ``bare`` where nothing opens it.
    """

    opening: str
    until: str
    among: str
    and_: str
    opened: str
    between: str
    bare: str


# fmt: off
_OF_DAYS = {
    "de": _Words("vom|von|am", "bis(?: zum)?", "zwischen dem", "und(?: dem)?",
                 "vom {} bis {}", "zwischen dem {} und dem {}", "{} bis {}"),
    "en": _Words("from|on", "to|until|till|through", "between", "and",
                 "from {} to {}", "between {} and {}", "{} to {}"),
    "fr": _Words("du|les?", "au|jusqu['’]au", "entre le", "et(?: le)?",
                 "du {} au {}", "entre le {} et le {}", "du {} au {}"),
}
_OF_HOURS = {
    "de": _Words("von", "bis", "zwischen", "und", "von {} bis {}", "zwischen {} und {}", "{} bis {}"),
    "en": _Words("from", "to|until|till", "between", "and", "from {} to {}", "between {} and {}", "{} to {}"),
    "fr": _Words("de", "à", "entre", "et", "de {} à {}", "entre {} et {}", "de {} à {}"),
}
# fmt: on


def find_ranges(text: str, source: str, target: str) -> list[HiddenPlace]:
    """The ranges of days and hours of a normalised sentence, in order; none where a language's words are not known.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them.
    """
    return apart(_found(text, source, target)) if {source, target} <= _OF_DAYS.keys() else []


def _found(text: str, source: str, target: str) -> Iterator[HiddenPlace]:
    reading, writing = dates_of(source), dates_of(target)
    assert reading and writing  # both are among the languages that are known here
    for match in (match for pattern in _days(source) for match in pattern.finditer(text)):
        with suppress(ValueError):  # the 31st of a short month is no date
            if ends := _days_written(match, reading, writing, target):
                yield _place(match, ends, _OF_DAYS[target], target)
    for match in _hours(source).finditer(text):
        if ends := _hours_written(match, target):
            yield _place(match, ends, _OF_HOURS[target], target)


def _place(match: re.Match[str], ends: tuple[str, str], words: _Words, target: str) -> HiddenPlace:
    text, opens = _form(match, ends, words).format(*ends), match["among"] or match["opening"]
    instead_of = LOOSE[target] if opens else frozenset[str]()
    return rewritten(match.string, Span(*match.span()), text, instead_of)


def _form(match: re.Match[str], ends: tuple[str, str], words: _Words) -> str:
    """How a range is written that is read so."""
    if match["among"]:
        return words.between
    if match["opening"]:
        return words.opened
    if match["dash"] is None:
        return words.bare
    return "{} – {}" if all(any(map(str.isalpha, end)) for end in ends) else "{}–{}"  # "3.–5. Mai", "3. Mai – 7. Juni"


@cache
def _days(language: str) -> tuple[re.Pattern[str], ...]:
    dates = dates_of(language)
    assert dates
    month = rf"\b(?P<month{{0}}>{dates.name})\b(?:\.(?= \S))?"
    if language == "de":
        ends = [(rf"{_DAY}\.(?: ?{month})?(?: {_YEAR})?", rf"{_DAY}\. ?{month}(?: {_YEAR})?")]
    elif language == "fr":
        ends = [(rf"{_DAY}(?:er)?(?: {month}(?: {_YEAR})?)?", rf"{_DAY}(?:er)? {month}(?: {_YEAR})?")]
    else:
        day_first = f"{_ENGLISH_DAY} {month}(?:,? {_YEAR})?"
        ends = [
            (f"{_ENGLISH_DAY}(?: {month}(?:,? {_YEAR})?)?", day_first),
            (f"{month} {_ENGLISH_DAY}(?:, {_YEAR})?", f"(?:{month} )?{_ENGLISH_DAY}(?:,? {_YEAR})?"),
        ]
    flags = 0 if dates.habits.cased else re.IGNORECASE
    return tuple(re.compile(_between(_OF_DAYS[language], *both) + r"(?!\w| ?[-–] ?\d)", flags) for both in ends)


@cache
def _hours(language: str) -> re.Pattern[str]:
    clock = f"{_HOUR}(?:[.:]{_MINUTE})?"
    if language == "de":
        ends = f"{clock}(?: Uhr)?", f"{clock} ?Uhr"
    elif language == "en":
        ends = f"{clock}(?: ?(?P<half1>{_HALF}))?", f"{clock} ?(?:(?P<half2>{_HALF})|o['’]clock)"
    else:  # without its "h" the first may be a duration's ("de 2 à 3 heures")
        hour = f"{_HOUR} ?h(?:eures?)?(?: ?{_MINUTE})?"
        ends = hour, rf"{hour}(?! (?:de|par)\b)"
    return re.compile(_between(_OF_HOURS[language], *ends) + r"(?![\w-])")


def _between(words: _Words, first: str, second: str) -> str:
    """The pattern of a range; the groups of its ends are numbered 1 and 2."""
    one, other = first.format(1), second.format(2)
    opened = rf"(?<!\w)(?i:(?P<among>{words.among})|(?P<opening>{words.opening})) "
    middle = rf"(?(among) (?:{words.and_}) |(?: (?:{words.until}) | ?(?P<dash>[-–]) ?))"
    return f"(?:{opened})?{_APART}{one}{middle}{other}"


def _days_written(match: re.Match[str], reading: Dates, writing: Dates, target: str) -> tuple[str, str] | None:
    """Both days of a range; None where they are none, as the later is first."""
    month1, month2 = match["month1"] or match["month2"], match["month2"] or match["month1"]
    year1, year2 = match["year1"], match["year2"]
    last = date(int(year2 or ANY_YEAR), reading.number(month2), int(match["day2"]))
    first = date(int(year1 or year2 or ANY_YEAR), reading.number(month1), int(match["day1"]))
    if first >= last and (year1 or first.month == last.month):
        return None
    ends = [writing.day_written(day, None, year=year is not None) for day, year in ((first, year1), (last, year2))]
    if year1 or first.month != last.month:
        return ends[0], ends[1]
    if target == "en":
        return ends[0], str(last.day) + (f", {last.year}" if year2 else "")
    return ends[0].split()[0], ends[1]


def _hours_written(match: re.Match[str], target: str) -> tuple[str, str] | None:
    """Both hours of a range; None where they are none."""
    hours = _hours_of_day(match)
    if hours is None:
        return None
    minutes = match["minute1"] or "00", match["minute2"] or "00"
    first, last = (_clock(*one, target) for one in zip(hours, minutes, strict=True))
    if target == "de":
        return first, f"{last} Uhr"
    if target == "fr":
        return first, last
    if max(hours) > 12 or match["hour1"][0] == "0":
        return half_day(hours[0], minutes[0]), half_day(hours[1], minutes[1])
    if minutes == ("00", "00"):  # of which half of the day is not said
        return first, f"{last} o'clock"
    return f"{hours[0]}:{minutes[0]}", f"{hours[1]}:{minutes[1]}"


def _clock(hour: int, minute: str, target: str) -> str:
    if target == "fr":
        return f"{hour} h" if minute == "00" else f"{hour} h {minute}"
    return f"{hour}" if minute == "00" else f"{hour}:{minute}"


def _hours_of_day(match: re.Match[str]) -> tuple[int, int] | None:
    """Of 24, as far as the text says; None where an English hour is none."""
    first, last = int(match["hour1"]), int(match["hour2"])
    halves: dict[str, str | None] = match.groupdict()
    if "half2" not in halves:
        return first, last
    half1, half2 = (half[0] in "pP" if half else None for half in (halves["half1"], halves["half2"]))
    if not (1 <= first <= 12 and 1 <= last <= 12) or (half2 is None and half1 is not None):
        return None
    if half2 is None:  # o'clock
        return first, last
    if half1 is None:  # "9 to 5 pm"
        half1 = half2 if first % 12 < last % 12 else not half2
    return first % 12 + 12 * half1, last % 12 + 12 * half2
