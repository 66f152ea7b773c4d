"""What the device cannot decode goes through the graphs; buffers of batches that are gone serve the next."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
import torch

from tandem.extras.gpu.capture import CapturedStep
from tandem.extras.gpu.memory import DeviceMemory
from tandem.extras.gpu.routing import DeviceGraphs, RoutedBatch
from tandem.extras.gpu.sizes import Shape, Sizes
from tandem.extras.gpu.slots import Slots
from tandem.extras.gpu.step import StaticStep
from tandem.extras.gpu.tests.support import (
    POOLED,
    RECURRENT,
    SIZES,
    assert_same,
    decoded,
    mixed,
    options,
    prepared,
    sources,
    static,
)
from tandem.models.errors import DeviceLost, OptionError
from tandem.models.search import DecodeBatch, OfflineDecoder, Sampling, SearchOptions, Sentence, start_batch
from tandem.models.search.shortlist import Shortlist
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.search.tables import run_out

UNSUPPORTED: dict[str, dict[str, Any]] = {
    "sampling": {"sampling": Sampling(seed=3)},
    "exhaustive": {"exhaustive": True},
    "required": {"required": (4, 5, 6, 7)},
    "suppressed": {"suppressed": (0, 1, 7, 8) * 3},
    "max_length": {"max_length": 16},
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_the_device_does_not_have_is_refused_or_routed(name: str) -> None:
    model = prepared(POOLED)
    general = TorchGraphs(model)
    plain, other = ({"max_length": 7} | extra for extra in ({}, UNSUPPORTED[name]))
    known = sources(model, (4, 6))
    joining = [
        Sentence("plain", known[0], SearchOptions(beam_size=2, n_best=2, **plain)),
        Sentence("other", known[1], SearchOptions(beam_size=2, n_best=2, **other)),
    ]
    batch = static(model, 2)
    assert [batch.lacks(one) for one in joining] == ["", name]
    with pytest.raises(OptionError) as refused:
        batch.join(joining)
    assert refused.value.field == name
    assert len(batch) == 0
    expected = decoded(DecodeBatch(general, beam_size=2), joining)
    routed = RoutedBatch(batch, DecodeBatch(general, beam_size=2))
    assert_same(decoded(routed, joining), expected)
    assert routed.counters.steps > 0
    assert batch.device_counters.routed == {name: 1}
    assert batch.device_counters.sentences == 1


def test_sentences_whose_shortlist_is_not_used_are_counted() -> None:
    model = prepared(POOLED)
    graphs, listing = DeviceGraphs(model, sizes=SIZES), cast("Shortlist", object())
    first, second = sources(model, (4, 3))
    joining = [Sentence("here", first, options(2)), Sentence("there", second, replace(options(2), exhaustive=True))]
    plain, listed = (decoded(graphs.start_batch(2, shortlist=given), joining) for given in (None, listing))
    assert_same(listed, plain)
    assert graphs.counters.unlisted == 2
    graphs.start_batch(2, alone=True)
    assert graphs.counters.unlisted == 2
    graphs.start_batch(2, shortlist=listing, alone=True)
    assert graphs.counters.unlisted == 3


def test_a_routed_batch_refuses_and_removes_from_both() -> None:
    model = prepared(POOLED)
    batch = DeviceGraphs(model, sizes=SIZES).start_batch(2)
    first, second = sources(model, (4, 3))
    here = Sentence("here", first, options(2))
    there = Sentence("there", second, SearchOptions(beam_size=2, max_length=9, exhaustive=True))
    with pytest.raises(ValueError, match="already"):
        batch.join([here, there, Sentence("there", first, options(2))])
    assert len(batch) == 0 and batch.rows == 0
    batch.join([here, there])
    assert set(batch.ids) == {"here", "there"} and batch.rows > 0
    batch.remove(["there", "nobody"])
    assert set(run_out(batch)) == {"here"}


def test_the_offline_driver_fills_the_slots_of_a_device() -> None:
    """Two batches' worth of sentences are handed over at a time, in the order of their length."""
    model = prepared(POOLED)
    search, many = options(3), sources(model, (5, 2, 7, 4, 9, 3, 6, 2, 8, 5, 4))
    graphs = DeviceGraphs(model, sizes=SIZES)
    found, expected = (list(OfflineDecoder(own, search).decode(many)) for own in (graphs, TorchGraphs(model)))
    assert_same(*({n: tuple(one) for n, one in enumerate(own)} for own in (found, expected)))  # type: ignore[arg-type]
    assert graphs.counters.sentences == len(many) > 2 * graphs.slots == 8


