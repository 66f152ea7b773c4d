"""Times counted from now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.conventions.dates import LANGUAGES
from service.text.conventions.relative import _SECONDS, _written, find_relative
from tests.service.text.conventions.found import found


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("de-en", "Vor 2 Stunden, in 1 Minute", [("Vor 2 Stunden", "2 hours ago"), ("in 1 Minute", "in 1 minute")]),
        ("en-de", "2 hours ago, IN 5 MINUTES", [("2 hours ago", "vor 2 Stunden"), ("IN 5 MINUTES", "in 5 Minuten")]),
        ("fr-en", "il y a 1 an, dans 3 mois", [("il y a 1 an", "1 year ago"), ("dans 3 mois", "in 3 months")]),
        ("es-fr", "hace 2 horas", [("hace 2 horas", "il y a 2 heures")]),
        ("fr-en", "il y a 2 heures de route, il y a 2 chats", []),
        ("es-en", "hace 2 horas que", []),
        ("en-de", "3 days, 1.5 hours ago, in 3 boxes, within 3 days, 12-3 days ago", []),
        ("de-ja", "vor 2 Stunden", []),
    ],
)
def test_relative(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_relative, text, direction) == wanted


@given(
    st.integers(0, 9999),
    st.sampled_from(sorted(_SECONDS)),
    st.sampled_from([-1, 1]),
    st.sampled_from(sorted(LANGUAGES)),
    st.sampled_from(sorted(LANGUAGES)),
)
def test_what_one_language_writes_another_reads(count: int, unit: str, sign: int, source: str, target: str) -> None:
    written = _written(count, unit, sign, source)  # type: ignore[arg-type]
    wanted = _written(count, unit, sign, target)  # type: ignore[arg-type]
    assert found(find_relative, f"({written})", f"{source}-{target}") == [(written, wanted)]
