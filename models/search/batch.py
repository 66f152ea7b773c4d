"""A continuous batch: sentences join and leave between any two steps.

    join -> [encode + first step, apart] -> merge;   step -> finish -> compact

A sentence's result does not depend on its batch-mates. Sentences that search and sentences that sample may share a
``DecodeBatch``; they run through different graphs, in groups of their own. So do sentences of very different length,
where the kernels' order of summation depends on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from tandem.models.errors import OptionError
from tandem.models.search import beam
from tandem.models.search.align import Attention, attend, ranked
from tandem.models.search.graphs import Graphs, source_specs
from tandem.models.search.hypotheses import Admitted, Counters, Ended, Finished, Hypothesis, Sentence
from tandem.models.search.model import Model
from tandem.models.search.ranking import is_over
from tandem.models.search.running import Running, advance, merge, select, start
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary.base import BOS, EOS

LEAST_OCCUPANCY = 0.75  # below this share of occupied places, the batch is copied without the empty ones


class _StepKey(NamedTuple):
    """What the sentences that step together share."""

    graph: str
    lengths: tuple[int, ...]


class DecodeBatch:
    """A running batch over one model and one beam size.

    A call that raises leaves the batch as it was: ``join`` adds none of its sentences, ``step`` can be called again
    after ``remove`` of the sentences at fault.
    """

    def __init__(
        self, graphs: Graphs, *, beam_size: int, shortlist: Shortlist | None = None, bos: int = BOS, eos: int = EOS
    ) -> None:
        """
        Args:
            graphs: of the model.
            beam_size: of all its sentences.
            shortlist: selects the tokens of sentences that have no list of their own and do not sample.
            bos, eos: token ids.
        """
        self._graphs, self._beam_size, self._bos, self._eos = graphs, beam_size, bos, eos
        self._shortlist = shortlist
        self._models: dict[str, Model] = {}
        self._running: dict[_StepKey, Running] = {}
        self._left: list[Finished] = []  # finished, not yet returned by step
        self._counters = Counters()

    def __len__(self) -> int:
        """Sentences that ``step`` has not returned yet."""
        return sum(len(running.occupied) for running in self._running.values()) + len(self._left)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The sentences still being decoded."""
        return tuple(one.sentence.id for running in self._running.values() for one in running.places if one)

    @property
    def rows(self) -> int:
        """Rows that the next step runs, dead ones included."""
        return sum(running.live.score_BK.size for running in self._running.values())

    @property
    def counters(self) -> Counters:
        """What the batch has computed since it was made."""
        return self._counters

    def join(self, sentences: Sequence[Sentence]) -> None:
        """Encode sentences, take their first step, and merge them into the batch.

        Raises:
            OptionError: options that do not fit this batch or model.
            ValueError: a sentence whose id is already in the batch, or whose sources do not fit the model.
            SentenceError: a sentence whose first step is not finite.
        """
        self._check(sentences)
        if self._shortlist is not None:
            sentences = [self._listed(sentence, self._shortlist) for sentence in sentences]
        groups: dict[_StepKey, list[Sentence]] = {}
        for sentence in sentences:
            model = self._model(sentence.graph)
            groups.setdefault(_StepKey(model.step, model.kernel_class(sentence.lengths)), []).append(sentence)
        joining = {key: self._first_step(self._models[key.graph], group) for key, group in groups.items()}
        for key, (begun, finished) in joining.items():
            self._left += finished
            if begun.occupied:
                model, here = self._models[key.graph], self._running.get(key)
                joiners = select(model, begun, begun.occupied) if finished else begun
                self._running[key] = merge(model, here, joiners) if here else joiners

    def step(self) -> list[Finished]:
        """Advance every sentence by one token and return those that are done.

        Raises:
            SentenceError: probabilities that are not finite; names the sentences at fault and their step.
        """
        for key, running in list(self._running.items()):
            model = self._models[key.graph]
            after, counted = advance(model, running)
            after, finished = finish(model, running, after)
            self._counters += counted
            self._left += finished
            self._compact(key, after)
        left, self._left = self._left, []
        return left

    def remove(self, ids: Iterable[Hashable]) -> None:
        """Drop sentences without a result; ids that are not in the batch are ignored."""
        gone = set(ids)
        self._left = [one for one in self._left if one.id not in gone]
        for key, running in list(self._running.items()):
            places = [p for p, one in enumerate(running.places) if one and one.sentence.id in gone]
            if places:
                self._compact(key, running.vacate(places))

    def _listed(self, sentence: Sentence, shortlist: Shortlist) -> Sentence:
        if sentence.graph != "step" or "step_shortlist" not in self._graphs.specs:
            return sentence
        return replace(sentence, shortlist=shortlist.select(sentence.sources))

    def _model(self, graph: str) -> Model:
        if graph not in self._models:
            self._models[graph] = Model(self._graphs, graph, self._beam_size, self._bos, self._eos)
        return self._models[graph]

    def _first_step(self, model: Model, sentences: Sequence[Sentence]) -> tuple[Running, list[Finished]]:
        admitted = [Admitted.of(one, vocabulary_size=model.vocabulary_size, eos=self._eos) for one in sentences]
        begun = start(model, admitted)
        after, counted = advance(model, begun)
        result = finish(model, begun, after)
        self._counters += counted
        return result

    def _compact(self, key: _StepKey, running: Running) -> None:
        occupied = running.occupied
        if not occupied:
            del self._running[key]
        elif len(occupied) < LEAST_OCCUPANCY * len(running.places):
            self._running[key] = select(self._models[key.graph], running, occupied)
        else:
            self._running[key] = running

    def _check(self, sentences: Sequence[Sentence]) -> None:
        taken = {*self.ids, *(one.id for one in self._left)}
        sources = source_specs(self._graphs.specs)
        for sentence in sentences:
            if sentence.id in taken:
                raise ValueError(f"a sentence with the id {sentence.id!r} is already in the batch")
            taken.add(sentence.id)
            if len(sentence.sources) != len(sources) or not all(len(source) for source in sentence.sources):
                lengths = [len(source) for source in sentence.sources]
                raise ValueError(
                    f"{sentence.id!r} must have {len(sources)} non-empty sources, but has lengths {lengths}"
                )
            for spec, source in zip(sources, sentence.sources, strict=True):
                if source.shape[1:] != spec.fixed:
                    shape = f"{spec.name} of {sentence.id!r} must have the shape {('length', *spec.fixed)}"
                    raise ValueError(f"{shape}, but has {source.shape}")
            options = sentence.options
            if options.beam_size != self._beam_size:
                raise OptionError("beam_size", f"the batch's, {self._beam_size}", options.beam_size)
            if options.coverage_penalty and "align" not in self._graphs.specs:
                raise OptionError("coverage_penalty", "0 for a model without attention", options.coverage_penalty)
            if options.attention and "align" not in self._graphs.specs:
                raise OptionError("attention", "false for a model without attention", options.attention)
            if sentence.graph == "step_shortlist" and sentence.graph not in self._graphs.specs:
                raise ValueError(f"{sentence.id!r} has a shortlist, but the model has no graph that reads one")
            if options.sampling and "step_logits" not in self._graphs.specs:
                raise OptionError("sampling", "off for a bundle without the step_logits graph", options.sampling)


