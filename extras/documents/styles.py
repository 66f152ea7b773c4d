"""What the styles of a document say about its texts: that they are code, or stand above or below the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_CODE = re.compile(
    r"(?:source ?code|code(?: ?block| ?listing)?|listing|html preformatted|macro(?: text)?|quell(?:code|text)"
    r"|code source)",
    re.IGNORECASE,
)
"""Names of styles of code: Word's own, pandoc's, and what people call theirs. LibreOffice's "Preformatted Text" is not
among them: so it shows whatever was plain text."""


@dataclass(frozen=True, slots=True)
class TextStyle:
    """A style.

    Attributes:
        name: as people see it.
        parent: the style that it goes on from; empty where there is none.
        raised: ``sup`` or ``sub`` where it says so, ``span`` where it says that its texts are neither.
    """

    name: str = ""
    parent: str = ""
    raised: str = ""


def styles_of_code(styles: Mapping[str, TextStyle]) -> frozenset[str]:
    """Those of the styles, by their keys, that are for code, or go on from one that is."""
    return frozenset(key for key in styles if any(_CODE.fullmatch(one.name) for one in _chain(key, styles)))


def raised_styles(styles: Mapping[str, TextStyle]) -> dict[str, str]:
    """Of the styles, by their keys, those of raised and lowered texts, with the HTML element for them."""
    found = {key: next((one.raised for one in _chain(key, styles) if one.raised), "span") for key in styles}
    return {key: element for key, element in found.items() if element != "span"}


def _chain(key: str, styles: Mapping[str, TextStyle]) -> Iterable[TextStyle]:
    """A style and those that it goes on from, each once."""
    seen: set[str] = set()
    while key in styles and key not in seen:
        seen.add(key)
        yield styles[key]
        key = styles[key].parent
