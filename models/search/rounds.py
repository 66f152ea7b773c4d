"""Rounds of a stretch that follows itself ("and so on and so on"): how many a text has, and may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

LONGEST_PERIOD = 12
"""Tokens of the longest stretch whose rounds are counted."""


def most_rounds(tokens: Sequence[Any]) -> int:
    """How often a stretch of up to ``LONGEST_PERIOD`` tokens, or words, follows itself at most, itself counted."""
    most = min(len(tokens), 1)
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // 2) + 1):
        same = 0  # tokens that equal the one a period before, up to here
        for place in range(period, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - period] else 0
            most = max(most, same // period + 1)
    return most


def allowed_rounds(bound: int, sources: Sequence[NDArray[Any]]) -> int:
    """The bound of an option, or as many rounds as a text source has, where it has more; 0 for a bound of none."""
    texts = [source.tolist() for source in sources if source.ndim == 1]
    return max([bound, *map(most_rounds, texts)]) if bound else 0
