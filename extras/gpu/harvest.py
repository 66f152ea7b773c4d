"""From back-pointers to hypotheses, on the host; see :mod:`extras.gpu.unranked` for what becomes of them.

Shape suffixes: N sentences, K rows, L positions, E finished hypotheses of a sentence, H hypotheses of all sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.hypotheses import Ended


@dataclass(frozen=True, slots=True, eq=False)
class Harvest:
    """The buffers of sentences that stopped; see :class:`extras.gpu.slots.Slots`."""

    tokens_LNK: NDArray[np.int64]
    parents_LNK: NDArray[np.int64]
    totals_LNK: NDArray[np.float32]
    age_N: NDArray[np.int64]
    ended_N: NDArray[np.int64]
    ended_total_NE: NDArray[np.float32]
    ended_age_NE: NDArray[np.int64]
    ended_row_NE: NDArray[np.int64]

    def hypotheses(self) -> list[tuple[Ended, ...]]:
        """Per sentence what ended, in that order; where nothing did, what lived before the last step, unfinished."""
        place_H, age_H, row_H, after_H = self._roots()
        tokens_HL, totals_HL = self._trace(place_H, age_H, row_H)
        found: list[list[Ended]] = [[] for _ in self.age_N]
        for at, (place, age, after) in enumerate(zip(place_H.tolist(), age_H.tolist(), after_H, strict=True)):
            tokens, totals = tuple(tokens_HL[at, :age].tolist()), tuple(totals_HL[at, :age].tolist())
            found[place].append(Ended(tokens, totals, False) if after is None else Ended(tokens, (*totals, after)))
        return [tuple(one) for one in found]

    def _roots(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[float | None]]:
        """Of every hypothesis its sentence, its tokens, its row after them, and its score after EOS if it ended."""
        roots: list[tuple[int, int, int]] = []
        after: list[float | None] = []
        for place, count in enumerate(self.ended_N.tolist()):
            for number in range(count):
                roots.append((place, int(self.ended_age_NE[place, number]), int(self.ended_row_NE[place, number])))
                after.append(float(self.ended_total_NE[place, number]))
            if not count:
                age = int(self.age_N[place]) - 1
                alive = np.flatnonzero(np.isfinite(self.totals_LNK[age - 1, place])).tolist() if age else [0]
                roots += [(place, age, row) for row in alive]
                after += [None] * len(alive)
        place_H, age_H, row_H = np.array(roots, np.int64).reshape(-1, 3).T
        return place_H, age_H, row_H, after

    def _trace(
        self, place_H: NDArray[np.int64], age_H: NDArray[np.int64], row_H: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Tokens and scores H x L of hypotheses given by their last row; only the first ``age_H`` count."""
        longest = int(age_H.max(initial=0))
        tokens_HL = np.zeros((len(age_H), longest), np.int64)
        totals_HL = np.zeros((len(age_H), longest), np.float32)
        for position in reversed(range(longest)):
            here = position < age_H
            tokens_HL[:, position] = self.tokens_LNK[position, place_H, row_H]
            totals_HL[:, position] = self.totals_LNK[position, place_H, row_H]
            row_H = np.where(here, self.parents_LNK[position, place_H, row_H], row_H)
        return tokens_HL, totals_HL
