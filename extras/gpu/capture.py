"""Steps as CUDA graphs: the kernels of a step are launched one by one once for each shape, and replayed from then on.

A step of a small model is some hundreds of kernels that take microseconds each: launching them from Python takes the
most of its time, a replay is one launch. All shapes share one pool of memory for what lives within a step.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol

import torch
from torch import Tensor

from tandem.extras.gpu.memory import DeviceMemory
from tandem.extras.gpu.sizes import Shape
from tandem.extras.gpu.step import StaticStep
from tandem.extras.gpu.transfer import upload
from tandem.models.search.graphs import Array
from tandem.models.steps.device_search import DeviceCounters
from tandem.models.steps.devices import CAPTURING, out_of_memory, wait_for

ENCODED = (1, 8, 32)  # sentences that are encoded together, in as many graphs for each length of the sources
_ATTEMPTS = 2  # to capture: what ended the first, another thread or want of room, may be over
MOST = 128  # graphs of one beam size; each keeps some hundred kilobytes on the device beside the pool
_clock = count()  # of uses
_abandoned: list[Any] = []  # captures that failed: an allocator may ask them for ever whether they are underway


class Replayable(Protocol):
    """Work that was recorded."""

    def replay(self) -> None:
        """Do it again, on the same addresses."""


class Recorder(Protocol):
    """Records work without doing it."""

    def record(self, work: Callable[[], None]) -> Replayable:
        """The work as it can be replayed. What it needs stays allocated until nobody holds any of the recordings."""


class CudaRecorder:
    """Captures into one pool, in the current stream; one that failed is not shared with those that follow."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, work: Callable[[], None]) -> Replayable:
        graph = torch.cuda.CUDAGraph()
        try:
            # Not torch.cuda.graph: that waits for the device and gives back all cached memory at every capture. Others
            # may use the device from their threads meanwhile.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            with _nothing_collected():
                work()
            graph.capture_end()
        except BaseException:
            self._abandon(graph)
            raise
        return graph

    def _abandon(self, graph: torch.cuda.CUDAGraph) -> None:
        """Undo what a capture began, which torch does not where the capture has become invalid: no other could use the
        pool, and memory that two streams used would never be free again."""
        device = torch.cuda.current_device()
        try:
            graph.capture_end()
        except RuntimeError:  # what ended the capture is the error to know
            with suppress(RuntimeError):  # it had ended, but could not be made a graph
                torch._C._cuda_endAllocateToPool(device, self._pool)
                torch._C._cuda_releasePool(device, self._pool)
        graph.reset()
        _abandoned.append(graph)
        self._pool = torch.cuda.graph_pool_handle()


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Garbage of this stream that is freed within a capture would leave an event there, which nobody can wait for."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Captures:
    """Work that is done as it stands where its key is new, and then captured; replayed from then on.

    Work whose capture has failed twice is done without. Where there are too many graphs the one that was used least
    recently goes. All share one pool of memory, which is free again when the last of them is gone.

    Args:
        device: where it is done.
        counters: to count on.
        recorder: makes a recorder, and with it a pool; None = nothing is captured.
        most: graphs to keep.
        memory: of the device.
        make_room: gives up something for memory, graphs of these captures maybe; returns whether there was anything.

    Attributes:
        used: when some work was done last, by a clock that all captures share.
    """

    def __init__(
        self,
        device: torch.device,
        counters: DeviceCounters,
        recorder: Callable[[], Recorder] | None,
        most: int,
        memory: DeviceMemory,
        make_room: Callable[[], bool],
    ) -> None:
        self._device, self._counters, self._new_recorder, self._most = device, counters, recorder, most
        self._memory, self._make_room = memory, make_room
        self._recorder: Recorder | None = None
        self._graphs: dict[Hashable, Replayable] = {}  # the one used last comes last
        self._pooled = 0  # bytes that the largest of them has needed, and the pool has
        self._failures = Counter[Hashable]()
        self.used = next(_clock)

    def __len__(self) -> int:
        return len(self._graphs)

    def run(self, key: Hashable, work: Callable[[], None]) -> bool:
        """Do the work; returns whether it was replayed. It must be the same for the same key, addresses included."""
        self.used = next(_clock)
        graph = self._graphs.pop(key, None)
        if graph is not None:
            self._graphs[key] = graph
            graph.replay()
            return True
        if self._new_recorder is None or self._failures[key] >= _ATTEMPTS:
            work()
        else:
            needed = self._memory.taken_by(work)  # which also loads kernels and takes workspaces
            self._capture(key, work, self._new_recorder, needed)
        return False

    def evict(self, number: int) -> None:
        """Give up so many graphs, those first that were used least recently."""
        if number <= 0:
            return
        wait_for(self._device)  # a replay may be underway
        for key in list(self._graphs)[:number]:
            del self._graphs[key]
            self._counters.evictions += 1
        if not self._graphs:  # and with the last its pool
            self._recorder, self._pooled = None, 0

    def _capture(
        self, key: Hashable, work: Callable[[], None], new_recorder: Callable[[], Recorder], needed: int
    ) -> None:
        with CAPTURING:
            # Within a capture the allocator gives back nothing of what it keeps for others.
            while self._memory.room < needed - self._pooled and self._make_room():
                pass
            try:
                self._recorder = self._recorder or new_recorder()
                self._graphs[key] = self._recorder.record(work)
            except RuntimeError as error:
                self._failures[key] += 1
                if out_of_memory(error):
                    self._counters.out_of_memory += 1
                    self._make_room()
                else:  # where the device itself is gone the next call says so
                    self._counters.capture_failures += 1
            else:
                self._counters.captures += 1
                self._pooled = max(self._pooled, needed)
        self.evict(len(self._graphs) - self._most)


