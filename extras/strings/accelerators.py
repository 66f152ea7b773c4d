"""Accelerators of labels: the ``&`` before the letter that chooses an entry of a menu or a button from the keyboard
(``&File``, ``St&art``), as Windows, Qt and many catalogues of messages mark it; GTK writes ``_``, LibreOffice ``~``.

A label is read without the mark, for half a word is none. Its translation gets it back: before the same letter where it
begins a word, else where it stands within one, else before the first letter or digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tandem.service.text.masking import Masked
from tandem.service.text.spans import Span

_LONGEST = 80  # characters of a label
_SHORTEST = 4  # letters of a word with a mark within it
# At a word's beginning, or within one; other signs than & only at its beginning, for names have them inside.
_MARKED = re.compile(r"(?<![\w&_~])(?:(?P<first>[^\W\d_]*+)&(?P<last>[^\W_]\w*+)|[_~](?P<word>[^\W\d_]\w*+))(?![&_~])")
_WITHIN = re.compile(r"(?<!\w)([^\W\d_]+)_(?!innen\b)([^\W\d_]+)(?!\w)")
_ENDED = re.compile(r"(?<!\.)[.!?]\Z")  # as no label is
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


def with_word_shown(sentence: Masked, measure: Callable[[str], int]) -> Masked:
    """A label of which only a word with ``_`` in it is hidden as if it were a name (``Fi_le``), with that shown.

    A word has a capital at its beginning alone, and the vocabulary knows it as one, but not its halves: of 30 words of
    menus 24 are found so, and of 29 names (``User_id``) 5, all of which are words too (``Pass_word``).

    Args:
        sentence: as it was sent.
        measure: counts the tokens of a text.
    """
    name = sentence.hidden[0].source if len(sentence.hidden) == 1 else ""
    match = _WITHIN.fullmatch(name) if "_" in name and not sentence.hidden[0].asked else None
    if match is None or not _is_capitalised(name):
        return sentence
    first, last = match.groups()
    piece, whole = measure("a"), measure(first + last)
    halves = measure(first) > piece and measure(last) > piece and whole < measure(f"{first} {last}")
    is_word = whole == piece or halves
    label = sentence.source
    return Masked(label) if is_word and len(label) <= _LONGEST and not _ENDED.search(label) else sentence


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and word[1:].islower()


def find_accelerator(label: str, *, shown: bool = False) -> Span | None:
    """The mark of a label and the letter behind it; None where it has none, or several.

    Args:
        label: as it is sent.
        shown: whether names are hidden in it, so that a ``_`` within a word is one, too.
    """
    if sum(map(label.count, _SIGNS)) != 1 or len(label) > _LONGEST:
        return None
    match = _MARKED.search(label)
    if match is None:
        within = _WITHIN.search(label) if shown else None
        return Span(within.end(1), within.end(1) + 2) if within and _is_capitalised(within[0]) else None
    first, last = match["first"], match["last"]
    if first and (not last[0].islower() or len(first) + len(last) < _SHORTEST or match[0].lower() in _TWO_WORDS):
        return None  # "AT&T", "R&D"
    start = match.start() + len(first or "")
    return Span(start, start + 2)


def without_accelerator(label: str, *, shown: bool = False) -> str:
    """A label as a reader sees it; ``shown``: see ``find_accelerator``."""
    words, _ = split_accelerator(label)
    found = find_accelerator(words, shown=shown)
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
