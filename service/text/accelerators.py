"""Accelerators of labels: the ``&`` before the letter that chooses an entry of a menu or a button from the keyboard
(``&File``, ``St&art``), as Windows, Qt and many catalogues of messages mark it; GTK writes ``_``, LibreOffice ``~``.

A label is read without the mark, for half a word is none. Its translation gets it back: before the same letter where it
begins a word, else where it stands within one, else before the first letter or digit.
"""

from __future__ import annotations

import re

from tandem.service.text.spans import Span

_LONGEST = 80  # characters of a label
_SHORTEST = 4  # letters of a word with a mark within it
# At a word's beginning, or within one; other signs than & only at its beginning, for names have them inside.
_MARKED = re.compile(r"(?<![\w&_~])(?:(?P<first>[^\W\d_]*+)&(?P<last>[^\W_]\w*+)|[_~](?P<word>[^\W\d_]\w*+))(?![&_~])")
_SIGNS = "&_~"
# Two words that are written as one, of which nobody can tell that they are no label: the commonest.
_TWO_WORDS = frozenset(
    ("bed&breakfast", "black&white", "copy&paste", "cut&paste", "drag&drop", "find&replace", "hide&seek", "mix&match",
     "park&ride", "pick&place", "plug&play", "point&click", "print&play", "rock&roll", "search&replace", "trial&error")
)  # fmt: skip
_BEHIND = re.compile(r"\s*\(&[^\W_]\)(?=[.…:]*\Z)")  # of a word that lacks the letter, "Speichern (&S)..."


def split_accelerator(label: str) -> tuple[str, str]:
    """A label without the accelerator that stands in brackets behind its words, and that; none where none does."""
    match = _BEHIND.search(label)
    if match is None or not match.start():
        return label, ""
    return label[: match.start()] + label[match.end() :], match[0]


def with_behind(translation: str, accelerator: str) -> str:
    """A label's translation with an accelerator in brackets before its final dots or colon."""
    end = len(translation.rstrip(".…: "))
    return translation[:end] + accelerator + translation[end:]


def find_accelerator(label: str) -> Span | None:
    """The mark of a label and the letter behind it; None where it has none, or several."""
    if sum(map(label.count, _SIGNS)) != 1 or len(label) > _LONGEST:
        return None
    match = _MARKED.search(label)
    if match is None:
        return None
    first, last = match["first"], match["last"]
    if first and (not last[0].islower() or len(first) + len(last) < _SHORTEST or match[0].lower() in _TWO_WORDS):
        return None  # "AT&T", "R&D"
    start = match.start() + len(first or "")
    return Span(start, start + 2)


def without_accelerator(label: str) -> str:
    """A label as a reader sees it."""
    words, _ = split_accelerator(label)
    found = find_accelerator(words)
    return words if found is None else words[: found.start] + words[found.start + 1 :]


def with_accelerator(translation: str, letter: str, sign: str = "&") -> str:
    """A label's translation with the mark in it; unchanged where it has one, or neither letters nor digits."""
    if sign in translation:
        return translation
    own = re.escape(letter)
    for expression in (rf"(?<!\w){own}", own, r"[^\W_]"):
        if match := re.search(expression, translation, re.IGNORECASE):
            return f"{translation[: match.start()]}{sign}{translation[match.start() :]}"
    return translation
