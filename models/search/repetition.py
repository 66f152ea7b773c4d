"""What would make a hypothesis repeat itself: n-grams that it holds, and rounds, stretches that follow themselves.

Both are looked for in all rows of all sentences at once, and seldom found.

Shape suffixes: B sentences, K rows, L tokens, S starts of n-grams, P periods (lengths of a stretch), N bans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.beam import Live
from tandem.models.search.hypotheses import Admitted
from tandem.models.search.rounds import LONGEST_PERIOD


class Bans(NamedTuple):
    """Tokens that rows may not go on with, one each: its sentence, the row among the sentence's, and the token."""

    sentence_N: NDArray[np.int64]
    row_N: NDArray[np.int64]
    token_N: NDArray[np.int64]


def repeating(places: Sequence[Admitted | None], live: Live) -> Bans:
    """The tokens that would complete an n-gram that the row holds, or a round too many, as the options of each forbid.

    A token may be there twice. Rounds are bounded by :func:`models.search.rounds.allowed_rounds`.
    """
    kinds_B = [(one.sentence.options.no_repeat_ngram_size, one.rounds) if one else (0, 0) for one in places]
    found = [Bans(*np.zeros((3, 0), np.int64))]
    for kind in set(kinds_B) - {(0, 0)}:
        echo_B = _echoes(live, *kind)
        at = np.flatnonzero([one == kind for one in kinds_B] & echo_B) if echo_B.any() else ()
        if len(at):
            for bans in _completing(live.tokens_BKL[at], live.age_B[at], *kind):
                found.append(bans._replace(sentence_N=at[bans.sentence_N]))
    return found[0] if len(found) == 1 else Bans(*map(np.concatenate, zip(*found, strict=True)))


def _echoes(live: Live, size: int, rounds: int) -> NDArray[np.bool_]:
    """Per sentence whether the last two tokens of a row stand earlier in it, or the last one just before itself.

    Without that nothing can be completed, but for the shortest n-grams and single rounds. Most steps end here.
    """
    sentences, oldest = len(live.age_B), int(live.age_B.max(initial=0))
    if 0 < size < 3 or rounds == 1:
        return np.ones(sentences, np.bool_)
    if oldest < 2:
        return np.zeros(sentences, np.bool_)
    last_BK1, before_BK1, even = live.last_BK[:, :, None], live.tokens_BKL[:, :, oldest - 2, None], live.even
    if not even:
        before_BK1 = live.tokens_BKL[np.arange(sentences), :, live.age_B - 2, None]
    same_BKS = live.tokens_BKL[:, :, 1 : oldest - 1] == last_BK1
    same_BKS &= live.tokens_BKL[:, :, : oldest - 2] == before_BK1
    if not even:
        same_BKS &= np.arange(2, oldest) < live.age_B[:, None, None]  # the last two are no echo of themselves
    found_B: NDArray[np.bool_] = same_BKS.any(axis=(1, 2)) | (last_BK1 == before_BK1).any(axis=(1, 2))
    return found_B


def _completing(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], size: int, rounds: int) -> Iterator[Bans]:
    """The tokens that would complete an n-gram or a round too many; ``size`` and ``rounds`` are 0 where all may."""
    longest_period = min(LONGEST_PERIOD, (int(age_B.max(initial=0)) + 1) // (rounds + 1)) if rounds else 0
    if size and age_B.max(initial=0) >= size:
        yield _completing_ngrams(tokens_BKL, age_B, size)
    if longest_period:
        yield _completing_rounds(tokens_BKL, age_B, rounds, longest_period)


def _completing_ngrams(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], size: int) -> Bans:
    """What follows where the last ``size - 1`` tokens of a row stand earlier in it."""
    starts = int(age_B.max(initial=0)) - size + 1  # of the n-grams of the longest row
    before_B1S = np.arange(starts) <= age_B[:, None, None] - size
    same_BKS = np.broadcast_to(before_B1S, (*tokens_BKL.shape[:2], starts)).copy()
    for offset in range(size - 1):
        place_B11 = np.maximum(age_B - size + 1 + offset, 0)[:, None, None]
        last_BK1 = np.take_along_axis(tokens_BKL, place_B11, axis=2)
        same_BKS &= tokens_BKL[:, :, offset : offset + starts] == last_BK1
    sentence_N, row_N, start_N = same_BKS.nonzero()
    return Bans(sentence_N, row_N, tokens_BKL[sentence_N, row_N, start_N + size - 1])


def _completing_rounds(
    tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64], rounds: int, longest_period: int
) -> Bans:
    """What follows where a row ends in ``rounds`` of a stretch and all of one more but a token.

    Rows whose last token does not stand one period before, and two where so many count, are out at once: they are
    nearly all.
    """
    periods_P = np.arange(1, longest_period + 1)
    place_BL = np.maximum(age_B[:, None] - 1 - np.arange(max(rounds + 1, 3) * longest_period), 0)
    last_BKL = np.take_along_axis(tokens_BKL, place_BL[:, None, :], axis=2)  # from the last token backwards
    one_BKP, two_BKP = last_BKL[:, :, 1 : longest_period + 1], last_BKL[:, :, 2 : 2 * longest_period + 1 : 2]
    equal_BKP = (one_BKP == last_BKL[:, :, :1]) | (rounds * periods_P < 2)
    equal_BKP &= (two_BKP == one_BKP) | (rounds * periods_P < periods_P + 2)
    equal_BKP &= (age_B[:, None] >= (rounds + 1) * periods_P - 1)[:, None, :]
    sentence_N, row_N, place_N = equal_BKP.nonzero()
    last_NL, period_N1 = last_BKL[sentence_N, row_N], place_N[:, None] + 1
    compared_I = np.arange(rounds * longest_period - 1)
    equal_NI = last_NL[:, : len(compared_I)] == np.take_along_axis(last_NL, compared_I + period_N1, axis=1)
    whole_N = (equal_NI | (compared_I >= rounds * period_N1 - 1)).all(axis=1)
    return Bans(sentence_N[whole_N], row_N[whole_N], last_NL[whole_N, place_N[whole_N]])
