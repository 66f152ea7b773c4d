"""The one driver for decoding with nobody waiting: validation, evaluation, proofs, corpora, files of any size.

Sentences are read a window at a time and sorted by length. The longest begin; where so many have ended that half of the
budget is free, the next ones join the running batch. What comes out is in the order of what went in. (Joining was once
measured beside batches of like length from first step to last, on 600 real sentences and one core: as many sentences
for a second of processor time. It is here for what has more cores, and for lines of unlike length.)
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, cast

from tandem.models.errors import DeviceLost
from tandem.models.search.graphs import Array, Graphs
from tandem.models.search.hypotheses import Counters, Hypothesis, Sentence
from tandem.models.search.options import SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.search.start import Batch, slots_of, start_batch
from tandem.models.vocabulary.base import BOS, EOS

TOKEN_BUDGET = 8192
WINDOW = 2048
Sources: TypeAlias = tuple[Array, ...]
"""A sentence in every source of a model: ids ending with EOS (S), or features (S x D)."""
SourcesWithOptions: TypeAlias = tuple[Sources, SearchOptions]
"""A sentence and how it is decoded."""


@dataclass(frozen=True, slots=True)
class Failed:
    """What stands in the place of hypotheses that could not be found."""

    why: str


NBest: TypeAlias = Sequence[Hypothesis] | Failed
"""What became of a sentence: at least one hypothesis, the best first, or why there is none."""


@dataclass(slots=True, eq=False)
class OfflineDecoder:
    """A model and how to decode with it.

    Attributes:
        graphs: of the model.
        options: of every sentence.
        shortlist: where given, a sentence may use the target tokens that it selects, and no others.
        token_budget: most beam rows x longest source of a batch; a sentence that is longer is decoded alone. Without
            meaning where the runtime has a search of its own, whose buffers are there anyway.
        most: sentences of a batch; None for as many as the budget allows, or twice the slots of such a search, so that
            some wait.
        window: sentences that are held at a time, and sorted among each other.
        isolate: where a batch fails, decode its sentences one by one, so that only those at fault fail; otherwise the
            error is raised.
        progress: called with the number of sentences that have just ended.
        bos, eos: token ids.
        counters: what has been computed so far.
    """

    graphs: Graphs
    options: SearchOptions
    shortlist: Shortlist | None = None
    token_budget: int = TOKEN_BUDGET
    most: int | None = None
    window: int = WINDOW
    isolate: bool = False
    progress: Callable[[int], None] = lambda count: None
    bos: int = BOS
    eos: int = EOS
    counters: Counters = field(default_factory=Counters)

    def decode(self, sources: Iterable[Sources]) -> Iterator[NBest]:
        """The hypotheses of each sentence, best first, in order; no more than a window is read ahead.

        Raises:
            SentenceError: probabilities that are not finite, and no isolation; its ids count the sentences from 0.
            DeviceLost: isolation or not, since no other sentence can be decoded either.
        """
        return self.decode_each((one, self.options) for one in sources)

    def decode_each(self, sentences: Iterable[SourcesWithOptions]) -> Iterator[NBest]:
        """As ``decode`` does, with options for each sentence, which all have the decoder's beam size."""
        numbered = enumerate(sentences)
        while window := dict(islice(numbered, self.window)):
            ended: dict[int, NBest] = {}
            for index, outcome in self._decode_window(window):
                ended[index] = outcome
                self.progress(1)
            yield from (ended[index] for index in window)

    def _decode_window(self, window: Mapping[int, SourcesWithOptions]) -> Iterator[tuple[int, NBest]]:
        lengths = {index: max(map(len, sources)) for index, (sources, _) in window.items()}
        waiting = deque(sorted(window, key=lambda index: -lengths[index]))
        while waiting:
            batch, running = self._batch(), dict[int, int]()  # the length of each sentence in it
            try:
                while waiting or running:
                    if joining := self._joining(waiting, running, lengths):
                        running |= {index: lengths[index] for index in joining}
                        batch.join([Sentence(index, *window[index]) for index in joining])
                    for index, outcome in _step(batch):
                        del running[index]
                        yield index, outcome
            except DeviceLost:  # with another sentence it would be lost as well
                raise
            except Exception:  # of the search or of a runtime, whose own exceptions share no base
                if not self.isolate:
                    raise
                for index in running:
                    yield index, self._decode_alone(*window[index])
            finally:
                self.counters += batch.counters

    def _joining(self, waiting: deque[int], running: Mapping[int, int], lengths: Mapping[int, int]) -> list[int]:
        """The next sentences to join, taken from those that wait; none while little has become free."""
        slots = slots_of(self.graphs)
        budget = sys.maxsize if slots else max(1, self.token_budget // self.options.beam_size)
        most = self.most or 2 * slots or len(waiting) + len(running)
        longest = max(running.values(), default=0)
        if running and (2 * len(running) * longest > budget or 2 * len(running) > most):
            return []
        joining: list[int] = []
        while waiting:
            longest, count = max(longest, lengths[waiting[0]]), len(running) + len(joining) + 1
            if count > 1 and (count * longest > budget or count > most):
                break
            joining.append(waiting.popleft())
        return joining

    def _decode_alone(self, sources: Sources, options: SearchOptions) -> NBest:
        batch = self._batch()
        try:
            batch.join([Sentence(0, sources, options)])
            while True:
                for _, outcome in _step(batch):
                    return outcome
        except DeviceLost:
            raise
        except Exception as error:  # as above
            return Failed(f"{type(error).__name__}: {error}")

    def _batch(self) -> Batch:
        beam_size = self.options.beam_size
        return start_batch(self.graphs, beam_size=beam_size, shortlist=self.shortlist, bos=self.bos, eos=self.eos)


def _step(batch: Batch) -> Iterator[tuple[int, NBest]]:
    for finished in batch.step():
        yield cast("int", finished.id), finished.hypotheses or Failed("the search found no hypothesis")


def translate_batch(
    graphs: Graphs,
    sources: Sequence[Sources],
    options: SearchOptions,
    *,
    token_budget: int = TOKEN_BUDGET,
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, best first, in the order of ``sources``; none where the search found none.

    Raises:
        SentenceError: probabilities that are not finite; its ids are indices into ``sources``.
    """
    decoder = OfflineDecoder(graphs, options, shortlist, token_budget)
    return [[] if isinstance(found, Failed) else list(found) for found in decoder.decode(sources)]
