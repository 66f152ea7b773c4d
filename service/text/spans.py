"""Where something stands in a text."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int

    def moved(self, characters: int) -> Span:
        """The same stretch of a text that begins so many characters earlier."""
        return Span(self.start + characters, self.end + characters)
