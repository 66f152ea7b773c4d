"""A device that neither answers nor fails is a lost one; one that is slow, or has nothing to do, is not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.service.bundles.readiness import Readiness, probe_job
from tandem.service.engine import DecodingFailed, Draining, Engine, EngineOptions, SchedulerLimits
from tandem.service.engine.stalls import StallWatch
from tandem.service.settings import Settings
from tests.models.search.tables import TableGraphs
from tests.service.engine.dispatchers import LONG, SIZE, SteppedGraphs, bench, endless, job, plain
from tests.service.support import PATIENCE, CopyGraphs, copying
from tests.shipped import ROOT

pytestmark = pytest.mark.anyio


def looks(watch: StallWatch, most: int = 100) -> int | None:
    """After how many looks a stall is seen; None = never."""
    return next((number for number in range(1, most + 1) if watch.stalled()), None)


def test_a_call_that_every_look_sees_is_a_stall_and_nothing_else_is() -> None:
    calm, stuck = SimpleNamespace(busy=False, calls=7), SimpleNamespace(busy=True, calls=3)
    watch = StallWatch(cast("Any", None), cast("Any", [calm, stuck]), 120.0)
    seen = looks(watch)
    assert seen is not None and seen > 1
    stuck.calls += 1
    assert not watch.stalled()  # it has gone on
    assert looks(watch) == seen - 1
    for _ in range(3):  # slow: each call is seen as often as may be
        stuck.calls += 1
        assert looks(watch, seen - 1) is None
    stuck.busy = False
    assert looks(watch) is None  # it waits for work


async def test_a_worker_shows_its_calls_and_whether_it_has_work() -> None:
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))
    async with bench(plain(graphs)) as running:
        (worker,) = running.workers
        seen = [(worker.busy, worker.calls)]
        (future,) = running.submit(job(4, options=LONG))
        for _ in range(3):
            await graphs.next_step()
            seen.append((worker.busy, worker.calls))
            graphs.allowed.release()
        busy, calls = zip(*seen, strict=True)
        assert busy == (False, True, True, True)
        assert list(calls) == sorted(set(calls))
        graphs.allowed.release(1_000)
        await running.settle([future])
        async with asyncio.timeout(PATIENCE):
            while worker.busy:
                await asyncio.sleep(0)


@pytest.fixture
def stalling(bundles: dict[str, Bundle]) -> tuple[Engine, CopyGraphs]:
    """An engine whose device may take a moment for a call, and a model whose steps can be held for ever."""
    engine = Engine(EngineOptions(limits=SchedulerLimits(max_batch_sentences=1), stall=0.5))
    graphs = copying(bundles["de-en"])
    engine.add(bundles["de-en"], graphs)
    return engine, graphs


async def test_a_device_that_stalls_is_lost(bundles: dict[str, Bundle], stalling: tuple[Engine, CopyGraphs]) -> None:
    """What runs and waits fails, readiness says why, whoever watches is told, and stopping does not wait for it."""
    engine, graphs = stalling
    told = threading.Event()
    engine.dispatcher.on_loss = told.set
    engine.start()
    jobs = [probe_job(bundles["de-en"]) for _ in range(2)]
    with capture_logs() as logs:
        async with graphs.held(lambda: asyncio.gather(*engine.submit(jobs), return_exceptions=True)) as decoding:
            idle = asyncio.create_task(asyncio.to_thread(engine.dispatcher.wait_until_idle, 10 * PATIENCE))
            async with asyncio.timeout(PATIENCE):
                outcomes = await decoding
                assert not await idle
            assert await asyncio.to_thread(told.wait, PATIENCE)
            assert not await asyncio.to_thread(engine.stop, 10 * PATIENCE)
            (fault,) = await Readiness(engine, PATIENCE, 0).faults()
    (stall,) = [entry for entry in logs if entry["event"] == "device_stalled"]
    assert [one.incident for one in outcomes if isinstance(one, DecodingFailed)] == [stall["incident"]] * 2
    assert fault == str(engine.dispatcher.lost) == "the device has not answered for 0.5 s"
    assert engine.dispatcher.counters.failed == 2
    with pytest.raises(Draining):
        engine.submit(jobs)


def test_only_a_gpu_is_watched() -> None:
    assert Settings(probe_timeout=300).engine_options().stall is None
    plain = Settings().engine_options("cuda:0").stall
    assert plain is not None and plain > 60
    assert Settings(probe_timeout=300).engine_options("cuda:0").stall == 600


def test_the_process_ends_with_status_1_though_a_thread_waits_for_ever(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.service.engine.stalling", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "device_lost" in ended.stdout + ended.stderr
