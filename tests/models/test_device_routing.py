"""What the device cannot decode goes through the graphs; buffers of batches that are gone serve the next."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch

from models.device import CapturedStep, DeviceGraphs, RoutedBatch, Sizes, check_device
from models.device.slots import Slots
from models.errors import ConfigError, DeviceLost, OptionError
from models.graphs import TorchGraphs
from models.search import DecodeBatch, OfflineDecoder, Sampling, SearchOptions, Sentence, start_batch
from tests.models.device import POOLED, SIZES, assert_same, decoded, mixed, options, prepared, sources, static
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
    with patch("models.device.routing.CapturedStep", wraps=CapturedStep) as made:
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

    with patch("models.device.routing.CapturedStep", cramped):
        batch = graphs.start_batch(2)
    assert tried == [16, 16, 8, 4]  # once more with what others kept, then smaller
    assert graphs.counters.out_of_memory == 3
    joining = mixed(model, 2)
    assert_same(decoded(batch, joining), decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining))
    with patch("models.device.routing.CapturedStep", side_effect=torch.OutOfMemoryError), pytest.raises(RuntimeError):
        graphs.start_batch(3)


def test_idle_buffers_of_another_model_make_room() -> None:
    model = prepared(POOLED)
    other, graphs = DeviceGraphs(model, sizes=SIZES), DeviceGraphs(model, sizes=SIZES)
    other.start_batch(2)
    made = 0

    def cramped(*given: Any, **named: Any) -> CapturedStep:
        nonlocal made
        made += 1
        if other._idle:
            raise torch.OutOfMemoryError
        return CapturedStep(*given, **named)

    with patch("models.device.routing.CapturedStep", cramped):
        graphs.start_batch(2)
    assert made == 2


@pytest.mark.parametrize("error", [torch.OutOfMemoryError(), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")])
def test_a_step_without_room_gives_up_graphs_and_idle_buffers_for_the_next(error: RuntimeError) -> None:
    model = prepared(POOLED)
    graphs = DeviceGraphs(model, sizes=SIZES)
    batch = graphs.start_batch(2)
    batch.join(mixed(model, 2)[:2])
    with patch.object(CapturedStep, "_run", side_effect=error), pytest.raises(RuntimeError):
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
    with patch.object(CapturedStep, "_run", side_effect=RuntimeError("a step")):
        with pytest.raises(RuntimeError, match="a step"):
            batch.step()
        gone = DeviceLost("cuda:0 does not work any more: illegal address")
        with patch("models.device.routing.lost", return_value=gone):
            with pytest.raises(DeviceLost, match="illegal address"):
                batch.step()
            with patch.object(Slots, "drop", side_effect=RuntimeError), pytest.raises(DeviceLost):
                batch.remove([0])
            with patch.object(Slots, "clear", side_effect=RuntimeError), pytest.raises(DeviceLost):
                graphs.start_batch(2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="of machines without a GPU")
def test_devices_are_checked() -> None:
    assert check_device("cpu") == check_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:3"):
        with pytest.raises(ConfigError, match="is no GPU of this machine"):
            check_device(name)
    for name in ("tpu", "mps", "cuda:x"):
        with pytest.raises(ConfigError, match="must be cpu, cuda, cuda:N or auto"):
            check_device(name)
