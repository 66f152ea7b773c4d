"""What no model can read: characters that its vocabulary has no piece for, and the words and signs that they are in.

Emoji came back broken, a word in another script as something else, and 18,000 Chinese characters, sent as German, took
a worker 41 s. They come back as they are: a word whole, with the signs that belong to it (``C++``, ``AT&T``, ``50%``,
``[name]``), and other signs alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from tandem.models.text import as_read
from tandem.models.vocabulary import Vocabulary
from tandem.service.text.masking import Hidden, HiddenPlace, Masked
from tandem.service.text.protect import has_unspaced
from tandem.service.text.spans import Span, atoms

_CACHED = 1 << 16  # characters; all of Unicode has some 160,000, most texts under a hundred
# What makes one emoji of several signs: with the sign before it, it is one thing.
_JOINED = frozenset("\u200d\ufe0e\ufe0f\u20e3") | set(map(chr, (*range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080))))
_PRIVATE = "\ue000"  # no vocabulary has a piece for it
# Marks that no text is without, and that each language writes in its own way: hidden they would stay as they are. Where
# they are spelt in bytes, models have read many.
_MARKS = frozenset(".,:;!?()/'\"-‐‑–—’‘‚‛“”„‟«»‹›…")
_RARE_AT_HOME = frozenset("ëïÿ")  # of a few French words ("Noël", "maïs"), which other languages write without
_WHOLE = re.compile(
    r"""[0-9\#*]\ufe0f?\u20e3                    # keycaps
      | (?<!\S)[!-/:-@\[-`{-~]{2,}(?!\S)         # <-, :=
      | \[{1,2}[\w.-]+\]{1,2}
      | [^\W_]+(?:[&+@=_^~$%\\\#'’-]+[^\W_]+)+   # AT&T, x_y
      | [@\#$&~^=+%\\]+[^\W_]+
      | [^\W_]+[+\#%$^~°]+(?!\w)                 # C++, 50%""",
    re.VERBOSE,
)


class Alphabet:
    """The characters that a vocabulary has pieces for: it is asked for each once, when a text has it.

    Attributes:
        spells: whether it spells others in bytes; else they are lost, and nothing is left of them.
        rare: those that it has for themselves alone, in no piece with another character: models have hardly read them,
            and write something else.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.spells = vocabulary.unk not in vocabulary.encode(_PRIVATE)
        self.rare = _rare(vocabulary)
        self._known = lru_cache(_CACHED)(partial(_is_read, vocabulary))

    def __contains__(self, character: str) -> bool:
        return self._known(character)


def _is_read(vocabulary: Vocabulary, character: str) -> bool:
    """Whether it is in a piece, is read as something that is or not at all, like a soft hyphen, or is a mark."""
    read = as_read(character)
    return not read or read in _MARKS or vocabulary.reads(read)


def _rare(vocabulary: Vocabulary) -> frozenset[str]:
    """Neither of ASCII nor marks, nor letters whose other case is in a piece, nor those of ``_RARE_AT_HOME``."""
    pieces = [vocabulary.piece_of(token) for token in range(vocabulary.size)]
    together = {character for piece in pieces if len(piece) > 1 for character in piece}
    alone = {piece for piece in pieces if len(piece) == 1} - together - _MARKS
    return frozenset(
        one
        for one in alone
        if not one.isascii() and together.isdisjoint((one.lower(), one.upper())) and one.lower() not in _RARE_AT_HOME
    )


def find_foreign(sentence: Masked, alphabet: Alphabet, *, rare: bool = False) -> list[HiddenPlace]:
    """Signs and whole words with characters that a model does not know, in order; the reply does not speak of them.

    Args:
        sentence: normalised.
        alphabet: of the model that reads it.
        rare: whether what the model has hardly read is no better than unknown.
    """
    text, whole = sentence.text, rare or not alphabet.spells
    hardly = alphabet.rare if rare else frozenset()
    unknown = {one for one in set(text) if one != sentence.mark and (one not in alphabet or one in hardly)}
    parted = text.replace(sentence.mark, " ") if sentence.mark else text  # it is no part of an emoji
    return [(span, Hidden.kept(text[slice(*span)], asked=False)) for span in _joined(_found(parted, unknown, whole))]


def _found(text: str, unknown: set[str], whole: bool) -> Iterator[Span]:
    """``whole``: whether a word with one unknown letter is lost."""
    if not unknown:
        return
    done = 0
    for match in _WHOLE.finditer(text):
        if not unknown.isdisjoint(match[0]):
            yield from _alone(text, unknown, whole, done, match.start())
            yield Span(*match.span())
            done = match.end()
    yield from _alone(text, unknown, whole, done, len(text))


def _alone(text: str, unknown: set[str], whole: bool, start: int, end: int) -> Iterator[Span]:
    """Unknown signs, and words without a known letter, or with an unknown one that no bytes spell."""
    for match in atoms().finditer(text, start, end):
        if unknown.isdisjoint(match[0]):
            continue
        first, behind = match.span()
        if match[0][0].isalnum() and not has_unspaced(match[0]):
            if whole or unknown.issuperset(match[0]):
                yield Span(first, behind)
            continue
        for place in range(first, behind):
            if text[place] in unknown:
                emoji = text[place] in _JOINED and place > start and not text[place - 1].isspace()
                yield Span(place - emoji, place + 1)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Those without anything between them as one."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start <= joined[-1].end:
            span = Span(joined.pop().start, span.end)
        joined.append(span)
    return joined
