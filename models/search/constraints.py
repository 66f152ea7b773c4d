"""What a row may not, or must, produce next: bounds of length, suppressed and required tokens, repetition, prefixes.

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

from tandem.models.search.beam import Live
from tandem.models.search.hypotheses import Admitted
from tandem.models.search.repetition import may_repeat, repeating

FREE = -1


def constrain(
    places: Sequence[Admitted | None], live: Live, *, vocabulary_size: int, eos: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``banned`` (rows x bans, padded with the vocabulary's size, at least one column) and ``forced`` (rows)."""
    rows, ages = live.score_BK.shape[1], live.age_B.tolist()
    forced_B = [forced_token(one, age, eos) if one else FREE for one, age in zip(places, ages, strict=True)]
    free = [one if token == FREE else None for one, token in zip(places, forced_B, strict=True)]
    always = [_always_banned(one, age, eos) if one else () for one, age in zip(free, ages, strict=True)]
    repeating_B = may_repeat(free, live)
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


def _by_row(admitted: Admitted, live: Live, place: int, eos: int) -> list[tuple[Sequence[int], int]]:
    """Per row what is banned, and what is forced or FREE."""
    options, age = admitted.sentence.options, int(live.age_B[place])
    tokens_KL = live.tokens_BKL[place, :, :age]
    shared = _always_banned(admitted, age, eos)
    repeats = repeating(tokens_KL, admitted.sentence)
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
