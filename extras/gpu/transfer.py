"""What goes between host and device without either waiting for the other, and in which order."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tandem.models.search.graphs import Array

_STREAMS = 32  # of one priority that torch has; it hands them out in turn, also those that are in use
_URGENT, _ORDINARY = -1, 0
Held = tuple[int, int]  # device, and its number for the stream
_held: set[Held] = set()  # numbers: a process was seen to crash in a WeakSet of streams of torch 2.11
_holding = threading.Lock()


def upload(array: Array, device: torch.device) -> Tensor:
    """The array on the device. It must not be written afterwards: the copy may yet have to begin."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def upload_parts(parts: Sequence[NDArray[np.int64]], device: torch.device) -> list[Tensor]:
    """Whole numbers of several shapes, in one copy."""
    packed = upload(np.concatenate([part.reshape(-1) for part in parts]), device)
    pieces = packed.split([part.size for part in parts])
    return [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]


class Readback:
    """Tensors on their way to the host, as they are at this point of the current stream."""

    def __init__(self, *tensors: Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        if tensors[0].is_cuda:
            self._host = [torch.empty(x.shape, dtype=x.dtype, pin_memory=True) for x in tensors]
            for host, tensor in zip(self._host, tensors, strict=True):
                host.copy_(tensor, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        else:
            self._host = [tensor.clone() for tensor in tensors]

    @property
    def ready(self) -> bool:
        """Whether they have arrived."""
        return self._event is None or self._event.query()

    def arrays(self) -> list[Array]:
        """Them, once they have arrived."""
        if self._event is not None:
            self._event.synchronize()
        return [tensor.numpy() for tensor in self._host]


class Streams:
    """In which order a device works for one batch: steps in one stream, the encoding of newcomers beside them.

    On the CPU everything is done when it is asked for.

    Attributes:
        shared: whether others use one of the streams, of which torch has not more. Nothing can be captured there: what
            another thread asks for meanwhile would become a part of it.
    """

    def __init__(self, device: torch.device) -> None:
        self._steps: torch.cuda.Stream | None = None
        self._encodings: torch.cuda.Stream | None = None
        self.shared = False
        if device.type == "cuda":
            self._steps, steps = _stream(device, _URGENT)
            self._encodings, encodings = _stream(device, _ORDINARY)
            own = [held for held in (steps, encodings) if held is not None]
            finalize(self, _held.difference_update, own)  # without the lock, in which it may be called
            self.shared = len(own) < 2
            for stream in (self._steps, self._encodings):
                stream.wait_stream(torch.cuda.current_stream(device))  # the weights may be on their way

    def stepping(self) -> AbstractContextManager[object]:
        """Within, what is asked for goes into the stream of steps."""
        return nullcontext() if self._steps is None else torch.cuda.stream(self._steps)

    def encoding(self) -> AbstractContextManager[object]:
        """Within, what is asked for goes into the stream of encodings."""
        return nullcontext() if self._encodings is None else torch.cuda.stream(self._encodings)

    def mark(self) -> torch.cuda.Event | None:
        """This point of the stream of encodings."""
        if self._encodings is None:
            return None
        event = torch.cuda.Event()
        event.record(self._encodings)
        return event

    def meet(self, event: torch.cuda.Event | None, tensors: Sequence[Tensor]) -> None:
        """Let the stream of steps wait for a mark, and then use tensors that were made before it."""
        if event is not None and self._steps is not None:
            self._steps.wait_event(event)
            for tensor in tensors:
                tensor.record_stream(self._steps)


def _stream(device: torch.device, priority: int) -> tuple[torch.cuda.Stream, Held | None]:
    """A stream, and by what it is held; None where somebody else holds it."""
    with _holding:
        for _ in range(_STREAMS):
            stream = torch.cuda.Stream(device, priority=priority)
            held = (stream.device_index, stream.cuda_stream)
            if held not in _held:
                _held.add(held)
                return stream, held
        return stream, None


class Stopwatch:
    """Seconds that the device, or this processor, spends between two points of the current stream."""

    def __init__(self, device: torch.device) -> None:
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        self._began = self._took = 0.0
        if device.type == "cuda":
            self._events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self._events[0].record()
        else:
            self._began = time.perf_counter()

    def stop(self) -> None:
        """The second point."""
        if self._events is not None:
            self._events[1].record()
        else:
            self._took = time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        """Between the two; ask once the device is known to be past the second."""
        return self._took if self._events is None else self._events[0].elapsed_time(self._events[1]) / 1000
