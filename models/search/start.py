"""What runs sentences together, whatever decodes them: the general search, or a runtime's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from tandem.models.search.batch import DecodeBatch
from tandem.models.search.graphs import Array, Graphs, GraphSpecs
from tandem.models.search.hypotheses import Counters, Finished, Sentence
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary.base import BOS, EOS


class Batch(Protocol):
    """A continuous batch of one beam size: sentences join and leave between any two steps.

    ``step`` advances by one token or more, and returns sentences some time after they have ended. After a
    ``SentenceError`` the others go on once its sentences are removed; after any other error of ``step`` the batch is
    not to be used again.
    """

    def __len__(self) -> int: ...
    @property
    def ids(self) -> tuple[Hashable, ...]: ...
    @property
    def rows(self) -> int: ...
    @property
    def counters(self) -> Counters: ...
    def join(self, sentences: Sequence[Sentence]) -> None: ...
    def step(self) -> list[Finished]: ...
    def remove(self, ids: Iterable[Hashable]) -> None: ...


class SearchingGraphs(ABC):
    """Graphs (:class:`models.search.graphs.Graphs`) whose runtime has a search of its own, and says so by this base.

    Attributes:
        slots: sentences that the search holds at a time, in buffers that are there anyway.
    """

    slots: int

    @property
    @abstractmethod
    def specs(self) -> GraphSpecs:
        """As of any graphs."""

    @abstractmethod
    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As of any graphs."""

    @abstractmethod
    def start_batch(self, beam_size: int, *, shortlist: Shortlist | None, bos: int, eos: int, alone: bool) -> Batch:
        """An empty batch of the runtime's own search; arguments as of :func:`start_batch`."""


def slots_of(graphs: Graphs) -> int:
    """Sentences that a runtime's own search holds at a time, in buffers that are there anyway; 0 where it has none."""
    return graphs.slots if isinstance(graphs, SearchingGraphs) else 0


def start_batch(
    graphs: Graphs,
    *,
    beam_size: int,
    shortlist: Shortlist | None = None,
    bos: int = BOS,
    eos: int = EOS,
    alone: bool = False,
) -> Batch:
    """An empty batch over a model, in its runtime's own search where it has one; see :class:`DecodeBatch`.

    Args:
        alone: for one sentence only: a runtime's own search does not spend the buffers of a whole batch on it.
    """
    if isinstance(graphs, SearchingGraphs):
        return graphs.start_batch(beam_size, shortlist=shortlist, bos=bos, eos=eos, alone=alone)
    return DecodeBatch(graphs, beam_size=beam_size, shortlist=shortlist, bos=bos, eos=eos)
