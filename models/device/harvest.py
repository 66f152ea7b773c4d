"""From back-pointers to ranked hypotheses, on the host; their attention, where asked for, is computed on the device.

Shape suffixes: N sentences, K rows, L positions, E finished hypotheses of a sentence, H hypotheses of all sentences.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from models.device.transfer import Readback, upload
from models.records import Memory
from models.search.align import Attention, by_hypothesis, ranked, target_table
from models.search.hypotheses import Admitted, Ended, Finished, Hypothesis

if TYPE_CHECKING:
    from models.device.step import StaticStep


@dataclass(frozen=True, slots=True, eq=False)
class Harvest:
    """The buffers of sentences that stopped; see :class:`models.device.slots.Slots`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Unranked:
    """Sentences that stopped, before their hypotheses are known.

    Attributes:
        members: the sentences.
        attending: the places among them of those whose attention must be known, to rank or to return.
        memory: of these, since their slots may be taken again; None where there are none.
        dropped: who was removed meanwhile.
    """

    members: tuple[Admitted, ...]
    attending: tuple[int, ...]
    memory: Memory | None
    dropped: set[Hashable] = field(default_factory=set)

    @classmethod
    def of(cls, step: StaticStep, members: Sequence[Admitted], slots: Sequence[int]) -> Self:
        """Sentences by their slots."""
        options = [one.sentence.options for one in members]
        attending = [place for place, own in enumerate(options) if own.attention or own.coverage_penalty]
        memory = None
        if attending:
            longest = map(max, zip(*(members[place].sentence.lengths for place in attending), strict=True))
            memory = step.records.taken(step.index([slots[place] for place in attending]), tuple(longest))
        return cls(tuple(members), tuple(attending), memory)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """Of those that are still wanted."""
        return tuple(one.sentence.id for one in self.members if one.sentence.id not in self.dropped)

    def drop(self, gone: set[Hashable]) -> None:
        """Let nobody get the results of these."""
        self.dropped.update(gone.intersection(self.ids))

    def ranked(self, step: StaticStep, harvest: Harvest) -> list[Finished]:
        """The sentences that are still wanted with their best hypotheses."""
        ended = dict(enumerate(harvest.hypotheses()))
        options = {place: one.sentence.options for place, one in enumerate(self.members)}
        best = ranked(ended, options, partial(self._attention, step))
        found = (Finished(one.sentence.id, best[place]) for place, one in enumerate(self.members))
        return [one for one in found if one.id not in self.dropped]

    def _attention(
        self, step: StaticStep, wanted: Mapping[int, Sequence[Ended | Hypothesis]]
    ) -> dict[int, dict[tuple[int, ...], Attention]]:
        """For each place the attention of hypotheses, by their tokens."""
        if not wanted or self.memory is None:
            return {}
        tokens = [[one.tokens for one in group] for group in wanted.values()]
        length = 1 + max(len(one) for group in tokens for one in group)
        target_RL = upload(target_table(tokens, length, step.bos).reshape(-1, length), step.device)
        memory = self.memory.select(step.index([self.attending.index(place) for place in wanted]))
        weights = Readback(*(x.float() for x in step.model.alignment(target_RL, memory))).arrays()
        found = by_hypothesis(weights, tokens, [self.members[place].sentence.lengths for place in wanted])
        return {
            place: dict(zip(group, own, strict=True)) for place, group, own in zip(wanted, tokens, found, strict=True)
        }
