"""How letters to nobody by name begin, and how letters end, in German, English and French.

They mean what they say in no language, and small models make nothing of them: "Yours sincerely" was "Deine Sünde ist
gut".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from tandem.service.text.masking import HiddenPlace, rewritten
from tandem.service.text.spans import Span

# Of each as it is read and, first, as it is written: the beginning, then ends from the formal to the warm.
_FORMULAE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "de": (
        ("Sehr geehrte Damen und Herren",),
        ("Mit freundlichen Grüßen", "Mit freundlichem Gruß", "Freundliche Grüße", "Hochachtungsvoll"),
        ("Viele Grüße", "Beste Grüße", "Schöne Grüße", "Herzliche Grüße", "Mit besten Grüßen", "Mit herzlichen Grüßen"),
        ("Liebe Grüße",),
    ),
    "en": (
        ("Dear Sir or Madam", "Dear Sir/Madam", "Dear Sirs", "To whom it may concern"),
        ("Kind regards", "With kind regards", "Yours sincerely", "Yours faithfully", "Sincerely yours", "Sincerely"),
        ("Best regards", "With best regards", "Warm regards", "Best wishes"),
        ("With love", "Lots of love"),
    ),
    "fr": (
        ("Madame, Monsieur", "Mesdames, Messieurs"),
        ("Cordialement", "Bien cordialement", "Salutations distinguées", "Sincères salutations"),
        ("Bien à vous", "Meilleures salutations", "Sincèrement"),
        ("Amitiés", "Bises"),
    ),
}


def find_formulae(text: str, source: str, target: str) -> list[HiddenPlace]:
    """The formula with which a normalised sentence begins, if a comma or nothing more follows; none of other languages.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them.
    """
    match = _formulae(source).match(text) if target in _FORMULAE else None
    if match is None:
        return []
    found = next(number for number, forms in enumerate(_folded(source)) if match["formula"].casefold() in forms)
    return [rewritten(text, Span(*match.span("formula")), _FORMULAE[target][found][0])]


@cache
def _folded(language: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(form.casefold() for form in forms) for forms in _FORMULAE[language])


@cache
def _formulae(language: str) -> re.Pattern[str]:
    forms = [form for group in _FORMULAE.get(language, ()) for form in group]
    longest_first = "|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"\W*(?P<formula>(?i:{longest_first}))(?=,|\W*$)")
