"""Every option on one batch: what the device cannot decode goes through the graphs of the same model."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import CapturedStep, give_up_graph
from tandem.extras.gpu.memory import DeviceMemory
from tandem.extras.gpu.sizes import Sizes
from tandem.models.search.batch import DecodeBatch
from tandem.models.search.graphs import Array, GraphSpecs
from tandem.models.search.hypotheses import Counters, Finished, Sentence
from tandem.models.search.shortlist import Shortlist
from tandem.models.search.start import Batch
from tandem.models.steps.device_search import DeviceCounters, DeviceSearch, SearchRoom
from tandem.models.steps.devices import CAPTURING, lost, out_of_memory, wait_for
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.models.vocabulary.base import BOS, EOS

_CPU_SLOTS = (1, 2, 4, 8, 16)  # what is beyond gains nothing on a few cores
_HALF, _MOST = 0.5, 0.9  # of the budget may be reserved where buffers are made, and once a step had no room
_made: weakref.WeakSet[DeviceGraphs] = weakref.WeakSet()


class RoutedBatch:
    """Two batches behind the interface of one: each sentence goes to the device where that supports it.

    Where the device fails in a way that lasts, every call raises ``DeviceLost``.

    Args:
        device: static buffers.
        general: the same model and beam size.
        make_room: called where the device's memory does not suffice, before the error goes on.
        unlisted: whether there is a shortlist, which neither uses.
    """

    def __init__(
        self,
        device: StaticBatch,
        general: DecodeBatch,
        make_room: Callable[[], None] = lambda: None,
        *,
        unlisted: bool = False,
    ) -> None:
        self._device, self._general, self._make_room, self._unlisted = device, general, make_room, unlisted
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
            DeviceLost: the device does not work any more.
        """
        taken = {*self.ids, *(one.id for one in self._left)}
        here: list[Sentence] = []
        there: dict[Hashable, str] = {}
        for sentence in sentences:
            if sentence.id in taken:
                raise ValueError(f"a sentence with the id {sentence.id!r} is already in the batch")
            taken.add(sentence.id)
            if lacking := self._device.lacks(sentence):
                there[sentence.id] = lacking
            else:
                here.append(sentence)
        self._general.join([one for one in sentences if one.id in there])
        try:
            self._device.join(here)
        except Exception as error:
            self._general.remove(there)
            raise self._told(error) from error
        counters = self._device.device_counters
        counters.routed.update(there.values())
        counters.unlisted += len(sentences) if self._unlisted else 0

    def step(self) -> list[Finished]:
        """Advance both and return the sentences that are done.

        Raises:
            SentenceError: of either; what the other has finished comes with the next call.
            DeviceLost: the device does not work any more.
        """
        try:
            for batch in (self._general, self._device):
                self._left += batch.step()
        except RuntimeError as error:
            raise self._told(error) from error
        left, self._left = self._left, []
        return left

    def remove(self, ids: Iterable[Hashable]) -> None:
        """Drop sentences without a result; ids that are not in the batch are ignored.

        Raises:
            DeviceLost: the device does not work any more.
        """
        gone = set(ids)
        self._left = [one for one in self._left if one.id not in gone]
        try:
            self._device.remove(gone)
        except RuntimeError as error:
            raise self._told(error) from error
        self._general.remove(gone)

    def _told(self, error: Exception) -> Exception:
        """The error, or that the device is lost where it is."""
        if out_of_memory(error):
            self._make_room()
        return lost(self._device.device, error) or error


