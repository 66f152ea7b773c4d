"""Single guillemets, as German and Swiss books quote within what is quoted: "»›Warum?‹, fragte er«".

Small models have hardly read them, and write a word in their place. They are read as the marks that every language has.
"""

from __future__ import annotations

import re

_INSIDE = r"([^\s‹›](?:[^‹›]{0,200}[^\s‹›])?)"
_QUOTED = re.compile(rf"(?<!\w)(?:‹{_INSIDE}›|›{_INSIDE}‹)(?!\w)")
_QUOTED_IN_FRENCH = re.compile(rf"(?<!\w)‹[ \u00a0\u202f]?{_INSIDE}[ \u00a0\u202f]?›(?!\w)")


def as_read_often(text: str, language: str) -> str:
    """A sentence with apostrophes around what single guillemets enclose; others stay, such as those between links."""
    if "‹" not in text or "›" not in text:
        return text
    return (_QUOTED_IN_FRENCH if language == "fr" else _QUOTED).sub(_between_apostrophes, text)


def _between_apostrophes(match: re.Match[str]) -> str:
    return f"'{match[match.lastindex or 0]}'"
