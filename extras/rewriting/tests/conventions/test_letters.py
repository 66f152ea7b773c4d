"""How letters begin and end, and what a translation writes for it."""

from __future__ import annotations

import pytest

from tandem.extras.rewriting.conventions.letters import find_formulae
from tandem.extras.rewriting.tests.conventions.found import found


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        (
            "de-en",
            "Sehr geehrte Damen und Herren, vielen Dank",
            [("Sehr geehrte Damen und Herren", "Dear Sir or Madam")],
        ),
        ("de-fr", "Mit freundlichem Gruß", [("Mit freundlichem Gruß", "Cordialement")]),
        ("en-de", "(YOURS SINCERELY)!", [("YOURS SINCERELY", "Mit freundlichen Grüßen")]),
        ("en-fr", "Best regards, Anna", [("Best regards", "Bien à vous")]),
        ("fr-en", "Madame, Monsieur,", [("Madame, Monsieur", "Dear Sir or Madam")]),
        ("fr-de", "Bien cordialement.", [("Bien cordialement", "Mit freundlichen Grüßen")]),
        ("en-de", "Best regards to Anna", []),
        ("en-de", "With best regards from me, Anna", []),
        ("de-en", "Er schickt viele Grüße", []),
        ("fr-en", "Il parle sincèrement.", []),
        ("de-es", "Viele Grüße", []),
        ("es-de", "Viele Grüße", []),
    ],
)
def test_formulae(direction: str, text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(find_formulae, text, direction) == wanted
