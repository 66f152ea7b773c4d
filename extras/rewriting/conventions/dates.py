"""Dates and times of day in a sentence, as a translation writes them: "am 3. Mai um 15 Uhr" is "on May 3 at 3 pm".

Small models lose or garble them. A date is one only with the name of its month, as "3.5." may be anything. Names of
months and weekdays and the order of a date are CLDR's, by Babel (BSD), for languages in which the name of a month is
the same wherever it stands. Times, and what stands before either, are those of German, English and French: CLDR has no
"Uhr".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache

from babel import Locale
from babel.dates import format_date, format_skeleton

from tandem.service.text.masking import HiddenPlace, apart, rewritten
from tandem.service.text.spans import Span

_ANY_YEAR, _ANY_DAY = 2000, 1  # of dates without one; that year has every day
_DAY = r"(?<![\w.,:/-])(?P<day>3[01]|[12]\d|0?[1-9])"
_YEAR = r"(?P<year>[12]\d{3})(?![.,:]?\d)"
_HOUR, _MINUTE = r"(?P<hour>2[0-3]|1\d|0?\d)", r"(?P<minute>[0-5]\d)"
_ALONE = r"(?<![\w.,:/-])"
_TIMES = {
    "de": rf"{_ALONE}{_HOUR}(?:[.:]{_MINUTE})? ?(?P<rest>Uhr)(?![\w-])",
    "en": rf"(?:{_ALONE}|(?<=m-)|(?<=m\.-)){_HOUR}(?:[.:]{_MINUTE})? ?"
    r"(?P<rest>(?i:[ap]m|[ap]\.m(?:\.(?=[ ,;:!?)–-]))?|o['’]clock))(?!\w|-(?!\d)|\.?/)",
    "fr": rf"{_ALONE}{_HOUR} ?(?P<rest>h(?:eures?)?)(?: ?{_MINUTE})?(?![\w-]| (?:de|par)\b)",
}
# What stands before days, months and times, the same in each language. French hours may be a duration ("après 3
# heures"), but behind these.
_BEFORE_DAYS = {
    "de": ("am", "seit dem", "vor dem", "nach dem", "bis zum"),
    "en": ("on", "since", "before", "after", "until"),
    "fr": ("le", "depuis le", "avant le", "après le", "jusqu'au"),
}
_BEFORE_MONTHS = {
    "de": ("im", "seit", "vor", "nach", "bis"),
    "en": ("in", "since", "before", "after", "until"),
    "fr": ("en", "depuis", "avant", "après", "jusqu'en"),
}
_BEFORE_TIMES = {
    "de": ("um", "gegen", "bis", "ab"),
    "en": ("at", "around", "until", "from"),
    "fr": ("à", "vers", "jusqu'à", "à partir de"),
}
_RANGE = re.compile(
    r"(?<![\d.,:/])\d{1,2}(?:[.:]\d\d| ?h(?: ?\d\d)?| heures?)?\.?"
    r"(?: ?[-–] ?| (?:bis|und|oder|to|and|or|until|till|à|au|et|ou) (?:zum |um |at |the |à |le )?)\Z"
)
_RANGE_LENGTH = 24  # characters
# No verb may need them ("to log in on May 3").
_WRITTEN_BEFORE = {
    "de": "am auf bei das dem den der die für im um vom von zum zur",
    "en": "at by for of the to",
    "fr": "au dans de des du en la le les par pour sur à",
}


@dataclass(frozen=True, slots=True)
class _Habits:
    """What CLDR does not say of a language's dates.

    Attributes:
        ordinal: what stands behind the number of a day.
        of: what stands before a month and a year.
        cased: whether months have capitals, so that "may 3" is no date.
        first: how the first day of a month is written.
    """

    ordinal: str = ""
    of: str = " "
    cased: bool = False
    first: str = "1"


_HABITS: Mapping[str, _Habits] = {
    "de": _Habits(r"\.", " ?", cased=True),
    "en": _Habits("(?:st|nd|rd|th)?", ",? (?:of )?", cased=True),
    "es": _Habits("º?", " (?:del? )?"),
    "fr": _Habits("(?:er)?", first="1er"),
    "it": _Habits("º?", first="1º"),
    "nl": _Habits(),
    "pt": _Habits("º?", " (?:de )?", first="1º"),
}
LANGUAGES = frozenset(_HABITS)
"""In which dates are written."""
# Words that a model writes before the place of a date or time, which says itself what stands before it.
_LOOSE = {language: frozenset(_WRITTEN_BEFORE.get(language, "").split()) for language in LANGUAGES}


@dataclass(frozen=True, slots=True)
class Dates:
    """How a language writes dates.

    Attributes:
        locale: CLDR's.
        habits: what CLDR does not say.
        days: patterns of a date, with the groups ``before``, ``weekday``, ``day``, ``month`` and ``year``.
        month: of a month in a year, with the groups ``before``, ``month`` and ``year``.
        months: their numbers by name, folded where case does not count.
        weekdays: likewise.
    """

    locale: Locale
    habits: _Habits
    days: tuple[re.Pattern[str], ...]
    month: re.Pattern[str]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]

    def find_days(self, text: str) -> Iterator[tuple[re.Match[str], date, int | None]]:
        """The dates in a text: where they stand, which they are, in any year if that is not said, and the weekday."""
        for match in (match for pattern in self.days for match in pattern.finditer(text)):
            weekday = self.weekdays[self._folded(match["weekday"])] if match["weekday"] else None
            with suppress(ValueError):  # the 31st of a short month is no date
                yield match, self._date(match, int(match["day"])), weekday

    def find_months(self, text: str) -> Iterator[tuple[re.Match[str], date]]:
        """The months in a text that have a year, as any day of theirs; those of dates too."""
        for match in self.month.finditer(text):
            yield match, self._date(match, _ANY_DAY)

    def _date(self, match: re.Match[str], day: int) -> date:
        return date(int(match["year"] or _ANY_YEAR), self.months[self._folded(match["month"])], day)

    def _folded(self, name: str) -> str:
        return name if self.habits.cased else name.casefold()

    def day_written(self, day: date, weekday: int | None, *, year: bool) -> str:
        """A date as the language writes it."""
        locale = self.locale
        written: str = format_date(day, "long", locale) if year else format_skeleton("MMMMd", day, locale=locale)
        if day.day == 1:
            written = re.sub(r"\b1\b", self.habits.first, written, count=1)
        if weekday is None:
            return written
        between = re.split("EEEE|[dM]", locale.date_formats["full"].pattern)[1]  # "EEEE, d. MMMM y"
        return f"{locale.days['format']['wide'][weekday]}{between}{written}"

    def month_written(self, day: date) -> str:
        """A month and its year."""
        written: str = format_skeleton("yMMMM", day, locale=self.locale)
        return written


def find_dates(text: str, source: str, target: str) -> list[HiddenPlace]:
    """The dates and times of a normalised sentence, in order; none where a language's are not known.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them.
    """
    return apart(_found(text, source, target))


def _found(text: str, source: str, target: str) -> Iterator[HiddenPlace]:
    languages = source, target
    reading, writing = dates_of(source), dates_of(target)
    if reading and writing:
        for match, day, weekday in reading.find_days(text):
            if _ends_a_range(match, "day"):
                continue
            written = writing.day_written(day, weekday, year=match["year"] is not None)
            yield _place(match, written, _BEFORE_DAYS, *languages)
        for match, day in reading.find_months(text):
            yield _place(match, writing.month_written(day), _BEFORE_MONTHS, *languages)
    if source in _TIMES and target in _TIMES:
        for match in _times(source).finditer(text):
            if not _ends_a_range(match, "hour") and (written := _time_written(match, target)):
                yield _place(match, written, _BEFORE_TIMES, *languages)


def _ends_a_range(match: re.Match[str], name: str) -> bool:
    """Whether a number stands before this one that shares what stands behind it: "14 bis 16 Uhr", "2 to 4 pm"."""
    start = match.start(name)
    return _RANGE.search(match.string, max(0, start - _RANGE_LENGTH), start) is not None


def _place(
    match: re.Match[str], written: str, before: Mapping[str, Sequence[str]], source: str, target: str
) -> HiddenPlace:
    """A date or time with what stands before it, where that is known in both languages."""
    start, instead_of = match.start(), frozenset[str]()
    if match["before"] and target in before:
        word = before[source].index(match["before"].replace("’", "'").casefold())
        written, instead_of = f"{before[target][word]} {written}", _LOOSE[target]
    elif match["before"]:
        start = match.end("before") + 1
    return rewritten(match.string, Span(start, match.end()), written, instead_of)


@cache
def dates_of(language: str) -> Dates | None:
    """How a language writes dates; None where that is not known."""
    habits = _HABITS.get(language)
    if habits is None:
        return None
    locale = Locale.parse(language)
    wide, short = (locale.months["format"][width].items() for width in ("wide", "abbreviated"))
    months = {name.rstrip("."): number for number, name in (*short, *wide)}
    weekdays = {name: number for number, name in locale.days["format"]["wide"].items()}
    name = rf"(?:{_any_of(months)})"
    month = rf"\b(?P<month>{name})\b(?:\.(?= \S|[,;:)]))?"
    in_year = f"{habits.of}{_YEAR}"
    before = _before(_BEFORE_DAYS, language) + rf"(?:\b(?P<weekday>{_any_of(weekdays)}),? (?:de[mn] )?)?"
    days = [f"{before}{_DAY}{habits.ordinal}{habits.of}{month}(?:{in_year})?"]
    if language == "en":
        days.append(f"{before}{month} {_DAY}{habits.ordinal}(?:{in_year})?")
    case = 0 if habits.cased else re.IGNORECASE
    if not habits.cased:
        months, weekdays = ({name.casefold(): number for name, number in one.items()} for one in (months, weekdays))
    return Dates(
        locale,
        habits,
        tuple(re.compile(rf"{day}(?!\w| ?[-–] ?\d)", case) for day in days),
        re.compile(rf"{_before(_BEFORE_MONTHS, language)}{month}{in_year}(?!\w)", case),
        months,
        weekdays,
    )


@cache
def _times(language: str) -> re.Pattern[str]:
    before = _before(_BEFORE_TIMES, language)
    if language == "fr":  # must be there, and "10 à 20 heures" is no time
        before = rf"(?<!\d ){before.removesuffix('?')}"
    return re.compile(before + _TIMES[language])


def _before(words: Mapping[str, Sequence[str]], language: str) -> str:
    return rf"(?:(?<!\w)(?i:(?P<before>{_any_of(words.get(language, ()))})) )?"


def _any_of(words: Iterable[str]) -> str:
    """Pattern of any of these words; of none it matches nothing."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True)).replace("'", "['’]") or "(?!)"


def _time_written(match: re.Match[str], target: str) -> str:
    """A time as a language writes it; empty where it is none."""
    hour, minute, rest = int(match["hour"]), match["minute"] or "00", match["rest"][0].lower()
    if rest in "apo" and not 1 <= hour <= 12:
        return ""
    if rest in "ap":
        hour = hour % 12 + 12 * (rest == "p")
    if target == "de":
        return f"{hour} Uhr" if minute == "00" else f"{hour}:{minute} Uhr"
    if target == "fr":
        return f"{hour} heure{'s' * (hour > 1)}" if minute == "00" else f"{hour} h {minute}"
    if hour <= 12 and match["hour"][0] != "0":  # of which half of the day is not said
        return f"{hour} o'clock" if minute == "00" else f"{hour}:{minute}"
    return _half_day(hour, minute)


def _half_day(hour: int, minute: str) -> str:
    """An hour of 24 as English counts them."""
    return f"{hour % 12 or 12}{'' if minute == '00' else f':{minute}'} {'pm' if hour > 11 else 'am'}"