class DeviceGraphs(DeviceSearch):
    """A model whose searches run where it lies: graphs for whoever asks for one, and batches that search on the device.

    The buffers of a batch that nobody holds any more serve the next of its beam size. May be called from several
    threads.

    Args:
        model: prepared for inference, where it shall run and in the type it shall compute in. It is not to be moved.
        sizes: of the buffers; where the device's memory does not suffice there are fewer slots.
        poll_every: steps between two looks at what is done; see :class:`StaticBatch`.
        memory: share of the device's memory that this process may take.

    Attributes:
        counters: of the device's work.
        device: where the model lies.
        slots: sentences of a batch, where there is room for so many.
    """

    def __init__(
        self,
        model: AnyModel,
        *,
        sizes: Sizes | None = None,
        poll_every: int | None = None,
        memory: float = 1.0,
    ) -> None:
        self._model, self._sizes, self._poll_every = model, sizes or Sizes(), poll_every
        self.slots = self._sizes.sentences[-1]
        self._general = TorchGraphs(model)
        self._idle: dict[int, list[CapturedStep]] = {}  # by beam size, the one given back last comes last
        self._making = threading.Lock()
        self.counters = DeviceCounters()
        self.device = next(model.parameters()).device
        self._memory = DeviceMemory(self.device, memory)
        _made.add(self)

    @property
    def specs(self) -> GraphSpecs:
        """As for any :class:`models.search.graphs.Graphs`."""
        return self._general.specs

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As for any :class:`models.search.graphs.Graphs`."""
        return self._general.run(graph, inputs)

    def start_batch(
        self,
        beam_size: int,
        *,
        shortlist: Shortlist | None = None,
        bos: int = BOS,
        eos: int = EOS,
        alone: bool = False,
    ) -> Batch:
        """An empty batch; one for a sentence that is decoded ``alone`` is the general search's, and counted as routed.

        A shortlist is not used, and its sentences are counted: it estimates scores to spare a processor most of the
        output layer, which costs a GPU next to nothing.

        Raises:
            ConfigError, OptionError: sizes or a beam that the model does not allow.
            torch.OutOfMemoryError: the device has no room for the smallest buffers.
            DeviceLost: the device does not work any more.
        """
        general = DecodeBatch(self._general, beam_size=beam_size, bos=bos, eos=eos)
        if alone:
            self.counters.routed["alone"] += 1
            self.counters.unlisted += shortlist is not None
            return general
        try:
            step = self._step(beam_size, bos, eos)
            batch = StaticBatch(step, poll_every=self._poll_every)
        except RuntimeError as error:  # where the device was lost by whoever had the buffers before
            raise lost(self.device, error) or error from error
        weakref.finalize(batch, self._give_back, beam_size, step).atexit = False
        return RoutedBatch(batch, general, partial(self._make_room, weakref.ref(step)), unlisted=shortlist is not None)

    def _step(self, beam_size: int, bos: int, eos: int) -> CapturedStep:
        with self._making:
            with CAPTURING:  # nobody makes room of what is taken here
                idle = self._idle.get(beam_size, [])
                for place, step in enumerate(idle):
                    if (step.bos, step.eos) == (bos, eos):
                        return idle.pop(place)
            while self._memory.taken(_HALF) and make_room(self._memory):
                pass
            sizes = self._sizes
            while (made := self._attempt(beam_size, sizes, bos, eos)) is None:
                if make_room(self._memory):
                    continue
                if sizes.sentences[-1] == 1:
                    raise torch.OutOfMemoryError(f"{self.device} has no room for the buffers of one sentence")
                sizes = sizes.halved()
            return made

    def _attempt(self, beam_size: int, sizes: Sizes, bos: int, eos: int) -> CapturedStep | None:
        """New buffers; None where there is no room."""
        try:
            return CapturedStep(
                self._model,
                counters=self.counters,
                memory=self._memory,
                make_room=partial(make_room, self._memory),
                beam_size=beam_size,
                sizes=sizes,
                bos=bos,
                eos=eos,
            )
        except RuntimeError as error:
            if not out_of_memory(error):
                raise lost(self.device, error) or error from error
            self.counters.out_of_memory += 1
        return None  # and with the error goes what was allocated so far

    def _give_back(self, beam_size: int, step: CapturedStep) -> None:
        self._idle.setdefault(beam_size, []).append(step)

    def _make_room(self, step: weakref.ref[CapturedStep]) -> None:
        """After a step, of unknown size, that had none: what can be made anew goes, its own graphs included."""
        self.counters.out_of_memory += 1
        own = [used for used in (step(),) if used is not None]
        while make_room(self._memory, own) and self._memory.taken(_MOST):
            pass


def make_room(memory: DeviceMemory, own: Iterable[CapturedStep] = ()) -> bool:
    """Give up graphs, the least recently used first, and only then idle buffers likewise, until some memory is free.

    Args:
        memory: of the device.
        own: the caller's buffers, whose graphs may go beside those of idle ones, of whichever model. What others use
            stays.

    Returns:
        Whether there was anything to give up.
    """
    before, found = memory.reserved, False
    with CAPTURING:
        while _give_up(memory.device, own):
            found = True
            memory.give_back()
            if memory.reserved < before:
                break
    return found


def _give_up(device: torch.device, own: Iterable[CapturedStep]) -> bool:
    """A graph, else idle buffers; whether there were any."""
    kept = [idle for graphs in list(_made) if graphs.device == device for idle in list(graphs._idle.values())]
    if give_up_graph([*own, *(step for idle in kept for step in idle)]):
        return True
    oldest = min((idle for idle in kept if idle), key=lambda idle: idle[0].used, default=None)
    if oldest is not None:
        wait_for(device)  # steps of sentences that were removed may be underway
        del oldest[0]
    return oldest is not None


def open_search(model: AnyModel, room: SearchRoom) -> DeviceGraphs:
    """The search of a model where it lies, with few slots on a CPU."""
    sizes = Sizes.within(room.sentences, room.source, room.target)
    if next(model.parameters()).device.type == "cpu":
        sizes = replace(sizes, sentences=_CPU_SLOTS)
    sizes = replace(sizes, suppressed=sizes.suppressed + room.suppressed)
    return DeviceGraphs(model, sizes=sizes, memory=room.memory)
