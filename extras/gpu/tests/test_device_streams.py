"""What only a GPU does, by its rules: captures that fail, threads and streams that might meet."""

from __future__ import annotations

import gc
import threading
from typing import Any
from unittest.mock import patch

import pytest
import torch

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import CapturedStep, CudaRecorder
from tandem.extras.gpu.tests.cuda import STREAMS, FakeCuda, Races
from tandem.extras.gpu.tests.support import POOLED, SIZES, assert_same, decoded, mixed, prepared
from tandem.extras.gpu.transfer import Streams
from tandem.models.search import DecodeBatch
from tandem.models.steps.devices import lost
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import Case, first_cases
from tests.models.search.tables import run_out

GPU = torch.device("cuda:0")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return FakeCuda(monkeypatch)


@pytest.mark.parametrize("why", ["invalid", "out of memory", "no graph"])
@pytest.mark.parametrize("first", [False, True])
def test_a_capture_that_fails_costs_no_other(cuda: FakeCuda, why: str, first: bool) -> None:
    recorder = CudaRecorder()

    def fail() -> None:
        if why == "invalid":
            torch.cuda.synchronize()
        if why == "out of memory":
            raise torch.OutOfMemoryError
        cuda.no_room = True

    kept = [] if first else [recorder.record(lambda: None)]
    with pytest.raises(RuntimeError):
        recorder.record(fail)
    cuda.no_room = False
    kept.append(recorder.record(lambda: None))
    assert not cuda.underway and cuda.capturing is None
    for graph in kept:
        graph.replay()
    kept.clear()
    del graph
    assert not any(cuda.pools.values())


def test_nothing_is_collected_within_a_capture(cuda: FakeCuda) -> None:
    seen: list[bool] = []
    CudaRecorder().record(lambda: seen.append(gc.isenabled()))
    assert seen == [False] and gc.isenabled()


def test_a_device_is_not_waited_for_while_another_thread_captures(cuda: FakeCuda) -> None:
    """It would be taken for lost, and the capture would fail."""
    step = CapturedStep(prepared(POOLED), beam_size=1, sizes=SIZES, recorder=CudaRecorder)
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(lost(GPU, RuntimeError("a step"))))

    def work() -> None:
        if cuda.capturing is not None:
            other.start()
            other.join(0.1)

    step._steps.run("key", work)
    other.join()
    assert found == [None]
    assert (step.counters.captures, step.counters.capture_failures) == (1, 0)


def test_captures_have_streams_of_their_own(cuda: FakeCuda) -> None:
    """torch hands out the same streams again and again."""
    held = [Streams(GPU) for _ in range(STREAMS)]
    assert not any(one.shared for one in held)
    assert len({one._steps for one in held} | {one._encodings for one in held}) == 2 * STREAMS
    assert Streams(GPU).shared
    del held[3]
    assert not Streams(GPU).shared


class OnGpu(CapturedStep):
    """Encodes as on a GPU, in streams."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.streams = Streams(GPU)

    def encode(self, sources: Any) -> Any:
        return self.encode_captured(sources)


@first_cases
def test_no_stream_runs_ahead_of_another(case: Case, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    model = prepared(case)
    joining = mixed(model, 2)[:5]
    step = OnGpu(model, beam_size=2, sizes=SIZES)
    lasting = [*model.parameters(), *model.buffers(), *step.buffers()]
    with Races(cuda, lasting, monkeypatch) as races:
        batch = StaticBatch(step, poll_every=3, lag=True)
        batch.join(joining[:2])
        found = {one.id: one.hypotheses for _ in range(2) for one in batch.step()}
        batch.join(joining[2:])
        found |= run_out(batch)
        batch.join(joining[:1])
        batch.remove([0])
        found |= decoded(batch, joining[:1])
    assert races.streams == {step.streams._steps, step.streams._encodings}
    assert_same(found, decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining))


@pytest.mark.parametrize("missing", ["wait_event", "record_stream"])
def test_running_ahead_is_noticed(missing: str, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    model = prepared(POOLED)
    step = OnGpu(model, beam_size=2, sizes=SIZES)
    with Races(cuda, [*model.parameters(), *step.buffers()], monkeypatch):
        owner = torch.Tensor if missing == "record_stream" else torch.cuda.Stream
        with patch.object(owner, missing, lambda *_: None), pytest.raises(AssertionError, match="another stream"):
            decoded(StaticBatch(step, lag=True), mixed(model, 2)[:2])
