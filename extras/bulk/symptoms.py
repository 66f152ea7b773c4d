"""How a translation shows that its model has lost the thread: it repeats itself, stops early, or says nothing.

The service cuts loops with rules of its own (``service.text.loops``): counting them needs less.
"""

from __future__ import annotations

import re

from tandem.models.search import rounds as search_rounds

MOST_ROUNDS = 2
"""Equal stretches of words one after another that are no loop: people write "very, very"."""
_WORD = re.compile(r"\w+|[^\w\s]")
_SHORT, _LONG = 0.4, 2.5


def is_loop(text: str, source: str = "") -> bool:
    """Whether a text has the same words more often in a row than ``MOST_ROUNDS`` and than its source has."""
    rounds = most_rounds(text)
    return rounds > MOST_ROUNDS and rounds > most_rounds(source)


def most_rounds(text: str) -> int:
    """How often a stretch of up to twelve words follows itself at most, itself counted; marks count as words."""
    return search_rounds.most_rounds(_WORD.findall(text.casefold()))


def symptom(text: str, source: str, reference: str) -> str:
    """What is wrong with a translation at first sight: "empty", "loop", "short", "long", or nothing.

    Short and long are below 0.4 and above 2.5 of the reference's words (and at least three words off).
    """
    if not text.strip():
        return "empty" if reference.strip() else ""
    if is_loop(text, source):
        return "loop"
    words, expected = len(text.split()), len(reference.split())
    if abs(words - expected) < 3:
        return ""
    if words < _SHORT * expected:
        return "short"
    return "long" if words > _LONG * expected else ""
