"""Numbers and sums of money in sentences, and what a translation writes for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.rewriting.conventions.amounts import find_amounts
from tandem.extras.rewriting.tests.conventions.found import found

THIN, HARD = "\u202f", "\u00a0"  # spaces that break no line


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "1.250,5 km, 0,125 und 10.000 (3,5 %)", [
            ("1.250,5 km", "1,250.5 km"), ("0,125", "0.125"), ("10.000", "10,000"), ("3,5", "3.5")]),
        ("de-fr", "1.234.567,8", [("1.234.567,8", f"1{THIN}234{THIN}567,8")]),
        ("fr-en", f"20 000 et 1{HARD}000,125", [("20 000", "20,000"), (f"1{HARD}000,125", "1,000.125")]),
        ("en-de", "10,000 people, 3.5%, 1.5 million, 2.5 km", [
            ("10,000", "10.000"), ("3.5", "3,5"), ("1.5", "1,5"), ("2.5 km", "2,5 km")]),
        ("nl-en", "2.500,50", [("2.500,50", "2,500.50")]),
        ("en-de", "Python 3.8, 1.2.3, version 2.5 mentions 3.5 kmh", []),  # versions, perhaps
        ("de-en", "1,000 Leute, [0,1], +1.206, 3.5.2024, 12:30, B2,5, 2024, 000 Dollar", []),
        ("de-en", "192.168.x.y, 3,5-mal, $3,000, %1$.2f", [("3,5", "3.5")]),
        ("de-en", "CHF 1'250.50 und 1’500, 12'34, 6'2\"", [("1'250.50", "1,250.50"), ("1’500", "1,500")]),
        ("en-fr", "1'000'000 people, CHF 12'500.00", [
            ("1'000'000", f"1{THIN}000{THIN}000"), ("12'500.00", f"12{THIN}500,00")]),
        ("en-de", "1,250.50 and 3.8", [("1,250.50", "1.250,50")]),  # no version has thousands
        ("de-en", "Preis: 5,– oder CHF 12.-, vom 3.-5. und 5,-10", [("5,–", "5,–"), ("12.-", "12.-")]),
        ("de-es", "10.000", []),  # is written alike
        ("de-ja", "1.250,5", []),
    ],
)  # fmt: skip
def test_numbers(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_amounts, text, direction) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "5.000 € oder 20€, 3 Euro, 1 Euro", [
            ("5.000 €", "€5,000"), ("20€", "€20"), ("3 Euro", "3 euros"), ("1 Euro", "1 euro")]),
        ("de-en", "5,- Euro, 19,– €, 29,-- €", [("5,- Euro", "5 euros"), ("19,– €", "€19"), ("29,-- €", "€29")]),
        ("en-de", "$20,000+, $1.50 or 1 dollar", [
            ("$20,000", f"20.000{HARD}$"), ("$1.50", f"1,50{HARD}$"), ("1 dollar", "1 Dollar")]),
        ("en-de", "25 euros or $5", [("25 euros", "25 Euro"), ("$5", f"5{HARD}$")]),
        ("en-fr", "£30 and 7 yen", [("£30", f"30{HARD}£"), ("7 yen", "7 yens")]),
        ("fr-en", "12 345,67 euros", [("12 345,67 euros", "12,345.67 euros")]),
        ("fr-en", "25 euros", [("25 euros", "25 euros")]),  # models lose what is counted
        ("en-de", "$1,299.99/month or 5 €/h, 1,000/month", [
            ("$1,299.99", f"1.299,99{HARD}$"), ("5 €", f"5{HARD}€")]),
        ("de-es", "3,50 Dollar", []),  # whose names of currencies are not known
        ("en-de", "$1 and $2 are gone, $5 thousand, 3 Euromaster, $5M", []),  # placeholders of programs, and half a sum
    ],
)  # fmt: skip
def test_sums(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_amounts, text, direction) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "5 Millionen Euro, 2,5 Mrd. Euro, 1 Million €, 2 Billionen $", [
            ("5 Millionen Euro", "5 million euros"), ("2,5 Mrd. Euro", "2.5 billion euros"),
            ("1 Million €", "€1 million"), ("2 Billionen $", "$2 trillion")]),
        ("en-de", "$5 million, $1.5bn, £1 million, 2 trillion euros", [
            ("$5 million", "5 Millionen Dollar"), ("$1.5bn", "1,5 Milliarden Dollar"),
            ("£1 million", "1 Million Pfund"), ("2 trillion euros", "2 Billionen Euro")]),
        ("en-fr", "$1.5 million or 5,000 billion euros", [
            ("$1.5 million", "1,5 million de dollars"), ("5,000 billion euros", f"5{THIN}000 milliards d'euros")]),
        ("fr-en", "2,5 milliards de dollars", [("2,5 milliards de dollars", "2.5 billion dollars")]),
        ("de-en", "3 Millionen Menschen, 3 Milliarden, 5 Millionäre Euro", []),
        ("en-de", "$5 million dollars", []),
        ("de-es", "5 Millionen Euro", []),
    ],
)  # fmt: skip
def test_sums_of_millions(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_amounts, text, direction) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "250 ml Milch, 1,5 l, 20 °C, 3 m², 120 km/h", [
            ("250 ml", "250 ml"), ("1,5 l", "1.5 l"), ("20 °C", "20 °C"), ("3 m²", "3 m²"), ("120 km/h", "120 km/h")]),
        ("en-fr", "500 MB, 10 KB, 2.5 GB, 2 GiB", [
            ("500 MB", "500 Mo"), ("10 KB", "10 ko"), ("2.5 GB", "2,5 Go"), ("2 GiB", "2 GiB")]),
        ("fr-de", "1 Ko et 1,5 Go", [("1 Ko", "1 KB"), ("1,5 Go", "1,5 GB")]),
        ("en-de", "5 miles, 3 mg/l, 4 more, 5 Wh, 2 A, 24 h, 3 m-high", []),
        ("de-ja", "250 ml", []),
    ],
)  # fmt: skip
def test_measures(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_amounts, text, direction) == wanted


@given(st.integers(1_000, 10**12), st.integers(1, 99), st.sampled_from(["de", "fr", "es", "it", "pt", "nl"]))
def test_an_amount_that_goes_there_and_back_is_the_same(whole: int, cents: int, language: str) -> None:
    english = f"${whole:,}.{cents:02}"
    ((_, written),) = found(find_amounts, english, f"en-{language}")
    assert found(find_amounts, f"({written})", f"{language}-en") == [(written, english)]