@dataclass(frozen=True, slots=True, eq=False)
class _Encoding:
    """Addresses that sources are written to, and those where what the model makes of them lies then."""

    inputs: list[Tensor]
    outputs: dict[str, Tensor]


class CapturedStep(StaticStep):
    """A :class:`StaticStep` that is replayed where its shape has been seen; on the CPU it is one.

    Newcomers are encoded likewise, up to ``ENCODED`` of them at a time in a few sizes.

    Args:
        recorder: makes a recorder, and with it a pool; None = CUDA's, on a GPU.
        most: graphs of steps to keep.
        memory: of the device; None = all of it.
        make_room: as for :class:`Captures`, given a list of this step; None = its own graphs go.
        named: as for :class:`StaticStep`.
    """

    def __init__(
        self,
        model: Any,
        *,
        recorder: Callable[[], Recorder] | None = None,
        most: int = MOST,
        memory: DeviceMemory | None = None,
        make_room: Callable[[Iterable[CapturedStep]], bool] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(model, **named)
        gpu = self.device.type == "cuda"
        if recorder is None and gpu and not self.streams.shared:
            recorder = CudaRecorder
        # A pool each: encodings are done beside steps.
        own, give_up = weakref.ref(self), make_room or give_up_graph  # no cycle: the last user's end frees the buffers

        def room() -> bool:
            return give_up([step for step in (own(),) if step is not None])

        rest = most, memory or DeviceMemory(self.device), room
        self._steps = Captures(self.device, self.counters, recorder, *rest)
        self._encodings = Captures(self.device, self.counters, recorder if gpu else None, *rest)
        self._places: dict[Hashable, _Encoding] = {}

    def forward(self, shape: Shape) -> None:
        """One step, replayed or as it stands."""
        if self._steps.run(shape, partial(super().forward, shape)):
            self.counters.replays += 1
        else:
            self.counters.eager_steps += 1

    def encode(self, sources: Sequence[tuple[Array, ...]]) -> dict[str, Tensor]:
        """As for :class:`StaticStep`; of more rows than there are sources where that has been captured."""
        if self.device.type != "cuda" or len(sources) > ENCODED[-1]:
            return super().encode(sources)
        return self.encode_captured(sources)

    def encode_captured(self, sources: Sequence[tuple[Array, ...]]) -> dict[str, Tensor]:
        """What sentences become, made at addresses that stay and copied from there."""
        count = next(size for size in ENCODED if size >= len(sources))
        shape = self.sizes.shape(1, (max(map(len, column)) for column in zip(*sources, strict=True)), 1)
        given = self.records.inputs(sources, count, shape.sources)
        key = (count, *shape.sources)
        inputs = [upload(array, self.device) for array in given]
        if key not in self._places:
            self._places[key] = _Encoding(inputs, self.records.encoded(inputs))
        place = self._places[key]
        for tensor, uploaded in zip(place.inputs, inputs, strict=True):
            tensor.copy_(uploaded)

        def encode() -> None:
            for name, tensor in self.records.encoded(place.inputs).items():
                place.outputs[name].copy_(tensor)

        self._encodings.run(key, encode)
        return {name: tensor.clone() for name, tensor in place.outputs.items()}

    @property
    def used(self) -> int:
        """When it was used last, by a clock that all steps share."""
        return max(self._steps.used, self._encodings.used)

    @property
    def captures(self) -> tuple[Captures, Captures]:
        """Of steps and of encodings."""
        return self._steps, self._encodings


def give_up_graph(steps: Iterable[CapturedStep]) -> bool:
    """Give up one graph of some steps; returns whether there was any.

    It is the oldest by its last use of those that share a pool, of the pools that which was used least recently: only
    with the last of its graphs a pool's memory is free again.
    """
    captures = [captures for step in steps for captures in step.captures if len(captures)]
    if captures:
        min(captures, key=lambda one: one.used).evict(1)
    return bool(captures)
