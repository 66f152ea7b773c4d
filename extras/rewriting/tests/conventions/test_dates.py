"""Dates and times in sentences, and what a translation writes for them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.rewriting.conventions.dates import LANGUAGES, dates_of, find_dates
from tandem.extras.rewriting.tests.conventions.found import found


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "Gültig ab 17. Dezember 2025.", [("17. Dezember 2025", "December 17, 2025")]),
        ("de-en", "Am 3.Mai kommt er", [("Am 3.Mai", "on May 3")]),
        ("de-en", "am 5. Feb., am 6. Feb. so (7. Feb.)", [
            ("am 5. Feb.", "on February 5"), ("am 6. Feb.", "on February 6"), ("7. Feb.", "February 7")]),
        ("de-fr", "nach dem 1. Januar 2024, am 1. Jan. nicht", [
            ("nach dem 1. Januar 2024", "après le 1er janvier 2024"), ("am 1. Jan.", "le 1er janvier")]),
        ("de-en", "am Freitag, den 3. Mai, im Mai 2025", [
            ("am Freitag, den 3. Mai", "on Friday, May 3"), ("im Mai 2025", "in May 2025")]),
        ("en-de", "on May 3rd, the 3rd of May, 1999, or 3 May", [
            ("on May 3rd", "am 3. Mai"), ("3rd of May, 1999", "3. Mai 1999"), ("3 May", "3. Mai")]),
        ("en-fr", "Since Friday, August 23", [("Since Friday, August 23", "depuis le vendredi 23 août")]),
        ("fr-de", "jusqu’au 1er MARS 2020", [("jusqu’au 1er MARS 2020", "bis zum 1. März 2020")]),
        ("fr-en", "en mars 2020 et mars", [("en mars 2020", "in March 2020")]),
        ("es-de", "el viernes 3 de mayo de 2020", [("viernes 3 de mayo de 2020", "Freitag, 3. Mai 2020")]),
        ("de-it", "am 1. Mai", [("1. Mai", "1º maggio")]),  # what stands before it only in three languages
        ("de-en", "am 31. Februar, 3. Maier, 3.5.2024, 1:3. Mai, im Mai", []),
        ("en-de", "you may 3 times, May 32, page 1.3 May, May, December 6-12", []),
        ("de-ja", "am 3. Mai um 15 Uhr", []),
        ("ja-de", "5月3日", []),
    ],
)  # fmt: skip
def test_dates(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_dates, text, direction) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "um 15 Uhr, 15.30 Uhr, ab 08:00 Uhr", [
            ("um 15 Uhr", "at 3 pm"), ("15.30 Uhr", "3:30 pm"), ("ab 08:00 Uhr", "from 8 am")]),
        ("de-en", "um 3 Uhr, 3:15 Uhr, 12 Uhr, 00:10 Uhr", [
            ("um 3 Uhr", "at 3 o'clock"), ("3:15 Uhr", "3:15"), ("12 Uhr", "12 o'clock"), ("00:10 Uhr", "12:10 am")]),
        ("de-fr", "bis 1 Uhr, gegen 15:30 Uhr", [
            ("bis 1 Uhr", "jusqu'à 1 heure"), ("gegen 15:30 Uhr", "vers 15 h 30")]),
        ("en-de", "9 a.m.-5 p.m., 9am-5pm; (3 p.m.) 10 am-ish, 5-6 pm, 7 a.m./p.m., 8 p.m.!", [
            ("9 a.m.", "9 Uhr"), ("5 p.m.", "17 Uhr"), ("9am", "9 Uhr"), ("5pm", "17 Uhr"), ("3 p.m.", "15 Uhr"),
            ("8 p.m.", "20 Uhr")]),
        ("en-de", "At 3 p.m. we eat, until 12am or 3:05 PM", [
            ("At 3 p.m.", "um 15 Uhr"), ("until 12am", "bis 0 Uhr"), ("3:05 PM", "15:05 Uhr")]),
        ("en-fr", "at 12 o’clock. At 3 p.m.", [("at 12 o’clock", "à 12 heures"), ("At 3 p.m", "à 15 heures")]),
        ("fr-en", "à 15 h 30 et vers 8h", [("à 15 h 30", "at 3:30 pm"), ("vers 8h", "around 8 o'clock")]),
        ("fr-de", "à 3 heures de Paris, pendant 3 heures, 24 h, 10 à 20 heures, à 3 h par jour", []),
        ("de-en", "25 Uhr, 3 Uhren, die Uhr, 3-Uhr-Tee", []),
        ("en-de", "13 pm, 0 am, 5 ampere", []),
        ("es-en", "a las 15:30", []),
    ],
)  # fmt: skip
def test_times(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_dates, text, direction) == wanted


@given(
    st.dates(date(1000, 1, 1), date(2999, 12, 31)),
    st.sampled_from(sorted(LANGUAGES)),
    st.sampled_from(sorted(LANGUAGES)),
    st.booleans(),
    st.booleans(),
)
def test_a_date_that_one_language_writes_another_reads(
    day: date, source: str, target: str, year: bool, named: bool
) -> None:
    weekday = day.weekday() if named else None
    ours, theirs = dates_of(source), dates_of(target)
    assert ours and theirs
    written = ours.day_written(day, weekday, year=year)
    assert found(find_dates, f"({written})", f"{source}-{target}") == [
        (written, theirs.day_written(day, weekday, year=year))
    ]


def test_every_day_of_a_year_is_written() -> None:
    english = dates_of("en")
    assert english
    days = {english.day_written(date(2023, 1, 1) + timedelta(number), None, year=True) for number in range(365)}
    assert len(days) == 365
