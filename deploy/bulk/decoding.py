"""Sentences through a model, sorted by length; one that fails costs itself only.

Batches hold sentences of similar length from their first step to their last. Letting others join a running batch, as
the service's engine does for those who wait, was measured beside it on 600 real sentences: the same sentences for a
second of processor time, and more to go wrong. Nobody waits for a single sentence here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from models.search import Array, DecodeBatch, Graphs, Hypothesis, SearchOptions, Sentence
from models.search.offline import batches
from models.shortlist import Shortlist

TOKEN_BUDGET = 8192
"""Rows x source tokens of a batch, as `tandem evaluate` and the service have it."""
MOST_SENTENCES = 64


@dataclass(frozen=True, slots=True)
class Failed:
    """What stands in the place of a hypothesis that could not be found."""

    why: str


Found: TypeAlias = Sequence[Hypothesis] | Failed


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """A model with all that its decoding depends on.

    Attributes:
        graphs: of the model.
        options: of every sentence.
        shortlist: selects each sentence's target tokens, where given.
    """

    graphs: Graphs
    options: SearchOptions
    shortlist: Shortlist | None = None

    def decode(self, sources: Sequence[tuple[Array, ...]]) -> list[Hypothesis | Failed]:
        """The best hypothesis of each sentence, given by its sources (ids ending with EOS, or features)."""
        return [one if isinstance(one, Failed) else one[0] for one in self.n_best(sources)]

    def n_best(self, sources: Sequence[tuple[Array, ...]]) -> list[Found]:
        """Up to ``n_best`` hypotheses of each sentence, at least one, the best first."""
        found: dict[int, Found] = {}
        for chosen in self._batches(sources):
            found |= self._isolated([Sentence(index, sources[index], self.options) for index in chosen])
        return [found[index] for index in range(len(sources))]

    def _batches(self, sources: Sequence[tuple[Array, ...]]) -> Iterator[list[int]]:
        lengths = [max(map(len, one)) for one in sources]
        for chosen in batches(lengths, max(1, TOKEN_BUDGET // self.options.beam_size)):
            for start in range(0, len(chosen), MOST_SENTENCES):
                yield chosen[start : start + MOST_SENTENCES]

    def _isolated(self, sentences: Sequence[Sentence]) -> dict[int, Found]:
        """A batch; where it cannot be decoded, each of its sentences by itself."""
        try:
            return dict(self._together(sentences))
        except Exception as error:  # of the search or of a runtime, whose own exceptions share no base
            if len(sentences) == 1:
                return {cast("int", sentences[0].id): Failed(f"{type(error).__name__}: {error}")}
        found: dict[int, Found] = {}
        for one in sentences:
            found |= self._isolated([one])
        return found

    def _together(self, sentences: Sequence[Sentence]) -> Iterator[tuple[int, Found]]:
        batch = DecodeBatch(self.graphs, beam_size=self.options.beam_size, shortlist=self.shortlist)
        batch.join(sentences)
        while len(batch):
            for finished in batch.step():
                found = finished.hypotheses or Failed("the search found no hypothesis")
                yield cast("int", finished.id), found
