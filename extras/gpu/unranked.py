"""From hypotheses to ranked ones, on the host; their attention, where asked for, is computed on the device."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from tandem.extras.gpu.harvest import Harvest
from tandem.extras.gpu.step import StaticStep
from tandem.extras.gpu.transfer import Readback, upload
from tandem.models.architectures.records import Memory
from tandem.models.search.align import Attention, by_hypothesis, ranked, target_table
from tandem.models.search.hypotheses import Admitted, Ended, Finished, Hypothesis


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
