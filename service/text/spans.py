"""Where something stands in a text."""

from __future__ import annotations

import re
from typing import NamedTuple

WORD = re.compile(r"\w[\w\u0300-\u036f\u200c\u200d]*(?:['’\-]\w[\w\u0300-\u036f\u200c\u200d]*)*|[^\w\s]")
"""A word with inner hyphens and apostrophes, or a single mark. Joiners and combining marks belong to their word."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int

    def moved(self, characters: int) -> Span:
        """The same stretch of a text that begins so many characters earlier."""
        return Span(self.start + characters, self.end + characters)


def trim(text: str, start: int, end: int) -> Span:
    """A span without the white space at its ends."""
    part = text[start:end]
    if not part.strip():
        return Span(start, start)
    return Span(start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip()))
