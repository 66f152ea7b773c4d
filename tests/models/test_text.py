"""Normalisation: a fixed point that keeps every visible character and drops what no model should see."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text import normalise


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("e\u0301", "\u00e9"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00\x07\x7f\x85b", "ab"),
        ("\ufeffa", "a"),
        ("a\ud800b\udfff", "ab"),
        ("a\ufdd0\uffff\U0010ffffb", "ab"),
        ("e\x00\u0301", "\u00e9"),
        ("\u202eright to left stays\u2069", "\u202eright to left stays\u2069"),
        ("", ""),
    ],
)
def test_removes_and_composes(given_text: str, wanted: str) -> None:
    assert normalise(given_text) == wanted


@given(st.text(st.characters(codec=None)))
def test_is_a_fixed_point_in_nfc_that_encodes(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not {unicodedata.category(character) for character in once.replace("\n", "").replace("\t", "")} & {
        "Cc",
        "Cs",
    }
    once.encode("utf-8")
