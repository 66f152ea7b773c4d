"""What a row may not, or must, produce next: bounds of length, suppressed and required tokens, n-grams, prefixes.

They act through the graph's ``banned`` and ``forced`` inputs. What is forced is never banned, so that a prefix may
repeat itself and EOS ends every hypothesis at its maximum length. A required token is never banned while it is missing;
EOS is, until only as many tokens fit as are missing, and those are forced. Once it stands as often as it must, it is
banned itself.
"""

from __future__ import annotations

from collections import Counter
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
    repeating_B = _repeating(free, live)
    own = {
        place: _by_row(one, live, place, eos)
        for place, one in enumerate(free)
        if one and (one.sentence.options.required or repeating_B[place])
    }
    forced = np.array(forced_B, np.int64).repeat(rows)
    if not own and len(set(always)) == 1:  # the same for all, as in nearly every step
        return _everywhere(always[0] or (vocabulary_size,), len(forced)), forced
    bans: list[Sequence[int]] = []
    for place, shared in enumerate(always):
        for tokens, must in own.get(place, [(shared, FREE)] * rows):
            if must != FREE:
                forced[len(bans)] = must
            bans.append(tokens)
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


def _repeating(places: Sequence[Admitted | None], live: Live) -> NDArray[np.bool_]:
    """Per sentence whether one of its rows would complete an n-gram that it holds, where that is not allowed.

    Found for all sentences at once, and seldom so: most steps need not look at any row by itself.
    """
    sizes = np.array([one.sentence.options.no_repeat_ngram_size if one else 0 for one in places])
    found = np.zeros(len(places), np.bool_)
    for size in set(sizes.tolist()) - {0}:
        found |= (sizes == size) & _ends_again(live.tokens_BKL, live.age_B, size)
    return found


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


def _by_row(admitted: Admitted, live: Live, place: int, eos: int) -> list[tuple[Sequence[int], int]]:
    """Per row what is banned, and what is forced or FREE."""
    options, age = admitted.sentence.options, int(live.age_B[place])
    tokens_KL = live.tokens_BKL[place, :, :age]
    shared = _always_banned(admitted, age, eos)
    size = options.no_repeat_ngram_size
    repeats = repeating(tokens_KL, size) if 0 < size <= age else [[]] * len(tokens_KL)
    if not options.required:
        return [((*shared, *own), FREE) for own in repeats]
    return [
        _owing((*shared, *own), missing(options.required, held), options.required, (admitted.longest - age, eos))
        for own, held in zip(repeats, tokens_KL.tolist(), strict=True)
    ]


def _owing(
    banned: Sequence[int], owed: Sequence[int], required: Sequence[int], end: tuple[int, int]
) -> tuple[Sequence[int], int]:
    """What is banned and forced in a row that still owes tokens; ``end``: how many fit, and EOS."""
    room, eos = end
    if owed and room <= len(owed):
        return (), owed[0]
    done = set(required).difference(owed)
    return (*(token for token in banned if token not in owed), *done, *([eos] if owed else ())), FREE


def missing(required: Sequence[int], held: Sequence[int]) -> list[int]:
    """The required tokens that are not held yet, each as often as it is missing, in the order in which they stand."""
    left = Counter(held)
    owed = []
    for token in required:
        if left[token]:
            left[token] -= 1
        else:
            owed.append(token)
    return owed


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
