"""torch.cuda as far as captures and streams need it, on a CPU: the rules of torch's allocator, and who waited for whom.

The rules are those of torch's CUDAGraph.cpp, CUDACachingAllocator.cpp and CUDAStream.cpp. Everything is done when it is
asked for; what is checked is that another order, which the device might have taken, would have been as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

STREAMS = 32  # of one priority, handed out in turn
Key = tuple[int, int]
Seen = dict[Key, int]
"""Up to where the work of each stream is known to be done."""


class FakeStream:
    """Two objects may be the same stream."""

    cuda: FakeCuda

    def __init__(self, device: Any = None, priority: int = 0, number: int | None = None) -> None:
        if number is None:
            number = self.cuda.handed_out.get(priority, 0)
            self.cuda.handed_out[priority] = number + 1
        self.key = (priority, number % STREAMS)
        self.device_index, self.cuda_stream = 0, hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FakeStream) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def wait_stream(self, other: FakeStream) -> None:
        self.wait_event(other.marked())

    def wait_event(self, event: Event) -> None:
        self.cuda.seen(self).update(_later(self.cuda.seen(self), event.seen))

    def marked(self) -> Event:
        event = Event()
        event.record(self)
        return event


class Event:
    """It has not happened when it is asked for the first time."""

    def __init__(self, **_: Any) -> None:
        self.seen: Seen = {}
        self._asked = False

    def record(self, stream: FakeStream | None = None) -> None:
        stream = stream or FakeStream.cuda.current()
        self.seen = {**FakeStream.cuda.seen(stream), stream.key: FakeStream.cuda.done.get(stream.key, 0)}

    def query(self) -> bool:
        self._asked, asked = True, self._asked
        return asked

    def synchronize(self) -> None:
        """The host waits, which is always good."""


def _later(one: Seen, other: Seen) -> Seen:
    return {stream: max(one.get(stream, 0), other.get(stream, 0)) for stream in {*one, *other}}


class Graph:
    """Keeps a pool; the capture may become invalid, and torch then leaves it open."""

    cuda: FakeCuda

    def __init__(self) -> None:
        self.cuda, self.ended = type(self).cuda, False

    def capture_begin(self, pool: int, capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        cuda = self.cuda
        if pool in cuda.pools and cuda.pools[pool] <= 0:
            raise RuntimeError("use_count > 0 INTERNAL ASSERT FAILED")
        cuda.pools[pool] = cuda.pools.get(pool, 0) + 1
        if pool in cuda.underway:
            raise RuntimeError("already recording to mempool_id")
        cuda.underway.add(pool)
        self.pool, cuda.capturing, cuda.invalid = pool, self, False

    def capture_end(self) -> None:
        cuda = self.cuda
        if cuda.capturing is not self:
            raise RuntimeError("operation not permitted")
        cuda.capturing = None
        if cuda.invalid:
            raise RuntimeError("operation failed due to a previous error during capture")
        cuda.underway.remove(self.pool)
        self.ended = True
        if cuda.no_room:
            raise RuntimeError("CUDA error: out of memory")

    def reset(self) -> None:
        if self.ended:
            self.cuda.pools[self.pool] -= 1
        self.ended = False

    def replay(self) -> None:
        assert self.ended

    __del__ = reset


class FakeCuda:
    """What ``torch.cuda`` is patched with.

    Attributes:
        pools, underway: how many captures keep each pool, and into which one is allocated.
        capturing, invalid, no_room: the capture underway, whether something ended it, whether there is room for graphs.
        done: operations of each stream.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.pools: dict[int, int] = {}
        self.underway: set[int] = set()
        self.capturing: Graph | None = None
        self.invalid = self.no_room = False
        self.handed_out: dict[int, int] = {}
        self.done: Seen = {}
        self._seen: dict[Key, Seen] = {}
        self._entered = [FakeStream(number=-1)]  # the default stream
        self._handles = 0
        for kind in (FakeStream, Graph):
            patch.setattr(kind, "cuda", self, raising=False)
        replaced: dict[str, Any] = {"Stream": FakeStream, "Event": Event, "CUDAGraph": Graph, "stream": self.stream}
        replaced |= {"current_stream": lambda *_: self.current(), "current_device": lambda: 0}
        replaced |= {"graph_pool_handle": self.handle, "synchronize": self.synchronize}
        for name, one in replaced.items():
            patch.setattr(torch.cuda, name, one)
        patch.setattr(torch._C, "_cuda_endAllocateToPool", self.end)
        patch.setattr(torch._C, "_cuda_releasePool", self.release)

    def handle(self) -> int:
        self._handles += 1
        return self._handles

    def end(self, device: int, pool: int) -> None:
        if pool not in self.underway:
            raise RuntimeError("not currently recording to mempool_id")
        self.underway.remove(pool)

    def release(self, device: int, pool: int) -> None:
        self.pools[pool] -= 1

    def synchronize(self, device: Any = None) -> None:
        if self.capturing is not None:
            self.invalid = True
            raise RuntimeError("operation not permitted when stream is capturing")

    def seen(self, stream: FakeStream) -> Seen:
        return self._seen.setdefault(stream.key, {})

    def current(self) -> FakeStream:
        return self._entered[-1]

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        self._entered.append(stream)
        try:
            yield
        finally:
            self._entered.pop()


class Races(TorchDispatchMode):
    """Fails where a stream touches what another one made, without having waited for it or having said so.

    Args:
        cuda: whose streams.
        lasting: tensors that live as long as the streams, and need not be recorded on them.
    """

    def __init__(self, cuda: FakeCuda, lasting: Iterable[Tensor], patch: pytest.MonkeyPatch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cuda = cuda
        self._wrote: dict[int, tuple[Key, int]] = {}
        self._read: dict[int, Seen] = {}
        self._kept: dict[int, Any] = {}  # by address, which none may get again
        self._usable: dict[int, set[FakeStream]] = {}
        self._lasting = {_address(tensor) for tensor in lasting}
        self.streams: set[FakeStream] = set()

        def record(tensor: Tensor, stream: FakeStream) -> None:
            self._usable.setdefault(_address(tensor), set()).add(stream)

        patch.setattr(Tensor, "record_stream", record)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        if func.is_view:
            return found
        stream = self._cuda.current()
        self.streams.add(stream)
        now = self._cuda.done[stream.key] = self._cuda.done.get(stream.key, 0) + 1
        for number, argument in enumerate(func._schema.arguments):
            written = argument.alias_info is not None and argument.alias_info.is_write
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            for tensor in _tensors(value):
                self._touch(func.name(), tensor, stream, now, written=written)
        for tensor in _tensors(found):
            if _address(tensor) not in self._kept:
                self._touch(func.name(), tensor, stream, now, written=True)
        return found

    def _touch(self, name: str, tensor: Tensor, stream: FakeStream, now: int, *, written: bool) -> None:
        place, seen = _address(tensor), self._cuda.seen(stream)
        if place not in self._kept:
            self._kept[place] = tensor.untyped_storage()
            self._usable.setdefault(place, set()).add(stream)
        assert place in self._lasting or stream in self._usable[place], f"{name}: of another stream, and not recorded"
        others = [self._wrote[place]] if place in self._wrote else []
        if written:
            others += self._read.pop(place, {}).items()
            self._wrote[place] = stream.key, now
        else:
            self._read.setdefault(place, {})[stream.key] = now
        for other, when in others:
            assert other == stream.key or seen.get(other, 0) >= when, f"{name}: another stream may not be there yet"


def _address(tensor: Tensor) -> int:
    address: int = tensor.untyped_storage()._cdata
    return address


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
