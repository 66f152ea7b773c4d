"""What a row may not, or must, produce next: length bounds, suppressed tokens, repeated n-grams, prefixes.

They act through the graph's ``banned`` and ``forced`` inputs. What is forced is never banned, so that a prefix may
repeat itself and EOS ends every hypothesis at its maximum length.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.search.beam import Live
from models.search.hypotheses import Admitted

FREE = -1


def constrain(
    places: Sequence[Admitted | None], live: Live, *, vocabulary_size: int, eos: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``banned`` (rows x bans, padded with the vocabulary's size, at least one column) and ``forced`` (rows)."""
    rows, ages = live.score_BK.shape[1], live.age_B.tolist()
    forced_B = [forced_token(one, age, eos) if one else FREE for one, age in zip(places, ages, strict=True)]
    free = [one if token == FREE else None for one, token in zip(places, forced_B, strict=True)]
    always = [_always_banned(one, age, eos) if one else () for one, age in zip(free, ages, strict=True)]
    repeats = {place: _repeats(one, live, place) for place, one in enumerate(free) if one and _counts(one, ages[place])}
    forced = np.array(forced_B, np.int64).repeat(rows)
    if not repeats and len(set(always)) == 1:  # the same for all, as in nearly every step
        return _everywhere(always[0] or (vocabulary_size,), len(forced)), forced
    bans = [[*shared, *own] for place, shared in enumerate(always) for own in repeats.get(place, ((),) * rows)]
    banned = np.full((len(bans), max(1, *map(len, bans))), vocabulary_size, np.int64)
    for row, tokens in enumerate(bans):
        banned[row, : len(tokens)] = tokens
    return banned, forced


@lru_cache(maxsize=64)
def _everywhere(tokens: tuple[int, ...], rows: int) -> NDArray[np.int64]:
    """The same bans in every row: made once, as search goes on with the same for most of its steps. Never written."""
    return np.tile(np.array(tokens, np.int64), (rows, 1))


def forced_token(admitted: Admitted, age: int, eos: int) -> int:
    """The only token allowed after ``age`` tokens, or FREE."""
    prefix = admitted.sentence.options.prefix
    if age < len(prefix):
        return prefix[age]
    return eos if age >= admitted.longest else FREE


def _always_banned(admitted: Admitted, age: int, eos: int) -> tuple[int, ...]:
    suppressed = admitted.sentence.options.suppressed
    return (*suppressed, eos) if age < admitted.shortest else suppressed


def _counts(admitted: Admitted, age: int) -> bool:
    """Whether a repeated n-gram is possible by now."""
    return 0 < admitted.sentence.options.no_repeat_ngram_size <= age


def _repeats(admitted: Admitted, live: Live, place: int) -> list[list[int]]:
    tokens_KL = live.tokens_BKL[place, :, : int(live.age_B[place])]
    return repeating(tokens_KL, admitted.sentence.options.no_repeat_ngram_size)


def repeating(tokens_KL: NDArray[np.int64], size: int) -> list[list[int]]:
    """Per row, the tokens that would complete an n-gram of ``size`` that the row already holds."""
    length = tokens_KL.shape[1]
    starts = length - size + 1  # of the n-grams that are there
    same_KS = np.ones((len(tokens_KL), starts), np.bool_)
    for offset in range(size - 1):
        same_KS &= tokens_KL[:, offset : offset + starts] == tokens_KL[:, [length - size + 1 + offset]]
    return [
        sorted(set(tokens_L[size - 1 :][same_S].tolist())) for tokens_L, same_S in zip(tokens_KL, same_KS, strict=True)
    ]
