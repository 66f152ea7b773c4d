"""The search on a GPU: what the CPU finds, replayed as it is computed, and nothing that waits or allocates."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
import torch

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import CapturedStep
from tandem.extras.gpu.routing import DeviceGraphs
from tandem.extras.gpu.sizes import Shape
from tandem.extras.gpu.step import StaticStep
from tandem.extras.gpu.tests.support import POOLED, SIZES, assert_same, decoded, mixed, options, prepared, sources
from tandem.models.search import DecodeBatch, Sampling, SearchOptions, Sentence
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.cuda import no_waiting
from tests.models.architectures.examples import AnyModel, Case, first_cases
from tests.models.search.tables import run_out

pytestmark = pytest.mark.gpu
NARROW = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True)
def _exact_products() -> Iterator[None]:
    """Products of float32 matrices without TensorFloat-32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def on_gpu(case: Case, dtype: torch.dtype = torch.float32) -> AnyModel:
    return prepared(case).to("cuda", dtype)


@first_cases
def test_hypotheses_are_the_cpus(case: Case) -> None:
    """With graphs and without, in the order of joining and late."""
    joining = mixed(prepared(case), 4)
    expected = decoded(DecodeBatch(TorchGraphs(prepared(case)), beam_size=4), joining)
    for kind in (StaticStep, CapturedStep):
        batch = StaticBatch(kind(on_gpu(case), beam_size=4, sizes=SIZES))
        batch.join(joining[:3])
        found = {one.id: one.hypotheses for one in batch.step()}
        batch.join(joining[3:])
        assert_same(found | run_out(batch), expected, 1e-3)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@first_cases
def test_replays_are_what_is_computed(case: Case, dtype: torch.dtype) -> None:
    model = on_gpu(case, dtype)
    joining = mixed(model, 3)
    captured = CapturedStep(model, beam_size=3, sizes=SIZES)
    for _ in range(2):  # the second time all is replayed
        found = decoded(StaticBatch(captured), joining)
    assert_same(found, decoded(StaticBatch(StaticStep(model, beam_size=3, sizes=SIZES)), joining), 1e-6)
    assert captured.counters.capture_failures == 0
    assert captured.counters.replays > captured.counters.captures > 0


@first_cases
def test_a_burst_neither_waits_nor_allocates(case: Case) -> None:
    model = on_gpu(case, torch.float16)
    step = CapturedStep(model, beam_size=3, sizes=SIZES)
    addresses = {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    decoded(StaticBatch(step), mixed(model, 3))
    shape = Shape(4, (16,) * len(step.records.sources), 16, repeats=True, required=True)
    with torch.inference_mode(), step.streams.stepping():
        step(shape)
        allocated = torch.cuda.memory_allocated()
        with no_waiting():
            for _ in range(1000):
                step(shape)
            download = step.slots.look()
        download.arrays()
    assert torch.cuda.memory_allocated() == allocated
    assert addresses == {name: buffer.data_ptr() for name, buffer in step.named_buffers()}


def test_the_eager_step_does_not_wait_either() -> None:
    model = on_gpu(POOLED)
    step = StaticStep(model, beam_size=3, sizes=SIZES)
    StaticBatch(step).join(mixed(model, 3)[:4])
    with torch.inference_mode(), step.streams.stepping():
        step(Shape(4, (16,), 16, repeats=True, required=True))
        with no_waiting():
            step(Shape(4, (16,), 16, repeats=True, required=True))


def test_what_the_device_lacks_is_decoded_there_by_the_general_search() -> None:
    model = on_gpu(POOLED, torch.bfloat16)
    (source,) = sources(model, (5,))
    graphs = DeviceGraphs(model, sizes=SIZES)
    batch = graphs.start_batch(2)
    sampled = SearchOptions(beam_size=2, n_best=2, max_length=6, sampling=Sampling(seed=1))
    found = decoded(batch, [Sentence("sampled", source, sampled), Sentence("searched", source, options(2))])
    assert set(found) == {"sampled", "searched"}
    assert graphs.counters.routed == {"sampling": 1}


def test_a_capture_that_fails_costs_no_other() -> None:
    """Nor memory: what two streams have used is free again once both are done."""
    model = on_gpu(POOLED)
    joining = mixed(model, 2)
    expected = decoded(DecodeBatch(TorchGraphs(prepared(POOLED)), beam_size=2), joining)
    step = CapturedStep(model, beam_size=2, sizes=SIZES)
    run, failed = StaticStep.forward, list[Shape]()

    def waiting(self: StaticStep, shape: Shape) -> None:
        run(self, shape)
        if torch.cuda.is_current_stream_capturing() and not failed:
            failed.append(shape)
            self.slots.age_B.cpu()  # not permitted

    with patch.object(StaticStep, "forward", waiting):
        found = decoded(StaticBatch(step), joining)
    assert (step.counters.capture_failures, len(failed)) == (1, 1)
    assert step.counters.captures > 0
    assert_same(found, expected, 1e-3)
    allocated = []
    for _ in range(3):
        assert_same(decoded(StaticBatch(step), joining), expected, 1e-3)
        torch.cuda.synchronize()
        allocated.append(torch.cuda.memory_allocated())
    assert allocated[2] <= allocated[1]


def test_without_room_the_next_batch_has_some() -> None:
    model = on_gpu(POOLED)
    graphs = DeviceGraphs(model, sizes=SIZES, memory=0.5)
    joining = mixed(model, 2)
    batch = graphs.start_batch(2)
    batch.join(joining)
    with patch.object(CapturedStep, "forward", side_effect=torch.OutOfMemoryError), pytest.raises(RuntimeError):
        batch.step()
    assert graphs.counters.out_of_memory == 1
    expected = decoded(DecodeBatch(TorchGraphs(prepared(POOLED)), beam_size=2), joining)
    assert_same(decoded(graphs.start_batch(2), joining), expected, 1e-3)