def finish(model: Model, before: Running, after: Running) -> tuple[Running, list[Finished]]:
    """The batch without the sentences that are over, and their hypotheses, best first."""
    best_B = after.live.score_BK.max(axis=1)
    done: dict[int, tuple[Ended, ...]] = {}
    sentences: dict[int, Sentence] = {}
    for place, admitted in enumerate(after.places):
        if admitted and is_over(admitted, after.ended[place], float(best_B[place])):
            done[place] = after.ended[place] or _stuck(before, place)
            sentences[place] = admitted.sentence
    if not done:
        return after, []
    options = {place: sentence.options for place, sentence in sentences.items()}
    best = ranked(done, options, partial(_attention, model, after))
    return after.vacate(list(done)), [Finished(sentences[place].id, found) for place, found in best.items()]


def _stuck(before: Running, place: int) -> tuple[Ended, ...]:
    """Nothing ended and nothing may follow: the hypotheses as they were before the step, unfinished."""
    alive = np.flatnonzero(before.live.alive_BK[place]).tolist()
    return tuple(beam.snapshot(before.live, place, row, None) for row in alive)


def _attention(
    model: Model, running: Running, wanted: Mapping[int, Sequence[Ended | Hypothesis]]
) -> dict[int, dict[tuple[int, ...], Attention]]:
    """For each place the attention of hypotheses, by their tokens."""
    if not wanted:
        return {}
    places = list(wanted)
    memory = {name: array[places] for name, array in running.memory.items()}
    tokens = [[one.tokens for one in wanted[place]] for place in places]
    lengths = [tuple(map(len, one.sentence.sources)) for p in places if (one := running.places[p])]
    attention = attend(model.graphs, memory, tokens, lengths, bos=model.bos)
    pairs = zip(places, tokens, attention, strict=True)
    return {place: dict(zip(group, found, strict=True)) for place, group, found in pairs}
