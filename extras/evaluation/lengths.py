"""Test sets in classes of sentence length."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.models.translation.translator import Column, encode_columns
from tandem.models.vocabulary import Vocabulary

EDGES = (10, 20, 30, 40, 50)
"""The last length of each class but the open one."""


@dataclass(frozen=True, slots=True)
class LengthClass:
    """Sentences of like length.

    Attributes:
        shortest: source tokens of the shortest that belong here.
        longest: of the longest; None without a bound.
        rows: which sentences these are.
    """

    shortest: int
    longest: int | None
    rows: tuple[int, ...]

    @property
    def shown(self) -> str:
        """Its bounds, such as 11-20 or 51+."""
        return f"{self.shortest}-{self.longest}" if self.longest else f"{self.shortest}+"


def length_classes(lengths: Sequence[int]) -> list[LengthClass]:
    """Every class that has sentences, shortest first; sentences of no token belong to the first class.

    Args:
        lengths: source tokens of each sentence, without EOS.
    """
    found = []
    for low, high in zip((0, *EDGES), (*EDGES, None), strict=True):
        above = low if low else -1
        rows = tuple(i for i, length in enumerate(lengths) if length > above and (high is None or length <= high))
        if rows:
            found.append(LengthClass(low + 1, high, rows))
    return found


def source_lengths(vocabularies: Sequence[Vocabulary | None], lines: Sequence[Column]) -> list[int]:
    """Tokens of each sentence's longest text, without EOS; rows of its longest matrix where there is no text."""
    columns = encode_columns(vocabularies, lines, sys.maxsize)
    texts = [column for column, vocabulary in zip(columns, vocabularies, strict=True) if vocabulary]
    ends = 1 if texts else 0
    return [max(map(len, row)) - ends for row in zip(*(texts or columns), strict=True)]
