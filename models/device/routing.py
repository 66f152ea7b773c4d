"""Every option on one batch: what the device cannot decode goes through the graphs of the same model."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Sequence

from models.device.batch import StaticBatch
from models.device.sizes import Sizes
from models.device.step import StaticStep
from models.graphs import AnyModel
from models.search.batch import DecodeBatch
from models.search.graphs import Graphs
from models.search.hypotheses import Counters, Finished, Sentence


class RoutedBatch:
    """Two batches behind the interface of one: each sentence goes to the device where that supports it.

    Args:
        device: static buffers.
        general: the same model and beam size.
    """

    def __init__(self, device: StaticBatch, general: DecodeBatch) -> None:
        self._device, self._general = device, general
        self._left: list[Finished] = []

    def __len__(self) -> int:
        """Sentences that ``step`` has not returned yet."""
        return len(self._device) + len(self._general) + len(self._left)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The sentences still being decoded."""
        return (*self._device.ids, *self._general.ids)

    @property
    def rows(self) -> int:
        """Rows that the next step runs, dead ones included."""
        return self._device.rows + self._general.rows

    @property
    def counters(self) -> Counters:
        """What both have computed."""
        return self._device.counters + self._general.counters

    def join(self, sentences: Sequence[Sentence]) -> None:
        """Put every sentence into one of the two; where one of them refuses, none has joined.

        Raises:
            OptionError, ValueError, SentenceError: as of the batch that would decode the sentence.
        """
        taken = {*self.ids, *(one.id for one in self._left)}
        groups: dict[bool, list[Sentence]] = {True: [], False: []}
        for sentence in sentences:
            if sentence.id in taken:
                raise ValueError(f"a sentence with the id {sentence.id!r} is already in the batch")
            taken.add(sentence.id)
            groups[self._device.supports(sentence)].append(sentence)
        self._general.join(groups[False])
        try:
            self._device.join(groups[True])
        except Exception:
            self._general.remove([one.id for one in groups[False]])
            raise

    def step(self) -> list[Finished]:
        """Advance both by one token and return the sentences that are done.

        Raises:
            SentenceError: of either; what the other has finished comes with the next call.
        """
        for batch in (self._general, self._device):
            self._left += batch.step()
        left, self._left = self._left, []
        return left

    def remove(self, ids: Iterable[Hashable]) -> None:
        """Drop sentences without a result; ids that are not in the batch are ignored."""
        gone = list(ids)
        self._left = [one for one in self._left if one.id not in gone]
        self._device.remove(gone)
        self._general.remove(gone)


class DeviceBatches:
    """Starts batches over one model; the buffers of a batch that nobody holds any more serve the next.

    May be called from several threads.

    Args:
        model: prepared for inference, where it shall run.
        graphs: of the same model, for what the device cannot decode.
        sizes: of the buffers; those of every batch are the same.
        poll_every: steps between two looks at what is done.
    """

    def __init__(self, model: AnyModel, graphs: Graphs, *, sizes: Sizes | None = None, poll_every: int = 4) -> None:
        self._model, self._graphs, self._sizes, self._poll_every = model, graphs, sizes, poll_every
        self._idle: dict[int, deque[StaticStep]] = {}

    def start(self, beam_size: int) -> RoutedBatch:
        """An empty batch.

        Raises:
            ConfigError, OptionError: sizes or a beam that the model does not allow.
        """
        idle = self._idle.setdefault(beam_size, deque())
        try:
            step = idle.pop()
        except IndexError:
            step = StaticStep(self._model, beam_size=beam_size, sizes=self._sizes)
        batch = StaticBatch(step, poll_every=self._poll_every)
        weakref.finalize(batch, idle.append, step).atexit = False
        return RoutedBatch(batch, DecodeBatch(self._graphs, beam_size=beam_size))