def test_buffers_of_a_batch_that_is_gone_serve_the_next() -> None:
    model = prepared(POOLED)
    graphs = DeviceGraphs(model, sizes=SIZES)
    joining = mixed(model, 2)
    with patch("tandem.extras.gpu.routing.CapturedStep", wraps=CapturedStep) as made:
        first = graphs.start_batch(2)
        first.join(joining)
        first.step()
        second = start_batch(graphs, beam_size=2)
        assert made.call_count == 2  # the first is still held
        del first
        third = graphs.start_batch(2)
        assert made.call_count == 2
        graphs.start_batch(2, bos=4)  # it would begin otherwise
        assert made.call_count == 3
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    for batch in (third, second):
        assert_same(decoded(batch, joining), expected)


def test_without_room_there_are_fewer_slots() -> None:
    model = prepared(POOLED)
    graphs = DeviceGraphs(model, sizes=Sizes((4, 16), (16,), (16,)))
    tried: list[int] = []

    def cramped(*given: Any, sizes: Sizes, **named: Any) -> CapturedStep:
        tried.append(sizes.sentences[-1])
        if sizes.sentences[-1] > 4:
            raise torch.OutOfMemoryError
        return CapturedStep(*given, sizes=sizes, **named)

    with patch("tandem.extras.gpu.routing.CapturedStep", cramped):
        batch = graphs.start_batch(2)
    assert tried == [16, 8, 4]
    assert graphs.counters.out_of_memory == 2
    joining = mixed(model, 2)
    assert_same(decoded(batch, joining), decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining))
    with (
        patch("tandem.extras.gpu.routing.CapturedStep", side_effect=torch.OutOfMemoryError),
        pytest.raises(RuntimeError),
    ):
        graphs.start_batch(3)


def test_idle_buffers_of_another_model_make_room() -> None:
    model = prepared(POOLED)
    other, graphs = DeviceGraphs(model, sizes=SIZES), DeviceGraphs(model, sizes=SIZES)
    other.start_batch(2)
    made = 0

    def cramped(*given: Any, **named: Any) -> CapturedStep:
        nonlocal made
        made += 1
        if any(other._idle.values()):
            raise torch.OutOfMemoryError
        return CapturedStep(*given, **named)

    with patch("tandem.extras.gpu.routing.CapturedStep", cramped):
        graphs.start_batch(2)
    assert made == 2


BUFFERS, BUDGET = 100, 1000


