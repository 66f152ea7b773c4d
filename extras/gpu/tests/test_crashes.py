"""Batches of the device under the engine: sentences of one that crashed are tried alone, in the general search."""

from __future__ import annotations

import asyncio
import threading
from unittest.mock import patch

import pytest

pytest.importorskip("structlog", reason="the engine is the service's")
pytest.importorskip("fastapi", reason="what tests of the engine share is the service's")

from structlog.testing import capture_logs

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import CapturedStep
from tandem.extras.gpu.routing import DeviceGraphs
from tandem.extras.gpu.tests.support import POOLED, SIZES, prepared
from tandem.models.errors import DeviceLost
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.service.engine import DecodingFailed
from tandem.service.engine.engine import _factory
from tests.service.engine.dispatchers import alone, bench, hypotheses, job
from tests.service.support import PATIENCE

pytestmark = pytest.mark.anyio


async def test_a_device_that_is_lost_while_sentences_are_tried_alone_is_lost() -> None:
    """In the general search, which the device's own batches leave them to."""
    told, gone = threading.Event(), DeviceLost("cuda:0 does not work any more: an illegal address")
    with (
        patch.object(StaticBatch, "step", side_effect=RuntimeError("a step")),
        patch.object(TorchGraphs, "_run", side_effect=RuntimeError("an illegal address")),
        patch("tandem.models.steps.torch_graphs.lost", return_value=gone),
        capture_logs(),
    ):
        async with bench(_factory(DeviceGraphs(prepared(POOLED), sizes=SIZES), None)) as running:
            running.dispatcher.on_loss = told.set
            outcomes = await running.outcomes(job(4, 5), job(4, 6))
            assert await asyncio.to_thread(told.wait, PATIENCE)
            assert running.dispatcher.lost is gone
    assert [type(one) for one in outcomes] == [DecodingFailed] * 2


async def test_sentences_tried_alone_share_the_buffers_that_are_there() -> None:
    """Those of a device have room for a whole batch: each of hundreds with its own would leave no memory."""
    graphs = DeviceGraphs(prepared(POOLED), sizes=SIZES)
    jobs = [job(4, 5 + number) for number in range(3)]
    with (
        patch("tandem.extras.gpu.routing.CapturedStep", wraps=CapturedStep) as made,
        patch.object(StaticBatch, "step", side_effect=RuntimeError("a step")),
    ):
        async with bench(_factory(graphs, None)) as running:
            found = [hypotheses(one) for one in await running.outcomes(*jobs)]
    assert made.call_count == 1
    assert graphs.counters.routed == {"alone": len(jobs)}
    for one, own in zip(jobs, found, strict=True):
        expected = alone(graphs, one)
        assert [x.tokens for x in own] == [x.tokens for x in expected]
