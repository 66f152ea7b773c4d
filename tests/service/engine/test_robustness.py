"""What goes wrong in a batch stays there: every sentence ends, the others get their own answer, and nothing is kept."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from tandem.models.search import Sampling, SearchOptions
from tandem.service.engine import DeadlinePassed, DecodingFailed, Draining, Overloaded, Ticket
from tests.models.search.tables import TableGraphs, hashed
from tests.service.engine.dispatchers import (
    LONG,
    SIZE,
    Bench,
    SteppedGraphs,
    alone,
    bench,
    endless,
    hypotheses,
    job,
    plain,
)
from tests.service.engine.scheduling import Clock

pytestmark = pytest.mark.anyio
# ---- probabilities that are none, and models that never end


@pytest.mark.parametrize("position", [0, 1, 3])
async def test_nan_fails_its_sentence_and_the_others_get_their_own_answer(position: int) -> None:
    """At its first step, which is taken while it joins, and later; whichever sentences share its batch."""
    graphs = TableGraphs(hashed(SIZE), SIZE, poison={(7, 7, 7): position})
    jobs = [
        job(4, 5),
        job(7, 7, 7, options=SearchOptions(beam_size=2, min_length=5, max_length=9)),
        job(6),
        job(8, 4, 4),
    ]
    async with bench(plain(graphs)) as running:
        with capture_logs() as logs:
            outcomes = await running.outcomes(*jobs)
        assert isinstance(outcomes.pop(1), DecodingFailed)
        assert [hypotheses(one) for one in outcomes] == [alone(graphs, one) for one in (jobs[0], jobs[2], jobs[3])]
        assert [entry["event"] for entry in logs] == ["decoding_failed"]
        assert (running.dispatcher.counters.failed, running.dispatcher.counters.finished) == (1, 3)


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        (SearchOptions(beam_size=3, max_length=7), 7),
        (SearchOptions(beam_size=1, max_length=30), 30),
        (SearchOptions(beam_size=2, max_length=100, max_length_ratio=2.0), 2 * 2 + 10),
        (SearchOptions(beam_size=2, max_length=9, exhaustive=True), 9),
        (SearchOptions(beam_size=2, max_length=11, sampling=Sampling(seed=1)), 11),
        (SearchOptions(beam_size=2, max_length=6, min_length=6), 6),
    ],
)
async def test_a_model_that_never_ends_ends_at_the_bound(options: SearchOptions, bound: int) -> None:
    async with bench(plain(TableGraphs(endless, SIZE))) as running:
        (outcome,) = await running.outcomes(job(4, 5, options=options))
        assert len(hypotheses(outcome)[0].tokens) == bound
        await running.idle()


# ---- rows are free within one step


@asynccontextmanager
async def stepped(clock: Clock | None = None, **limits: Any) -> AsyncIterator[tuple[Bench, SteppedGraphs]]:
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))
    async with bench(plain(graphs), clock=clock, **limits) as running:
        try:
            yield running, graphs
        finally:
            graphs.allowed.release(1_000)


async def test_a_disconnect_frees_its_rows_within_one_step() -> None:
    async with stepped(max_batch_sentences=3) as (running, graphs):
        first, second, third = running.submit(*(job(n, options=LONG) for n in (4, 5, 6)))
        await graphs.next_step()
        assert await graphs.go_on() == {(4,), (5,), (6,)}
        (fourth,) = running.submit(job(7, options=LONG))  # there is no room for it
        second.cancel()
        await asyncio.sleep(0)  # what a cancelled future does, its loop does in the next turn
        assert await graphs.go_on() == {(7,)}  # its first step, in the place that became free
        assert await graphs.go_on() == {(4,), (6,), (7,)}
        fourth.cancel()
        third.cancel()
        await asyncio.sleep(0)
        assert await graphs.go_on() == {(4,)}
        assert running.dispatcher.sentences == (0, 1)
        first.cancel()


async def test_a_deadline_frees_rows_and_places_in_the_queue_within_one_step() -> None:
    clock = Clock()
    async with stepped(clock, max_batch_sentences=2) as (running, graphs):
        going, late = running.submit(job(4, options=LONG), job(5, options=LONG, deadline=110.0))
        waiting, patient = running.submit(job(6, options=LONG, deadline=110.0), job(7, options=LONG))
        await graphs.next_step()
        assert await graphs.go_on() == {(4,), (5,)}
        clock.now = 111.0
        assert await graphs.go_on() == {(7,)}  # its first step, in the place that became free
        assert await graphs.go_on() == {(4,), (7,)}
        outcomes = await running.settle([late, waiting])
        assert all(isinstance(one, DeadlinePassed) for one in outcomes)
        assert (6,) not in set().union(*graphs.seen)
        assert running.dispatcher.counters.expired == 2
        for one in (going, patient):
            one.cancel()


async def test_a_replaced_bundle_takes_the_next_sentences() -> None:
    """A batch of the old graphs takes nobody any more, and what it still finds is not kept for those who ask later."""
    old, new = SteppedGraphs(TableGraphs(endless, SIZE)), TableGraphs(hashed(SIZE, seed=2), SIZE)
    async with bench(plain(old), cached=10) as running:
        (before,) = running.submit(job(4, options=LONG))
        await old.next_step()
        running.dispatcher.forget("a")
        running.factories["a"] = plain(new)
        (after,) = running.submit(job(5))
        old.allowed.release(1_000)
        outcomes = await running.settle([before, after])
        assert len(hypotheses(outcomes[0])[0].tokens) == 35
        assert hypotheses(outcomes[1]) == alone(new, job(5))
        (again,) = await running.outcomes(job(4, options=LONG))
        assert hypotheses(again) == alone(new, job(4, options=LONG))


async def test_ending_tells_those_who_run_and_those_who_wait() -> None:
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))
    async with bench(plain(graphs), max_batch_sentences=1) as running:
        futures = running.submit(job(4, options=LONG), job(5, options=LONG))
        await graphs.next_step()
        running.dispatcher.end_workers()
        graphs.allowed.release(1_000)
        with capture_logs():
            outcomes = await running.settle(futures)
        assert all(isinstance(one, Draining) for one in outcomes)
        with pytest.raises(Draining):
            running.submit(job(4))


async def test_what_is_finished_last_is_handed_over_though_workers_must_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker hands it over where it waits for work, and that is where it ends, too."""
    graphs = TableGraphs(hashed(SIZE), SIZE)
    async with bench(plain(graphs)) as running:
        deliver, last = running.dispatcher.deliver, list[bool]()

        def ending(results: Any, **given: Any) -> None:
            deliver(results, **given)
            last.append(given["last"])
            running.dispatcher.end_workers()

        monkeypatch.setattr(running.dispatcher, "deliver", ending)
        (outcome,) = await running.outcomes(job(4))
        assert hypotheses(outcome) == alone(graphs, job(4)) and last == [True]


