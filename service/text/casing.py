"""Sentences in capitals, and without any: models have read few, and make nothing of the former.

Read as others are, with the capitals that a lexicon gives to words, they are translated nearly as well; so is German
that was typed without capitals (docs/results.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from models.lexicon import WORD
from service.text.protect import literals

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


def shout(text: str, kept: Sequence[str]) -> str:
    """A text in capitals, but for some parts of it."""
    if not kept:
        return text.upper()
    written, done = "", 0
    for match in literals(kept).finditer(text):
        written += text[done : match.start()].upper() + match[0]
        done = match.end()
    return written + text[done:].upper()
