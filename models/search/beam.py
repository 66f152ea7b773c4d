"""Beam search as small functions around a frozen record of the live hypotheses.

    candidates -> retire (those ending with EOS) -> extend (the first K others live on)

Shape suffixes: B places for sentences, K live rows of a sentence (1 before the first step), R = B x K rows,
C candidates, L tokens. Dead rows have the score -inf; places without a sentence have only dead rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.graphs import Array
from tandem.models.search.hypotheses import Ended

_GROWTH = 32  # tokens by which the room for hypotheses grows


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """The live hypotheses of every sentence of a batch.

    Attributes:
        tokens_BKL, totals_BKL: tokens so far, and the accumulated score after each; only the first ``age`` count.
        score_BK: accumulated log-probability, float32; -inf for dead rows.
        last_BK: the next input token of each row.
        parent_BK: the row of the previous step that each row continues, counted over the whole batch.
        age_B: tokens so far, which is also the position of the next input.
    """

    tokens_BKL: NDArray[np.int64]
    totals_BKL: NDArray[np.float32]
    score_BK: NDArray[np.float32]
    last_BK: NDArray[np.int64]
    parent_BK: NDArray[np.int64]
    age_B: NDArray[np.int64]

    @property
    def even(self) -> bool:
        """Whether all hypotheses are equally long, as those of one sentence are."""
        return len(set(self.age_B.tolist())) == 1

    @property
    def alive_BK(self) -> NDArray[np.bool_]:
        return np.isfinite(self.score_BK)

    def select(self, places: Sequence[int]) -> Live:
        """The hypotheses of the chosen places, in that order."""
        chosen = list(places)
        return Live(
            self.tokens_BKL[chosen],
            self.totals_BKL[chosen],
            self.score_BK[chosen],
            self.last_BK[chosen],
            self.parent_BK[chosen],
            self.age_B[chosen],
        )

    def vacate(self, places: Sequence[int]) -> Live:
        """The same with all rows of those places dead."""
        score_BK = self.score_BK.copy()
        score_BK[list(places)] = -np.inf
        return replace(self, score_BK=score_BK)

    def put(self, places: Sequence[int], other: Live) -> Live:
        """The same with the hypotheses of ``other``, one per place, written over those places."""
        order = np.arange(len(self.age_B) + len(other.age_B))
        order[list(places)] = len(self.age_B) + np.arange(len(places))
        return self.join(other).select(order[: len(self.age_B)].tolist())

    def join(self, other: Live) -> Live:
        """These places, then those of ``other``."""
        room = max(self.tokens_BKL.shape[2], other.tokens_BKL.shape[2])
        return Live(
            np.concatenate([_widen(self.tokens_BKL, room), _widen(other.tokens_BKL, room)]),
            np.concatenate([_widen(self.totals_BKL, room), _widen(other.totals_BKL, room)]),
            np.concatenate([self.score_BK, other.score_BK]),
            np.concatenate([self.last_BK, other.last_BK]),
            np.concatenate([self.parent_BK, other.parent_BK]),
            np.concatenate([self.age_B, other.age_B]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Continuations of each sentence, best first; at least K of them, impossible ones with the score -inf."""

    scores_BC: NDArray[np.float32]
    tokens_BC: NDArray[np.int64]
    parents_BC: NDArray[np.int64]


def begin(sentences: int, bos: int) -> Live:
    """One live row per sentence, about to read BOS."""
    return Live(
        np.zeros((sentences, 1, _GROWTH), np.int64),
        np.zeros((sentences, 1, _GROWTH), np.float32),
        np.zeros((sentences, 1), np.float32),
        np.full((sentences, 1), bos, np.int64),
        np.arange(sentences, dtype=np.int64)[:, None],
        np.zeros(sentences, np.int64),
    )


