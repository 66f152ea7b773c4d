"""What would make a hypothesis repeat itself: n-grams that it holds, and rounds, stretches that follow themselves.

Both are looked for in all sentences at once, and seldom found: most steps need not look at any row by itself.

Shape suffixes: B sentences, K rows, L tokens, S starts of n-grams, P periods (lengths of a stretch).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.beam import Live
from tandem.models.search.hypotheses import Admitted, Sentence

LONGEST_PERIOD = 12
"""Tokens of the longest stretch whose rounds are counted."""


def may_repeat(places: Sequence[Admitted | None], live: Live) -> NDArray[np.bool_]:
    """Per sentence whether the next token could complete an n-gram that a row holds, or a round too many.

    Only those that the options forbid count; for rounds it may be true where the source has as many.
    """
    options = [one.sentence.options if one else None for one in places]
    kinds_B = [(one.no_repeat_ngram_size, one.max_rounds) if one else (0, 0) for one in options]
    found_B = np.zeros(len(places), np.bool_)
    for kind in set(kinds_B) - {(0, 0)}:
        at = np.flatnonzero([one == kind for one in kinds_B] & _echoes(live, *kind))
        if len(at):
            found_B[at] = _completes(live.tokens_BKL[at], live.age_B[at], *kind)
    return found_B


def repeating(tokens_KL: NDArray[np.int64], sentence: Sentence) -> list[list[int]]:
    """Per row of a sentence, the tokens that would repeat what its options forbid to repeat."""
    size, rounds = sentence.options.no_repeat_ngram_size, sentence.options.max_rounds
    found: list[set[int]] = [set() for _ in tokens_KL]
    if 0 < size <= tokens_KL.shape[1]:
        found = _completing_ngrams(tokens_KL, size)
    if rounds:
        further = [_completing_rounds(row, rounds) for row in tokens_KL]
        if any(further):
            texts = (source.tolist() for source in sentence.sources if source.ndim == 1)
            allowed = max([rounds, *map(most_rounds, texts)])
            further = [_completing_rounds(row, allowed) for row in tokens_KL]
        found = [one | other for one, other in zip(found, further, strict=True)]
    return [sorted(one) for one in found]


def most_rounds(tokens: Sequence[Any]) -> int:
    """How often a stretch of up to ``LONGEST_PERIOD`` tokens, or words, follows itself at most, itself counted."""
    most = min(len(tokens), 1)
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // 2) + 1):
        same = 0  # tokens that equal the one a period before, up to here
        for place in range(period, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - period] else 0
            most = max(most, same // period + 1)
    return most


def _echoes(live: Live, size: int, rounds: int) -> NDArray[np.bool_]:
    """Per sentence whether the last two tokens of a row stand earlier in it, or the last one just before itself.

    Without that nothing can be completed, but for the shortest n-grams and single rounds. Most steps end here.
    """
    sentences, oldest = len(live.age_B), int(live.age_B.max(initial=0))
    if 0 < size < 3 or rounds == 1:
        return np.ones(sentences, np.bool_)
    if oldest < 2:
        return np.zeros(sentences, np.bool_)
    last_BK1, before_BK1 = live.last_BK[:, :, None], live.tokens_BKL[np.arange(sentences), :, live.age_B - 2, None]
    same_BKS = live.tokens_BKL[:, :, 1 : oldest - 1] == last_BK1
    same_BKS &= live.tokens_BKL[:, :, : oldest - 2] == before_BK1
    same_BKS &= np.arange(2, oldest) < live.age_B[:, None, None]  # the last two are no echo of themselves
    found_B: NDArray[np.bool_] = same_BKS.any(axis=(1, 2)) | (last_BK1 == before_BK1).any(axis=(1, 2))
    return found_B


def _completes(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], size: int, rounds: int) -> NDArray[np.bool_]:
    """Per sentence whether the next token of a row could complete an n-gram that it holds, or a round too many."""
    found_B = _ends_again(tokens_BKL, age_B, size) if size else np.zeros(len(age_B), np.bool_)
    return found_B | _goes_round(tokens_BKL, age_B, rounds) if rounds else found_B


def _ends_again(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Per sentence whether the last ``size - 1`` tokens of a row stand earlier in it, followed by another."""
    starts = int(age_B.max(initial=0)) - size + 1  # of the n-grams of the longest row
    if starts < 1:
        return np.zeros(len(age_B), np.bool_)
    before_B1S = np.arange(starts) <= age_B[:, None, None] - size
    same_BKS = np.broadcast_to(before_B1S, (*tokens_BKL.shape[:2], starts)).copy()
    for offset in range(size - 1):
        place_B11 = np.maximum(age_B - size + 1 + offset, 0)[:, None, None]
        last_BK1 = np.take_along_axis(tokens_BKL, place_B11, axis=2)
        same_BKS &= tokens_BKL[:, :, offset : offset + starts] == last_BK1
    found_B: NDArray[np.bool_] = np.logical_or.reduce(same_BKS.reshape(len(age_B), -1), axis=1)
    return found_B


def _completing_ngrams(tokens_KL: NDArray[np.int64], size: int) -> list[set[int]]:
    """Per row, the tokens that would complete an n-gram of ``size`` that the row already holds."""
    length = tokens_KL.shape[1]
    starts = length - size + 1  # of the n-grams that are there
    same_KS = np.ones((len(tokens_KL), starts), np.bool_)
    for offset in range(size - 1):
        same_KS &= tokens_KL[:, offset : offset + starts] == tokens_KL[:, [length - size + 1 + offset]]
    return [set(tokens_L[size - 1 :][same_S].tolist()) for tokens_L, same_S in zip(tokens_KL, same_KS, strict=True)]


def _goes_round(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], rounds: int) -> NDArray[np.bool_]:
    """Per sentence whether the last token of a row equals those one period and, if so many count, two periods before.

    That is needed for a round after ``rounds``, and is not enough for it.
    """
    periods_P = np.arange(1, LONGEST_PERIOD + 1)
    long_BP = age_B[:, None] >= (rounds + 1) * periods_P - 1
    if not long_BP.any():
        return np.zeros(len(age_B), np.bool_)
    place_BL = np.maximum(age_B[:, None] - 1 - np.arange(2 * LONGEST_PERIOD + 1), 0)
    last_BKL = np.take_along_axis(tokens_BKL, place_BL[:, None, :], axis=2)  # from the last token backwards
    one_BKP, two_BKP = last_BKL[:, :, 1 : LONGEST_PERIOD + 1], last_BKL[:, :, 2::2]
    equal_BKP = (one_BKP == last_BKL[:, :, :1]) | (rounds * periods_P < 2)
    equal_BKP &= (two_BKP == one_BKP) | (rounds * periods_P < periods_P + 2)
    found_B: NDArray[np.bool_] = (equal_BKP & long_BP[:, None, :]).any(axis=(1, 2))
    return found_B


def _completing_rounds(tokens_L: NDArray[np.int64], rounds: int) -> set[int]:
    """The tokens that would complete a round after ``rounds`` of a stretch of up to ``LONGEST_PERIOD`` tokens."""
    found = set()
    for period in range(1, min(LONGEST_PERIOD, (len(tokens_L) + 1) // (rounds + 1)) + 1):
        last_L = tokens_L[len(tokens_L) - (rounds + 1) * period + 1 :]
        if (last_L[period:] == last_L[: len(last_L) - period]).all():
            found.add(int(tokens_L[-period]))
    return found
