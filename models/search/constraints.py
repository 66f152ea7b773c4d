"""What a row may not, or must, produce next: length bounds, suppressed tokens, repeated n-grams, prefixes.

They act through the graph's ``banned`` and ``forced`` inputs. What is forced is never banned, so that a prefix may
repeat itself and EOS ends every hypothesis at its maximum length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.search.beam import Live
from models.search.hypotheses import Admitted

FREE = -1


def constrain(
    places: Sequence[Admitted | None], live: Live, *, vocabulary_size: int, eos: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``banned`` (rows x bans, padded with the vocabulary's size, at least one column) and ``forced`` (rows)."""
    rows = live.score_BK.shape[1]
    forced = np.full(len(places) * rows, FREE, np.int64)
    bans: list[list[int]] = [[] for _ in range(len(places) * rows)]
    for place, admitted in enumerate(places):
        if admitted is None:
            continue
        age = int(live.age_B[place])
        mine = slice(place * rows, (place + 1) * rows)
        forced[mine] = only = forced_token(admitted, age, eos)
        if only == FREE:
            bans[mine] = _banned_tokens(admitted, live, place, eos)
    banned = np.full((len(bans), max(1, *map(len, bans))), vocabulary_size, np.int64)
    for row, tokens in enumerate(bans):
        banned[row, : len(tokens)] = tokens
    return banned, forced


def forced_token(admitted: Admitted, age: int, eos: int) -> int:
    """The only token allowed after ``age`` tokens, or FREE."""
    prefix = admitted.sentence.options.prefix
    if age < len(prefix):
        return prefix[age]
    return eos if age >= admitted.longest else FREE


def _banned_tokens(admitted: Admitted, live: Live, place: int, eos: int) -> list[list[int]]:
    options, age = admitted.sentence.options, int(live.age_B[place])
    always = [*options.suppressed, *([eos] if age < admitted.shortest else [])]
    tokens_KL = live.tokens_BKL[place, :, :age]
    if options.no_repeat_ngram_size == 0 or age < options.no_repeat_ngram_size:
        return [always] * len(tokens_KL)
    return [[*always, *repeats] for repeats in repeating(tokens_KL, options.no_repeat_ngram_size)]


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