class Bounded(DeviceMemory):
    """Of a device where every set of buffers takes as much, and a pool what the largest of its graphs needs."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self._budget, self.needed = BUDGET, 0
        self.made: weakref.WeakSet[CapturedStep] = weakref.WeakSet()

    def make(self, *given: Any, **named: Any) -> CapturedStep:
        recorder = SimpleNamespace(record=lambda work: SimpleNamespace(replay=work))
        step = CapturedStep(*given, recorder=lambda: recorder, **named)
        self.made.add(step)
        return step

    @property
    def reserved(self) -> int:
        return sum(BUFFERS + step._steps._pooled for step in self.made)

    @property
    def room(self) -> float:
        return BUDGET - self.reserved

    def taken_by(self, work: Callable[[], None]) -> int:
        work()
        return self.needed


def test_the_least_recently_used_goes_until_there_is_room_graphs_before_buffers() -> None:
    """And no graph that was used later than what is enough, nor buffers that are in use."""
    graphs, memory = DeviceGraphs(prepared(RECURRENT), sizes=Sizes((1,), (4,), (2, 4, 8))), Bounded()
    graphs._memory = memory
    small, middle, large = (Shape(1, (4,), target) for target in (2, 4, 8))
    with patch("tandem.extras.gpu.routing.CapturedStep", memory.make):
        batches = [graphs.start_batch(beam_size) for beam_size in (1, 2, 3)]

    def take(beam_size: int, shape: Shape, needed: int) -> dict[int, int]:
        """A step; the graphs of each set of buffers after it."""
        memory.needed = needed
        next(step for step in memory.made if step.beam_size == beam_size)(shape)
        assert memory.reserved <= BUDGET
        return {step.beam_size: len(step._steps) for step in memory.made}

    take(1, small, 50)
    take(2, small, 50)
    assert take(1, middle, 80) == {1: 2, 2: 1, 3: 0}
    del batches[:2]
    assert take(3, small, 600) == {1: 2, 2: 0, 3: 1}  # the pool that was used first
    assert take(3, middle, 690) == {1: 0, 2: 0, 3: 2}  # the older graph shared its pool with the other
    assert take(3, large, 800) == {1: 0, 3: 1}  # all of its own, and only then the buffers that were used first
    assert (graphs.counters.evictions, graphs.counters.out_of_memory) == (5, 0)


def test_buffers_are_free_with_their_last_user() -> None:
    """Not when garbage is collected next."""
    graphs = DeviceGraphs(prepared(RECURRENT), sizes=SIZES)
    step = weakref.ref(graphs._step(2, 1, 2))
    gc.disable()
    try:
        assert step() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError(), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")])
def test_a_step_without_room_gives_up_graphs_and_idle_buffers_for_the_next(error: RuntimeError) -> None:
    model = prepared(POOLED)
    graphs = DeviceGraphs(model, sizes=SIZES)
    batch = graphs.start_batch(2)
    batch.join(mixed(model, 2)[:2])
    with patch.object(StaticStep, "forward", side_effect=error), pytest.raises(RuntimeError):
        batch.step()
    assert graphs.counters.out_of_memory == 1
    batch.remove(batch.ids)
    joining = mixed(model, 2)
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    assert_same(decoded(graphs.start_batch(2), joining), expected)


def test_a_lost_device_is_told_from_a_step_that_failed() -> None:
    model = prepared(POOLED)
    graphs = DeviceGraphs(model, sizes=SIZES)
    batch = graphs.start_batch(2)
    batch.join(mixed(model, 2)[:2])
    with patch.object(StaticStep, "forward", side_effect=RuntimeError("a step")):
        with pytest.raises(RuntimeError, match="a step"):
            batch.step()
        gone = DeviceLost("cuda:0 does not work any more: illegal address")
        with patch("tandem.extras.gpu.routing.lost", return_value=gone):
            with pytest.raises(DeviceLost, match="illegal address"):
                batch.step()
            with patch.object(Slots, "drop", side_effect=RuntimeError), pytest.raises(DeviceLost):
                batch.remove([0])
            with patch.object(Slots, "clear", side_effect=RuntimeError), pytest.raises(DeviceLost):
                graphs.start_batch(2)


@pytest.mark.parametrize("alone", [True, False])
def test_a_device_lost_in_the_general_search_is_told_too(alone: bool) -> None:
    """Of a sentence that is tried again alone, and of one that the device does not decode."""
    model = prepared(POOLED)
    batch = DeviceGraphs(model, sizes=SIZES).start_batch(2, alone=alone)
    (one,) = mixed(model, 2)[:1]
    gone = DeviceLost("cuda:0 does not work any more: illegal address")
    with (
        patch.object(TorchGraphs, "_run", side_effect=RuntimeError("a step")),
        patch("tandem.models.steps.torch_graphs.lost", return_value=gone),
        pytest.raises(DeviceLost, match="illegal address"),
    ):
        batch.join([replace(one, options=replace(one.options, sampling=Sampling(seed=3)))])
