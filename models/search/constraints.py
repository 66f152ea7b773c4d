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
from tandem.models.search.repetition import Bans, repeating

FREE = -1


def constrain(
    places: Sequence[Admitted | None], live: Live, *, vocabulary_size: int, eos: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``banned`` (rows x bans, padded with the vocabulary's size, at least one column) and ``forced`` (rows)."""
    rows, ages = live.score_BK.shape[1], live.age_B.tolist()
    forced_B = [forced_token(one, age, eos) if one else FREE for one, age in zip(places, ages, strict=True)]
    free = [one if token == FREE else None for one, token in zip(places, forced_B, strict=True)]
    always = [_always_banned(one, age, eos) if one else () for one, age in zip(free, ages, strict=True)]
    repeats = repeating(free, live)
    forced_R = np.array(forced_B, np.int64).repeat(rows)
    if len(set(always)) == 1:  # the same for all, as in nearly every step
        banned_RJ = _everywhere(always[0] or (vocabulary_size,), len(forced_R))
    else:
        banned_RJ = _rows_of(always, vocabulary_size).repeat(rows, axis=0)
    if len(repeats.token_N):
        further_RJ = _by_row(repeats, rows, len(forced_R), vocabulary_size)
        banned_RJ = np.concatenate([banned_RJ, further_RJ], axis=1)
    owing = [place for place, one in enumerate(free) if one and one.sentence.options.required]
    constraints = banned_RJ, forced_R
    return _required(places, live, owing, constraints, nothing=vocabulary_size, eos=eos) if owing else constraints


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


def _rows_of(lists: Sequence[Sequence[int]], nothing: int) -> NDArray[np.int64]:
    """Lists of tokens as the rows of a matrix of at least one column, ``nothing`` behind the last token of each."""
    matrix = np.full((len(lists), max(1, *map(len, lists))), nothing, np.int64)
    for row, tokens in zip(matrix, lists, strict=True):
        row[: len(tokens)] = tokens
    return matrix


def _by_row(bans: Bans, rows: int, total: int, nothing: int) -> NDArray[np.int64]:
    """Bans as the rows of a matrix, for all ``total`` rows, ``rows`` of each sentence; ``nothing`` elsewhere."""
    row_N = bans.sentence_N * rows + bans.row_N
    order_N = np.argsort(row_N, kind="stable")
    row_N = row_N[order_N]
    column_N = np.arange(len(row_N)) - np.searchsorted(row_N, row_N)
    matrix = np.full((total, int(column_N.max()) + 1), nothing, np.int64)
    matrix[row_N, column_N] = bans.token_N[order_N]
    return matrix


def _required(
    places: Sequence[Admitted | None],
    live: Live,
    owing: Sequence[int],
    constraints: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    nothing: int,
    eos: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``banned`` and ``forced`` where the sentences of some places, ``owing``, must have tokens; no others change."""
    (banned_RJ, forced_R), rows = constraints, live.score_BK.shape[1]
    own: dict[int, list[int]] = {}
    for place in owing:
        one, age = places[place], int(live.age_B[place])
        assert one is not None
        required = one.sentence.options.required
        for row, held in enumerate(live.tokens_BKL[place, :, :age].tolist(), start=place * rows):
            bans = banned_RJ[row][banned_RJ[row] != nothing].tolist()
            own[row], forced_R[row] = _owing(bans, missing(required, held), required, (one.longest - age, eos))
    own_RJ = _rows_of([*own.values()], nothing)
    further = max(0, own_RJ.shape[1] - banned_RJ.shape[1])
    banned_RJ = np.pad(banned_RJ, ((0, 0), (0, further)), constant_values=nothing)  # a copy, even of what is kept
    banned_RJ[[*own]] = nothing
    banned_RJ[[*own], : own_RJ.shape[1]] = own_RJ
    return banned_RJ, forced_R


def _owing(
    banned: list[int], owed: Sequence[int], required: Sequence[int], end: tuple[int, int]
) -> tuple[list[int], int]:
    """What is banned and forced in a row that still owes tokens; ``end``: how many fit, and EOS."""
    room, eos = end
    if owed and room <= len(owed):
        return [], owed[0]
    done = set(required).difference(owed)
    return [*(token for token in banned if token not in owed), *done, *([eos] if owed else ())], FREE


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
