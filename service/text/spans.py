"""Where something stands in a text."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import NamedTuple

WORD = re.compile(r"\w[\w\u0300-\u036f\u200c\u200d]*(?:['’\-]\w[\w\u0300-\u036f\u200c\u200d]*)*|[^\w\s]")
"""A word with inner hyphens and apostrophes, or a single mark. Joiners and combining marks belong to their word."""

JOINERS = "\u200c\u200d"


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


@cache
def atoms() -> re.Pattern[str]:
    r"""Words with their combining marks, which ``\w`` leaves out; white space; any other character alone."""
    marks = [code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    inside = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(rf"\w[\w{inside}{JOINERS}]*|\s+|.", re.DOTALL)