def candidates(scores_BC: Array, tokens_BC: Array, parents_BC: Array, *, beam_size: int, eos: int) -> Candidates:
    """The step graph's candidates in their binding order: by score, then parent, then token.

    Top-k kernels differ in how they order ties; this makes the order the same everywhere. ``parents_BC`` counts
    within the sentence.
    """
    if not (scores_BC[:, 1:] < scores_BC[:, :-1]).all():  # sorted without ties is what nearly every step returns
        order_BC = np.lexsort((tokens_BC, parents_BC, -scores_BC), axis=-1)
        place_B1 = np.arange(len(order_BC))[:, None]
        scores_BC, tokens_BC, parents_BC = (x[place_B1, order_BC] for x in (scores_BC, tokens_BC, parents_BC))
    if scores_BC.shape[1] < beam_size:  # a tiny vocabulary has fewer than K
        missing = ((0, 0), (0, beam_size - scores_BC.shape[1]))
        scores_BC = np.pad(scores_BC, missing, constant_values=-np.inf)
        tokens_BC, parents_BC = np.pad(tokens_BC, missing, constant_values=eos), np.pad(parents_BC, missing)
    return Candidates(
        scores_BC.astype(np.float32, copy=False),
        tokens_BC.astype(np.int64, copy=False),
        parents_BC.astype(np.int64, copy=False),
    )


def retire(live: Live, best: Candidates, *, beam_size: int, eos: int) -> dict[int, tuple[Ended, ...]]:
    """The hypotheses that end now, by place: EOS counts only among the first K candidates."""
    ends_BK = best.tokens_BC[:, :beam_size] == eos
    ended: dict[int, tuple[Ended, ...]] = {}
    if not ends_BK.any():
        return ended
    ends_BK &= np.isfinite(best.scores_BC[:, :beam_size])
    for place, rank in zip(*(axis.tolist() for axis in ends_BK.nonzero()), strict=True):
        row, total = best.parents_BC[place, rank], float(best.scores_BC[place, rank])
        ended[place] = (*ended.get(place, ()), snapshot(live, place, int(row), total))
    return ended


def snapshot(live: Live, place: int, row: int, end_total: float | None) -> Ended:
    """One live hypothesis as it stands, with the total after EOS where it ends with EOS."""
    age = int(live.age_B[place])
    tokens = tuple(live.tokens_BKL[place, row, :age].tolist())
    totals = tuple(live.totals_BKL[place, row, :age].tolist())
    return Ended(tokens, totals, False) if end_total is None else Ended(tokens, (*totals, end_total))


def extend(live: Live, best: Candidates, *, beam_size: int, eos: int) -> Live:
    """The first K candidates that do not end live on; where there are fewer, the remaining rows are dead."""
    sentences, rows = live.score_BK.shape
    place_B1 = np.arange(sentences)[:, None]
    parents_BK, last_BK = best.parents_BC[:, :beam_size].copy(), best.tokens_BC[:, :beam_size].copy()
    score_BK = best.scores_BC[:, :beam_size].copy()
    if (last_BK == eos).any() or not np.isfinite(score_BK).all():
        goes_on_BC = (best.tokens_BC != eos) & np.isfinite(best.scores_BC)
        order_BK = np.argsort(~goes_on_BC, axis=1, kind="stable")[:, :beam_size]
        alive_BK = goes_on_BC[place_B1, order_BK]
        # A dead row still runs through the graph: it needs a valid parent, and the token that nothing follows.
        parents_BK = np.where(alive_BK, best.parents_BC[place_B1, order_BK], 0)
        last_BK = np.where(alive_BK, best.tokens_BC[place_B1, order_BK], eos)
        score_BK = np.where(alive_BK, best.scores_BC[place_B1, order_BK], np.float32(-np.inf))
    room = live.tokens_BKL.shape[2]
    room += _GROWTH if live.age_B.max() >= room else 0
    parents_BK += place_B1 * rows  # over the whole batch
    tokens_BKL, totals_BKL = (
        _widen(array, room).reshape(-1, room).take(parents_BK, axis=0) for array in (live.tokens_BKL, live.totals_BKL)
    )
    here: tuple[Any, ...] = (slice(None), slice(None), live.age_B[0])
    if not live.even:
        here = place_B1, np.arange(beam_size), live.age_B[:, None]
    tokens_BKL[here], totals_BKL[here] = last_BK, score_BK
    return Live(tokens_BKL, totals_BKL, score_BK, last_BK, parents_BK, live.age_B + 1)


def _widen(array_BKL: Array, room: int) -> Array:
    missing = room - array_BKL.shape[2]
    return np.pad(array_BKL, ((0, 0), (0, 0), (0, missing))) if missing else array_BKL
