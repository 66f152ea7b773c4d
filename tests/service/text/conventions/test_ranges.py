"""Ranges of days and hours in sentences, and what a translation writes for them."""

from __future__ import annotations

import pytest

from service.text.conventions.ranges import find_ranges
from tests.service.text.conventions.found import found


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "Vom 3. bis 5. Mai und vom 3. Mai bis zum 7. Juni 2024", [
            ("Vom 3. bis 5. Mai", "from May 3 to 5"),
            ("vom 3. Mai bis zum 7. Juni 2024", "from May 3 to June 7, 2024")]),
        ("de-en", "zwischen dem 3. und dem 5. Mai, 3.–5. Mai 2024, am 3.-5. Mai", [
            ("zwischen dem 3. und dem 5. Mai", "between May 3 and 5"), ("3.–5. Mai 2024", "May 3–5, 2024"),
            ("am 3.-5. Mai", "from May 3 to 5")]),
        ("de-fr", "vom 1. bis 5. Mai, 1. Mai - 3. Juni, zwischen dem 1. und 5. Mai", [
            ("vom 1. bis 5. Mai", "du 1er au 5 mai"), ("1. Mai - 3. Juni", "1er mai – 3 juin"),
            ("zwischen dem 1. und 5. Mai", "entre le 1er et le 5 mai")]),
        ("de-fr", "30. Dezember 2023 bis 2. Januar 2024, 30. Dez. bis 2. Jan. nicht", [
            ("30. Dezember 2023 bis 2. Januar 2024", "du 30 décembre 2023 au 2 janvier 2024"),
            ("30. Dez. bis 2. Jan.", "du 30 décembre au 2 janvier")]),
        ("en-de", "from May 3 to 5, May 3rd-5th, 2024, from 3 to 7 June 2024, on May 3–5", [
            ("from May 3 to 5", "vom 3. bis 5. Mai"), ("May 3rd-5th, 2024", "3.–5. Mai 2024"),
            ("from 3 to 7 June 2024", "vom 3. bis 7. Juni 2024"), ("on May 3–5", "vom 3. bis 5. Mai")]),
        ("en-de", "between May 3 and June 7, May 3 to 5", [
            ("between May 3 and June 7", "zwischen dem 3. Mai und dem 7. Juni"), ("May 3 to 5", "3. bis 5. Mai")]),
        ("fr-de", "Du 1er au 5 MAI 2024, entre le 3 et 5 mai, les 3-5 mai.", [
            ("Du 1er au 5 MAI 2024", "vom 1. bis 5. Mai 2024"),
            ("entre le 3 et 5 mai", "zwischen dem 3. und dem 5. Mai"),
            ("les 3-5 mai", "vom 3. bis 5. Mai")]),
        ("de-en", "5. bis 3. Mai, 3. bis 32. Mai, 30. Februar bis 3. März, 3. und 5. Mai, 1.3. bis 5. Mai", []),
        ("en-de", "I may 3 to 5, rows 3 to 5, May 3 and 5, between May 3 to 5", [("May 3 to 5", "3. bis 5. Mai")]),
        ("de-es", "vom 3. bis 5. Mai, von 9 bis 17 Uhr", []),
    ],
)  # fmt: skip
def test_days(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_ranges, text, direction) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "von 9 bis 17 Uhr, 9.30 Uhr bis 17:15 Uhr, zwischen 22 und 6 Uhr, 9–17 Uhr", [
            ("von 9 bis 17 Uhr", "from 9 am to 5 pm"), ("9.30 Uhr bis 17:15 Uhr", "9:30 am to 5:15 pm"),
            ("zwischen 22 und 6 Uhr", "between 10 pm and 6 am"), ("9–17 Uhr", "9 am – 5 pm")]),
        ("de-en", "von 9 bis 11 Uhr, von 9:00 bis 10:30 Uhr, 09:00-10:30 Uhr", [
            ("von 9 bis 11 Uhr", "from 9 to 11 o'clock"), ("von 9:00 bis 10:30 Uhr", "from 9:00 to 10:30"),
            ("09:00-10:30 Uhr", "9 am – 10:30 am")]),
        ("en-de", "from 9 am to 5 pm, 9-5 pm, 10 to 12 pm, between 2 and 4:30 p.m., 3 to 4 o'clock, 11 pm to 12 am", [
            ("from 9 am to 5 pm", "von 9 bis 17 Uhr"), ("9-5 pm", "9–17 Uhr"), ("10 to 12 pm", "10 bis 12 Uhr"),
            ("between 2 and 4:30 p.m.", "zwischen 14 und 16:30 Uhr"), ("3 to 4 o'clock", "3 bis 4 Uhr"),
            ("11 pm to 12 am", "23 bis 0 Uhr")]),
        ("en-fr", "From 9:30 am until 5 pm, 9-5 pm", [
            ("From 9:30 am until 5 pm", "de 9 h 30 à 17 h"), ("9-5 pm", "9 h – 17 h")]),
        ("fr-en", "de 9h30 à 17h, entre 9 heures et 17 heures", [
            ("de 9h30 à 17h", "from 9:30 am to 5 pm"), ("entre 9 heures et 17 heures", "between 9 am and 5 pm")]),
        ("fr-en", "de 2 à 3 heures, de 2 h à 3 h par jour", []),
        ("en-de", "from 9 to 5, from 13 to 4 pm, 3 am to 4 o'clock, 9 and 5 pm, 1/9 to 5 pm", []),
        ("de-en", "von 3 bis 5 Stunden, 9 und 17 Uhr, 3-5-Uhr-Tee, 2,9 bis 17 Uhr", []),
    ],
)  # fmt: skip
def test_hours(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_ranges, text, direction) == wanted
