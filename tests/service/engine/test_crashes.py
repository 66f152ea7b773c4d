"""Crashes, of the runtime and of the books: they cost a sentence and nobody else, and every sentence ends."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tandem.models.errors import DeviceLost
from tandem.models.search import DecodeBatch, Finished, SearchOptions, Sentence
from tandem.service.engine import BatchKey, Decoded, DecodingFailed, Draining, Load, Scheduler, Ticket
from tests.models.search.tables import TableGraphs, hashed
from tests.service.engine.dispatchers import (
    LONG,
    OPTIONS,
    SIZE,
    FaultyBatch,
    SteppedGraphs,
    alone,
    bench,
    endless,
    hypotheses,
    job,
    plain,
)
from tests.service.support import PATIENCE

pytestmark = pytest.mark.anyio


PLACES = ("before join", "after join", "before step", "after step", "before remove", "forget", "swallow", "start")
WORK = st.lists(
    st.tuples(st.lists(st.integers(4, 8), min_size=1, max_size=5), st.integers(1, 3), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(
    work=WORK,
    faults=st.sets(st.tuples(st.sampled_from(PLACES), st.integers(1, 6)), max_size=4),
    workers=st.integers(1, 2),
)
async def test_whatever_crashes_every_sentence_ends_and_what_is_answered_is_right(
    work: list[tuple[list[int], int, bool]], faults: set[tuple[str, int]], workers: int
) -> None:
    """The n-th call of a kind crashes, and some are taken back meanwhile. Nobody hangs, and the next one is served."""
    graphs, calls, lock = TableGraphs(hashed(SIZE), SIZE), Counter[str](), threading.Lock()

    def at_fault(where: str) -> bool:
        with lock:
            calls[where] += 1
            return (where, calls[where]) in faults

    def start(key: BatchKey) -> DecodeBatch:
        if at_fault("start"):
            raise RuntimeError("crashed at the start")
        return FaultyBatch(graphs, key, at_fault)

    jobs = [job(*tokens, options=SearchOptions(beam_size=beam, max_length=6)) for tokens, beam, _ in work]
    async with bench(start, workers=workers, max_batch_sentences=4) as running:
        with capture_logs():
            futures = running.submit(*jobs)
            for future, (_, _, leaves) in zip(futures, work, strict=True):
                if leaves:
                    future.cancel()
            outcomes = await running.settle(futures)
            await running.idle()
        faults.clear()
        (after,) = await running.outcomes(job(4, 6))
        assert hypotheses(after) == alone(graphs, job(4, 6))
        counters = running.dispatcher.counters
        assert running.dispatcher.queued_tokens == 0
    for outcome, one, (_, _, leaves) in zip(outcomes, jobs, work, strict=True):
        assert isinstance(outcome, asyncio.CancelledError if leaves else (Decoded, DecodingFailed))
        assert not isinstance(outcome, Decoded) or outcome.hypotheses == alone(graphs, one)
    # One end for each; a sentence may end before the engine hears that nobody wants it any more.
    ends = counters.finished + counters.failed + counters.cancelled + counters.expired
    assert ends == len(jobs) + 1
    assert counters.failed >= sum(isinstance(one, DecodingFailed) for one in outcomes)
    assert counters.finished > sum(isinstance(one, Decoded) for one in outcomes)


@pytest.mark.parametrize("where", ["before step", "after step", "forget"])
async def test_a_crash_that_does_not_come_back_costs_nobody(where: str) -> None:
    """Its batch is decoded again; the other batch of the worker, and those who wait, have not noticed."""
    graphs, calls = TableGraphs(hashed(SIZE), SIZE), Counter[str]()

    def start(key: BatchKey) -> DecodeBatch:
        def at_fault(place: str) -> bool:
            calls[place] += key.beam_size == 3
            return place == where and key.beam_size == 3 and calls[place] == 1

        return FaultyBatch(graphs, key, at_fault)

    wide = SearchOptions(beam_size=3, min_length=8, max_length=9)
    jobs = [job(4, 5, options=wide), job(6, options=wide), job(4, 5), job(6, 7), job(8), job(5)]
    async with bench(start, max_batch_sentences=2) as running:
        with capture_logs() as logs:
            outcomes = await running.settle(running.submit(*jobs))
            await running.idle()
    # What "forget" has dropped from its batch is decoded again like the others.
    assert [hypotheses(one) for one in outcomes] == [alone(graphs, one) for one in jobs]
    assert [entry["event"] for entry in logs] == ["batch_crashed"]


async def test_a_sentence_that_crashes_whatever_it_is_with_costs_itself() -> None:
    graphs = TableGraphs(hashed(SIZE), SIZE)

    class Poisoned(DecodeBatch):
        """Crashes while it holds the source 7, 7."""

        poisons: frozenset[Hashable] = frozenset()

        def join(self, sentences: Sequence[Sentence]) -> None:
            super().join(sentences)
            self.poisons |= {one.id for one in sentences if one.sources[0].tolist()[:2] == [7, 7]}

        def step(self) -> list[Finished]:
            if self.poisons & set(self.ids):
                raise RuntimeError("crashed in a step")
            return super().step()

    slow = SearchOptions(beam_size=2, min_length=4, max_length=6)
    jobs = [job(n, 5, options=slow) for n in (4, 6, 8)] + [job(7, 7, options=slow)]
    async with bench(lambda key: Poisoned(graphs, beam_size=key.beam_size), max_batch_sentences=4) as running:
        with capture_logs() as logs:
            outcomes = await running.settle(running.submit(*jobs))
            await running.idle()
        counters = running.dispatcher.counters
        assert (counters.finished, counters.failed, running.dispatcher.sentences) == (3, 1, (0, 0))
    assert [hypotheses(one) for one in outcomes[:3]] == [alone(graphs, one) for one in jobs[:3]]
    assert isinstance(outcomes[3], DecodingFailed)
    failures = [entry for entry in logs if entry["event"] == "decoding_failed"]
    assert [entry["incident"] for entry in failures] == [outcomes[3].incident]


async def test_a_crash_while_taking_sentences_out_costs_nobody_else() -> None:
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))

    def start(key: BatchKey) -> DecodeBatch:
        return FaultyBatch(graphs, key, lambda place: place == "before remove" and key.beam_size == 3)

    wide = SearchOptions(beam_size=3, max_length=35)
    async with bench(start) as running:
        leaving, mate = running.submit(job(4, options=wide), job(5, options=wide))
        (safe,) = running.submit(job(6, options=LONG))
        while {(4,), (6,)} - set().union(*graphs.seen[2:]):
            await graphs.next_step()
            graphs.allowed.release()
        leaving.cancel()
        await asyncio.sleep(0)
        graphs.allowed.release(1_000)
        with capture_logs():
            outcomes = await running.settle([mate, safe])
    # The batch could not let go of who left, so it was given up; its other sentence, by then alone in it, is at fault.
    assert isinstance(outcomes[0], DecodingFailed)
    assert len(hypotheses(outcomes[1])[0].tokens) == 35


@pytest.mark.parametrize("where", ["before join", "after join", "start"])
async def test_a_crash_while_joining_spares_those_who_run(where: str) -> None:
    """The joiners are tried one by one; where the crash does not come back, nobody has noticed it."""
    graphs, calls = SteppedGraphs(TableGraphs(endless, SIZE)), Counter[str]()
    crash = threading.Event()

    def at_fault(place: str) -> bool:
        calls[place] += crash.is_set()
        return place == where and crash.is_set() and calls[place] == 1

    def start(key: BatchKey) -> DecodeBatch:
        if at_fault("start"):
            raise RuntimeError("crashed at the start")
        return FaultyBatch(graphs, key, at_fault)

    async with bench(start) as running:
        (going,) = running.submit(job(4, options=LONG))
        await graphs.next_step()
        await graphs.go_on()  # it has joined
        crash.set()
        beam = 3 if where == "start" else 2
        joining = running.submit(*(job(n, options=SearchOptions(beam_size=beam, max_length=5)) for n in (5, 6)))
        graphs.allowed.release(1_000)
        with capture_logs():
            outcomes = await running.settle([going, *joining])
    assert len(hypotheses(outcomes[0])[0].tokens) == 35
    if where == "start":
        assert all(isinstance(one, DecodingFailed) for one in outcomes[1:])
    else:
        assert [len(hypotheses(one)[0].tokens) for one in outcomes[1:]] == [5, 5]


class CrashingScheduler(Scheduler):
    """Its second plan crashes, after it has looked at what waits."""

    plans = 0

    def _choose(self, loads: Mapping[BatchKey, Load], share: int) -> list[tuple[BatchKey, list[Ticket]]]:
        self.plans += 1
        chosen = super()._choose(loads, share)
        if self.plans == 2:
            raise RuntimeError("crashed while planning")
        return chosen


async def test_a_worker_survives_what_no_batch_can_be_blamed_for() -> None:
    """Those who run and wait then are told, instead of waiting for ever; those who come later are served."""
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))
    async with bench(plain(graphs), scheduler=CrashingScheduler, max_batch_sentences=1) as running:
        first, second = running.submit(job(4, options=LONG), job(5, options=LONG))
        await graphs.next_step()
        graphs.allowed.release(1_000)
        with capture_logs() as logs:
            outcomes = await running.settle([first, second])
        assert all(isinstance(one, DecodingFailed) for one in outcomes)
        assert [entry["event"] for entry in logs] == ["worker_crashed"]
        assert running.dispatcher.queued_tokens == 0
        (after,) = await running.outcomes(job(6))
        assert len(hypotheses(after)[0].tokens) == OPTIONS.max_length


@pytest.mark.parametrize("where", ["before join", "before step", "start"])
async def test_a_lost_device_ends_all_that_runs_and_waits_and_refuses_the_rest(where: str) -> None:
    """Nobody hangs, the workers end, and whoever watches is told."""
    graphs, told = TableGraphs(hashed(SIZE), SIZE), threading.Event()
    gone = DeviceLost("cuda:0 does not work any more: an illegal memory access was encountered")

    class Lost(DecodeBatch):
        def join(self, sentences: Sequence[Sentence]) -> None:
            if where == "before join":
                raise gone
            super().join(sentences)

        def step(self) -> list[Finished]:
            raise gone

    def start(key: BatchKey) -> DecodeBatch:
        if where == "start":
            raise gone
        return Lost(graphs, beam_size=key.beam_size)

    async with bench(start, workers=2, max_batch_sentences=1) as running:
        running.dispatcher.on_loss = told.set
        with capture_logs() as logs:
            outcomes = await running.settle(running.submit(*(job(number, options=LONG) for number in range(4, 8))))
            assert await asyncio.to_thread(told.wait, PATIENCE)
        assert all(isinstance(one, DecodingFailed) for one in outcomes)
        assert "worker_crashed" in [entry["event"] for entry in logs]
        assert running.dispatcher.lost is gone and running.dispatcher.draining
        with pytest.raises(Draining):
            running.submit(job(4))
