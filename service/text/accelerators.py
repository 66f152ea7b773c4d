"""Accelerators of labels: the ``&`` before the letter that chooses an entry of a menu or a button from the keyboard
(``&File``, ``St&art``), as Windows, Qt and many catalogues of messages mark it.

A label is read without the mark, for half a word is none. Its translation gets it back: before the same letter where it
begins a word, else where it stands within one, else before the first letter or digit.
"""

from __future__ import annotations

import re

from tandem.service.text.spans import Span

_LONGEST = 80  # characters of a label
# At a word's beginning, or within a word of which it parts a few letters: "drag&drop", "AT&T" and "R&D" have none.
_MARKED = re.compile(r"(?<![\w&])(?P<first>[^\W\d_]*+)&(?P<last>[^\W_]\w*+)(?!&)")
_FEW = 2


def find_accelerator(label: str) -> Span | None:
    """The mark of a label and the letter behind it; None where it has none, or several."""
    if label.count("&") != 1 or len(label) > _LONGEST:
        return None
    match = _MARKED.search(label)
    if match is None:
        return None
    first, last = match["first"], match["last"]
    within = last[0].islower() and min(len(first), len(last)) <= _FEW and len(first) + len(last) > _FEW
    if first and not within:
        return None
    return Span(match.end("first"), match.end("first") + 2)


def with_accelerator(translation: str, letter: str) -> str:
    """A label's translation with the mark in it; unchanged where it has one, or neither letters nor digits."""
    if "&" in translation:
        return translation
    own = re.escape(letter)
    for expression in (rf"(?<!\w){own}", own, r"[^\W_]"):
        if match := re.search(expression, translation, re.IGNORECASE):
            return f"{translation[: match.start()]}&{translation[match.start() :]}"
    return translation