async def test_idle_workers_share_what_comes() -> None:
    """Two sentences, two workers: both step at the same time, each with one."""
    graphs = SteppedGraphs(TableGraphs(endless, SIZE))
    async with bench(plain(graphs), workers=2) as running:
        futures = running.submit(job(4), job(5))
        await graphs.next_step()
        await graphs.next_step()
        assert sorted(map(sorted, graphs.seen)) == [[(4,)], [(5,)]]
        graphs.allowed.release(1_000)
        assert all(len(hypotheses(one)) == 1 for one in await running.settle(futures))


# ---- memory


async def test_nothing_is_kept_of_sentences_that_have_gone() -> None:
    """Thousands of sentences that finish, fail, are refused, cancelled, cached or too late leave nothing behind."""
    graphs = TableGraphs(hashed(SIZE), SIZE, poison={(8, 8): 1})
    rng, clock, short = np.random.default_rng(0), Clock(), SearchOptions(beam_size=1, max_length=2)
    before = _tickets()
    async with bench(plain(graphs), workers=2, clock=clock, cached=5, max_queue_tokens=180) as running:
        admitted = 0
        with capture_logs():
            for _ in range(60):
                clock.now += 0.5
                jobs = [
                    job(*map(int, rng.integers(4, 9, 2)), options=short, deadline=clock.now + far, cache=far > 1)
                    for far in rng.choice([0.0, 1.0, 1e3, 1e6], 20).tolist()
                ]
                futures = running.submit(*jobs)
                with suppress(Overloaded):
                    futures += running.submit(*jobs * 5)
                admitted += len(futures)
                for future in futures[:3]:
                    future.cancel()
                graphs.calls.clear()
                await running.settle(futures)
            await running.idle()
        counters = running.dispatcher.counters
        ends = (counters.finished, counters.failed, counters.cancelled, counters.expired, counters.cache_hits)
        assert sum(ends) == admitted
        assert min(*ends, counters.rejected["queue_full"]) > 0
        assert running.dispatcher.queued_tokens == 0
        assert running.dispatcher.records < 200  # deadlines not yet swept out, and the rate of the last seconds
        assert len(counters.wait.counts) == len(counters.wait.bounds) + 1
        del futures, jobs
        assert _tickets() <= before


def _tickets() -> int:
    """How many exist, wherever they are kept."""
    gc.collect()
    return sum(type(one) is Ticket for one in gc.get_objects())
