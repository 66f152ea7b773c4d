"""Byte-level byte pair encoding (Radford et al. 2019, section 2.2): the vocabularies of BART and its kin.

Text is split into words, numbers and marks, each with the space before it; the bytes of each are merged in pairs, the
pair that was learnt first first (Sennrich, Haddow and Birch 2016, algorithm 1). No text is unknown. In lists of pieces
each byte is written as one printable character. Own code, because the package that the publishers use (tokenizers) is
larger than all else that a server needs of a vocabulary.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, Self

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.listed import ListedVocabulary

_CACHED = 20_000  # words; most text is made of far fewer
_LAST = 0x33480  # beyond it Unicode has neither letters nor numbers
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


def _characters() -> list[str]:
    """The character that stands for each byte: itself where it is printable, else one from U+0100 on, in order."""
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in _PRINTABLE else chr(next(others)) for byte in range(256)]


_OF_BYTE = _characters()
_TO_BYTE = {character: byte for byte, character in enumerate(_OF_BYTE)}


class BytePairVocabulary(ListedVocabulary):
    """Byte pairs under ids of a list.

    Args:
        merges: pairs of pieces with a space between, in the order in which they were learnt.
        pieces, named: as for ``ListedVocabulary``.

    Raises:
        VocabularyError: a merge that is no pair, or as for ``ListedVocabulary``.
    """

    cutter = ("merges", list)

    def __init__(self, merges: Sequence[str], pieces: Sequence[str], **named: Any) -> None:
        super().__init__(pieces, **named)
        wrong = [merge for merge in merges if len(merge.split(" ")) != 2]
        if wrong:
            raise VocabularyError(f"merges must be two pieces with a space between, but one is {wrong[0]!r}")
        self._merges = list(merges)
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self._merged = lru_cache(_CACHED)(self._merge)
        self._shown = {piece: _shown(piece) for piece in self._pieces}
        self._by_shown = {shown: self._ids[piece] for piece, shown in self._shown.items()}

    @classmethod
    def _made(cls, cutter: Any, pieces: Sequence[str], **named: Any) -> Self:
        if not all(isinstance(merge, str) for merge in cutter):
            raise ValueError("its merges must be strings")
        return cls(cutter, pieces, **named)

    def _cutter(self) -> list[str]:
        return self._merges

    def _cut(self, text: str) -> Sequence[str]:
        return [piece for word in _words().findall(text) for piece in self._merged(word)]

    def _merge(self, word: str) -> tuple[str, ...]:
        pieces = [_OF_BYTE[byte] for byte in word.encode()]
        while len(pieces) > 1:
            first = min(pairwise(pieces), key=lambda pair: self._ranks.get(pair, sys.maxsize))
            if first not in self._ranks:
                break
            pieces = list(_joined(pieces, first))
        return tuple(pieces)

    def _join(self, pieces: Sequence[str]) -> str:
        return bytes(_TO_BYTE[character] for character in "".join(pieces)).decode(errors="replace")

    def piece_of(self, token: int) -> str:
        """Piece of an id, with U+2581 for a space and ``<0x41>`` for a byte that is no character by itself."""
        return self._shown[super().piece_of(token)]

    def id_of(self, piece: str) -> int:
        return self._by_shown[piece] if piece in self._by_shown else super().id_of(piece)


def _joined(pieces: Sequence[str], pair: tuple[str, str]) -> Iterator[str]:
    """The pieces with every such pair as one, from the left."""
    place = 0
    while place < len(pieces):
        found = (pieces[place], *pieces[place + 1 : place + 2]) == pair
        yield pieces[place] + pieces[place + 1] if found else pieces[place]
        place += 2 if found else 1


def _shown(piece: str) -> str:
    if not all(character in _TO_BYTE for character in piece):
        return piece
    raw = bytes(_TO_BYTE[character] for character in piece)
    try:
        return raw.decode().replace(" ", "\u2581")
    except UnicodeDecodeError:
        return f"<0x{raw[0]:02X}>" if len(raw) == 1 else piece


@lru_cache(1)
def _words() -> re.Pattern[str]:
    """Splits text as GPT-2 does: English clitics, letters, numbers, other marks, each with a space before, and spaces.

    The standard library's expressions know no Unicode categories, so the letters and numbers are written out.
    """
    letter, number = _class("L"), _class("N")
    parts = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", rf" ?[{letter}]+", rf" ?[{number}]+"]
    return re.compile("|".join([*parts, rf" ?[^\s{letter}{number}]+", r"\s+(?!\S)", r"\s+"]))


def _class(category: str) -> str:
    """The characters of a category, as ranges of a character class."""
    of_category = (unicodedata.category(chr(code))[0] == category for code in range(_LAST))
    ranges = []
    for inside, run in groupby(enumerate(of_category), key=lambda one: one[1]):
        if inside:
            codes = [code for code, _ in run]
            ranges.append(f"{re.escape(chr(codes[0]))}-{re.escape(chr(codes[-1]))}")
    return "".join(ranges)
