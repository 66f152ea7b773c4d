"""Quotation marks of one kind."""

from __future__ import annotations

import pytest

from extras.rewriting.quotes import with_even_quotes


@pytest.mark.parametrize(
    ("source", "text", "wanted"),
    [
        ('sagt "a" und "b"', 'says "a” and “b"', 'says "a" and "b"'),
        ('dit "a"', '"a\u00a0», « b » "', '"a", "b" "'),
        ('sagt "a"', "says “a”", "says “a”"),
        ("sagt „a“", 'says "a”', 'says "a”'),
        ("sagt", 'says "a”', 'says "a”'),
        ('5" lang', '5" long', '5" long'),
    ],
)
def test_straight_marks_stay_alone(source: str, text: str, wanted: str) -> None:
    assert with_even_quotes(text, source) == wanted


def test_what_is_to_stay_as_it_is_stays() -> None:
    assert with_even_quotes('"x" “y”', '"x"', ["y"]) == '"x" "y"'
    assert with_even_quotes('"x" “y”', '"x"', ["“y”"]) == '"x" “y”'
