"""Normalisation: a fixed point that keeps every visible character and drops what no model should see."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.text import as_read, normalise


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("e\u0301", "\u00e9"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00\x07\x7f\x84b", "ab"),
        ("mira\x85libro", "mira libro"),
        ("el\x0cmira\x0bx\x1cy\x1dz\x1e1\x1f2", "el mira x y z 1 2"),
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


@given(st.text(st.sampled_from("ae\u00e9\u0344\u0f73\u3099\u0301\u0316\u0345"), max_size=200))
def test_marks_out_of_order_come_out_as_in_nfc(text: str) -> None:
    run = "\u0316\u0301" * 20
    assert normalise(run + text + run) == unicodedata.normalize("NFC", run + text + run)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "\u0344\u0316"])
def test_a_million_marks_out_of_order_take_no_hours(marks: str) -> None:
    assert unicodedata.is_normalized("NFD", normalise("x" + marks * 300_000)[1:])


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


def test_ligatures_are_read_as_their_letters() -> None:
    assert as_read("Oﬃce, Eﬀekt, ﬁn, ﬂ, ﬅ, ﬆ") == "Office, Effekt, fin, fl, st, st"
