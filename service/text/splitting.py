"""Sentences longer than a model takes: split at clause borders, then between words, then anywhere; nothing is lost."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice

Measure = Callable[[str], int]
"""Tokens of a text, without EOS."""

Borders = tuple[re.Pattern[str], ...]
# Best borders first: each pattern ends where a piece may end.
_BORDERS: Borders = (
    re.compile(r".*?(?:[.!?:;…][\"'»“”’)\]]*\s+|[。！？；]|$)", re.DOTALL),
    re.compile(r".*?(?:[,،][\"'»“”’)\]]*\s+|\s[–—-]\s+|[)\]]\s+|[、，：]|$)", re.DOTALL),
    re.compile(r".*?(?:\s+|$)", re.DOTALL),
)
_WORD_BORDER = re.compile(r"(?=\s)|(?<=[。！？；、，：])")
_JOINERS = "\u200d\ufe0e\ufe0f"


def split_long(text: str, limit: int, measure: Measure) -> list[str]:
    """Pieces of similar size and of at most ``limit`` tokens, split at the best borders; joined, they are ``text``.

    Only where a single character measures more than ``limit`` is a piece longer.

    Args:
        text: any text.
        limit: tokens.
        measure: counts them.
    """
    return _split(text, limit, measure, _BORDERS)


def pack_sentences(sentences: Sequence[str], limit: int, measure: Measure) -> list[str]:
    """Neighbouring sentences together, in pieces of similar size and of at most ``limit`` tokens.

    A sentence longer than that is split as in ``split_long``; joined, the pieces are the sentences.

    Args:
        sentences: with the white space around them.
        limit: tokens.
        measure: counts them.
    """
    text = "".join(sentences)
    total = measure(text)
    return [text] if total <= limit else _packed(sentences, total, limit, measure, _BORDERS)


def cut_to_limit(text: str, limit: int, measure: Measure) -> tuple[str, bool]:
    """The longest beginning of a text that a model can take, ending at a word border where there is one.

    A sentence may be cut: models that summarize learn from texts that were cut anywhere.

    Args:
        text: normalised text; white space of any kind and length counts as one space.
        limit: tokens.
        measure: counts them.

    Returns:
        The text with single spaces, and whether something was left out.
    """
    text = " ".join(text.split())
    if measure(text) <= limit:
        return text, False
    # What lies between two borders has a token at least.
    borders = [found.start() for found in islice(_WORD_BORDER.finditer(text, 1), limit)]
    fitting = bisect_right(borders, limit, key=lambda border: measure(text[:border]))
    while fitting and measure(text[: borders[fitting - 1]]) > limit:  # one word more may have fewer tokens
        fitting -= 1
    return text[: borders[fitting - 1] if fitting else _longest_prefix(text, limit, measure)], True


def _split(text: str, limit: int, measure: Measure, borders: Borders) -> list[str]:
    total = measure(text)
    if total <= limit or len(text) <= 1:
        return [text]
    if not borders:
        return _split_anywhere(text, limit, measure)
    atoms = [match[0] for match in borders[0].finditer(text) if match[0]]
    if len(atoms) == 1:
        return _split(text, limit, measure, borders[1:])
    return _packed(atoms, total, limit, measure, borders[1:])


def _packed(atoms: Sequence[str], total: int, limit: int, measure: Measure, borders: Borders) -> list[str]:
    """Atoms of so many tokens in pieces; one that is too long by itself is split at the borders."""
    # An even share, so that no crumb is left for the last piece.
    aim = min(limit, total / -(-total // limit) * 1.1)
    pieces: list[str] = []
    for chunk, too_long in _pack(atoms, limit, aim, measure):
        pieces += _split(chunk, limit, measure, borders) if too_long else [chunk]
    return pieces


def _pack(atoms: Sequence[str], limit: int, aim: float, measure: Measure) -> list[tuple[str, bool]]:
    """Join neighbours to pieces of about ``aim`` tokens; with each, whether it is longer than ``limit``."""
    chunks: list[tuple[str, bool]] = []
    pending, size = "", 0
    for atom in atoms:
        tokens = measure(atom)
        if pending and size + tokens > aim:
            chunks.append((pending, size > limit or measure(pending) > limit))
            pending, size = "", 0
        pending, size = pending + atom, size + tokens
    chunks.append((pending, size > limit or measure(pending) > limit))
    return chunks


def _split_anywhere(text: str, limit: int, measure: Measure) -> list[str]:
    pieces = []
    while text:
        end = _longest_prefix(text, limit, measure)
        pieces.append(text[:end])
        text = text[end:]
    return pieces


def _longest_prefix(text: str, limit: int, measure: Measure) -> int:
    """Characters, at least one, of a beginning within the limit; not between a character and its marks if avoidable."""
    low, high = 1, min(len(text), 2 * limit)
    while high < len(text) and measure(text[:high]) <= limit:
        low, high = high, min(len(text), 2 * high)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    whole = low
    while whole > max(1, low - 32) and whole < len(text) and _continues(text[whole - 1], text[whole]):
        whole -= 1
    return whole if whole > max(1, low - 32) else low


def _continues(before: str, character: str) -> bool:
    return before == _JOINERS[0] or character in _JOINERS or unicodedata.combining(character) != 0
