"""Sentences in capitals, and without any: models have read few, and make nothing of the former.

Half a sentence a thousand was right of what shipped models made of capitals (0.4 BLEU of 49). Read as other sentences
are, with the capitals that a lexicon gives to words, it comes out nearly as they do; so does German that was typed
without capitals, of which 5 of 49 BLEU were lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from models.lexicon import WORD

_WORD = re.compile(WORD)
_TWO_WORDS = re.compile(rf"{WORD}\W+{WORD}")


def is_shouted(text: str) -> bool:
    """Whether a sentence is all in capitals, and more than a word, which may be an acronym."""
    return text.isupper() and _TWO_WORDS.search(text) is not None


def calm(text: str, spelling: Callable[[str], str]) -> str:
    """A sentence in capitals, or without any, as others are written; another one as it is.

    Args:
        text: the sentence.
        spelling: of a word in small letters the one that it mostly has.
    """
    shouted = is_shouted(text)
    if not (shouted or text.islower()):
        return text
    calmed = _WORD.sub(lambda match: spelling(match[0]), text.lower())
    first = re.search(r"[^\W\d_]", calmed)
    if shouted and first:
        calmed = calmed[: first.start()] + first[0].upper() + calmed[first.end() :]
    return calmed


def shout(text: str, kept: Iterable[str]) -> str:
    """A text in capitals, but for some parts of it."""
    parts = "|".join(re.escape(part) for part in sorted(kept, key=len, reverse=True) if part)
    if not parts:
        return text.upper()
    return "".join(part if number % 2 else part.upper() for number, part in enumerate(re.split(f"({parts})", text)))
