"""What untidy text looks like: lower case, missing punctuation, typing errors.

The noise of training (``[data.noise]``) and the suite that shows what a bundle makes of such text
(:mod:`extras.bulk.conditions`) use the same functions. Placeholders and language tags (``⟨ph3⟩``) are left alone.
Written here and not taken from a library of augmentations: those bring models and word lists, and draw from global
random numbers, which a run that is to be resumed bit for bit cannot have.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

LEAST_LETTERS = 4  # of a word that gets an error; shorter ones become other words
_RESERVED = re.compile(r"(⟨[\w-]{1,20}⟩)")  # split by it, every second part of a text is reserved
_MARK = re.compile(r"[^\w\s]")
_WORD = re.compile(rf"{_RESERVED.pattern}|[^\W\d_]+")
_SPACES = re.compile(r" {2,}")
# Beside each key of the Latin keyboard, of the rows that all of its national forms share.
_BESIDE = {
    letter: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in ("wertuiop", "asdfghjkl", "xcvbnm")
    for place, letter in enumerate(row)
}


def lower_case(text: str) -> str:
    return "".join(part if number % 2 else part.lower() for number, part in enumerate(_RESERVED.split(text)))


def without_punctuation(text: str) -> str:
    """The text without punctuation marks, but for those between letters or digits ("don't", "3.5").

    A text of nothing else stays as it is.
    """
    parts = enumerate(_RESERVED.split(text))
    kept = [part if number % 2 else _MARK.sub(_unmarked, part) for number, part in parts]
    stripped = _SPACES.sub(" ", "".join(kept)).strip()
    return stripped or text


def with_typos(text: str, rate: float, rng: np.random.Generator) -> str:
    """The text with typing errors: in each chosen word two letters swapped, one left out, doubled or hit beside.

    First letters stay: people look at them.

    Args:
        text: any text; without a word of ``LEAST_LETTERS`` letters it stays as it is.
        rate: share of those words that get an error, at least one.
        rng: decides which words, and what happens to them.
    """
    words = [match for match in _WORD.finditer(text) if not match[1] and len(match[0]) >= LEAST_LETTERS]
    if not words:
        return text
    count = max(1, int(rng.binomial(len(words), rate)))
    parts, done = [], 0
    for index in sorted(rng.permutation(len(words))[:count].tolist()):
        match = words[index]
        parts += [text[done : match.start()], _misspelt(match[0], rng)]
        done = match.end()
    return "".join([*parts, text[done:]])


def _misspelt(word: str, rng: np.random.Generator) -> str:
    place = int(rng.integers(1, len(word)))
    kind = int(rng.integers(4))
    letter = word[place]
    if kind == 0:
        before = word[place - 1] if place > 1 else ""
        if before and before != letter:
            return word[: place - 1] + letter + before + word[place + 1 :]
        return word[:place] + word[place + 1 :]  # there is nothing to swap with
    if kind == 1:
        return word[:place] + word[place + 1 :]
    beside = _BESIDE.get(letter.lower(), "") if kind == 2 else ""
    if not beside:
        return word[: place + 1] + letter + word[place + 1 :]
    struck = beside[int(rng.integers(len(beside)))]
    return word[:place] + (struck.upper() if letter.isupper() else struck) + word[place + 1 :]


def _unmarked(match: re.Match[str]) -> str:
    text, place = match.string, match.start()
    inside = 0 < place < len(text) - 1 and text[place - 1].isalnum() and text[place + 1].isalnum()
    return match[0] if inside or unicodedata.category(match[0])[0] != "P" else ""
