"""The engine with a copying model: continuous batches, crash isolation, cache, cancellation, shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import pytest

from tandem.models.bundle import Bundle
from tandem.models.errors import OptionError
from tandem.models.search import Sampling, SearchOptions
from tandem.service.engine import (
    Decoded,
    DecodingFailed,
    Draining,
    Engine,
    EngineOptions,
    Job,
    UnknownModel,
)
from tandem.service.engine.dispatcher import DecodedFuture
from tests.service.support import PATIENCE, CopyGraphs

pytestmark = pytest.mark.anyio
EOS = 3


def job(*tokens: int, **fields: Any) -> Job:
    options = fields.pop("options", SearchOptions(beam_size=2, max_length=50))
    return Job("de-en", ((*tokens, EOS),), options, **fields)


def output(decoded: Decoded) -> tuple[int, ...]:
    return decoded.hypotheses[0].tokens


@contextmanager
def engine_of(bundle: Bundle, graphs: CopyGraphs, **options: Any) -> Iterator[Engine]:
    engine = Engine(EngineOptions(**options))
    engine.add(bundle, graphs)
    engine.start()
    try:
        yield engine
    finally:
        graphs.gate.set()
        engine.stop(PATIENCE)


@pytest.fixture
def graphs(bundles: dict[str, Bundle]) -> CopyGraphs:
    return CopyGraphs(bundles["de-en"].target_vocabulary.size)


@pytest.fixture
async def engine(bundles: dict[str, Bundle], graphs: CopyGraphs) -> AsyncIterator[Engine]:
    with engine_of(bundles["de-en"], graphs) as running:
        yield running


def held(engine: Engine, graphs: CopyGraphs, *jobs: Job) -> AbstractAsyncContextManager[Sequence[DecodedFuture]]:
    """Jobs that are in a running batch whose step waits until the block ends."""
    return graphs.held(lambda: engine.submit(jobs))


async def settle(engine: Engine) -> None:
    assert await asyncio.to_thread(engine.dispatcher.wait_until_idle, PATIENCE)


async def test_equal_sentences_of_a_request_are_decoded_once(engine: Engine, graphs: CopyGraphs) -> None:
    """Where one result serves: not of other options, nor where the cache is not to be used."""
    others = SearchOptions(beam_size=2, max_length=50, n_best=2)
    jobs = [job(5, 6), job(7), job(5, 6), job(5, 6, options=others), job(7, cache=False), job(7, cache=False)]
    told: dict[int, Decoded] = {}
    decoded = await engine.decode(jobs, told.__setitem__)
    assert [output(one) for one in decoded] == [(5, 6), (7,), (5, 6), (5, 6), (7,), (7,)]
    assert [len(one.hypotheses) for one in decoded] == [1, 1, 1, 2, 1, 1]
    assert sorted(graphs.encoded) == [(5, 6, EOS)] * 2 + [(7, EOS)] * 3
    assert [told[number] for number in range(len(jobs))] == decoded


async def test_decodes_each_job_to_its_own_result(engine: Engine) -> None:
    jobs = [job(*range(10, 10 + length)) for length in (1, 7, 3, 30, 2)]
    decoded = await engine.decode(jobs)
    assert [output(one) for one in decoded] == [one.sources[0][:-1] for one in jobs]
    assert engine.dispatcher.sentences == (0, 0)
    assert engine.dispatcher.queued_tokens == 0
    assert engine.dispatcher.counters.finished == 5
    assert engine.dispatcher.counters.target_tokens == sum(len(output(one)) for one in decoded)
    assert all(one.queue >= 0 and one.encode >= 0 and one.decode >= 0 for one in decoded)


async def test_sentences_join_a_running_batch_and_share_its_steps(engine: Engine, graphs: CopyGraphs) -> None:
    async with held(engine, graphs, job(*range(10, 30))) as (long,):
        short = engine.submit([job(11 + number, 12, 13) for number in range(6)])
    results = await asyncio.gather(long, *short)
    assert [output(one)[0] for one in results] == [10, 11, 12, 13, 14, 15, 16]
    assert engine.dispatcher.counters.sentence_steps > engine.dispatcher.counters.steps
    assert engine.dispatcher.counters.joined == 7


async def test_a_crash_while_joining_costs_the_sentence_at_fault_only(engine: Engine, graphs: CopyGraphs) -> None:
    graphs.crash_encode = 99
    good, bad, fine = engine.submit([job(10, 11), job(99, 11), job(12, 13)])
    outcomes = await asyncio.gather(good, bad, fine, return_exceptions=True)
    assert isinstance(outcomes[1], DecodingFailed)
    assert [output(one) for one in (outcomes[0], outcomes[2])] == [(10, 11), (12, 13)]  # type: ignore[arg-type]
    assert engine.dispatcher.counters.failed == 1


async def test_options_that_the_model_cannot_do_are_option_errors(engine: Engine) -> None:
    with pytest.raises(OptionError, match="coverage_penalty"):
        await engine.decode([job(10, options=SearchOptions(beam_size=2, max_length=9, coverage_penalty=0.5))])


async def test_samples_and_searches_share_an_engine(engine: Engine) -> None:
    sampled = SearchOptions(beam_size=2, max_length=50, sampling=Sampling(seed=4))
    decoded = await engine.decode([job(10, 11, 12, options=sampled), job(13, 14)])
    assert [output(one) for one in decoded] == [(10, 11, 12), (13, 14)]


async def test_cancelling_takes_running_and_waiting_sentences_back(engine: Engine, graphs: CopyGraphs) -> None:
    graphs.endless = True
    async with held(engine, graphs, job(10, options=SearchOptions(beam_size=2, max_length=10_000))) as (running,):
        (waiting,) = engine.submit([job(11)])
        running.cancel()
        waiting.cancel()
        await asyncio.sleep(0)
        assert engine.dispatcher.counters.cancelled == 2
        assert engine.dispatcher.sentences[0] == 0
    await settle(engine)
    assert engine.dispatcher.counters.finished == 0
    assert engine.dispatcher.queued_tokens == 0


async def test_one_failure_gives_up_the_request(engine: Engine, graphs: CopyGraphs) -> None:
    graphs.crash_encode = 99
    graphs.endless = True
    slow = SearchOptions(beam_size=2, max_length=10_000)
    with pytest.raises(DecodingFailed):
        await engine.decode([job(99), job(10, options=slow)])
    await settle(engine)
    assert engine.dispatcher.counters.cancelled == 1


async def test_an_unknown_model_is_refused(engine: Engine) -> None:
    with pytest.raises(UnknownModel, match="de-en"):
        engine.submit([Job("nothing", ((1, EOS),), SearchOptions())])


async def test_the_cache_answers_repeats_and_can_be_off(bundles: dict[str, Bundle], graphs: CopyGraphs) -> None:
    with engine_of(bundles["de-en"], graphs, cache_sentences=2) as engine:
        (first,) = await engine.decode([job(10, 11)])
        (again,) = await engine.decode([job(10, 11)])
        assert (first.cached, again.cached) == (False, True)
        assert again.hypotheses == first.hypotheses
        (asked_afresh,) = await engine.decode([job(10, 11, cache=False)])
        (other_options,) = await engine.decode([job(10, 11, options=SearchOptions(beam_size=1, max_length=50))])
        assert not asked_afresh.cached
        assert not other_options.cached
        await engine.decode([job(12)])  # the least recently used entry leaves
        (evicted,) = await engine.decode([job(10, 11)])
        assert not evicted.cached
        assert engine.dispatcher.counters.cache_hits == 1
        engine.add(bundles["de-en"], graphs)  # a reloaded bundle answers for itself
        (reloaded,) = await engine.decode([job(12)])
        assert not reloaded.cached


async def test_stopping_lets_running_work_finish_and_takes_no_more(engine: Engine, graphs: CopyGraphs) -> None:
    async with held(engine, graphs, job(10, 11)) as (running,):
        engine.dispatcher.close()
        with pytest.raises(Draining):
            engine.submit([job(12)])
    assert output(await running) == (10, 11)
    assert await asyncio.to_thread(engine.stop, PATIENCE)
    assert not engine.alive


async def test_stopping_gives_up_what_takes_too_long(bundles: dict[str, Bundle], graphs: CopyGraphs) -> None:
    graphs.endless = True
    slow = SearchOptions(beam_size=2, max_length=1_000_000)
    with engine_of(bundles["de-en"], graphs) as engine:
        async with held(engine, graphs, job(10, options=slow)) as (running,):
            (waiting,) = engine.submit([job(11, options=slow)])
            stopping = asyncio.ensure_future(asyncio.to_thread(engine.stop, 0.0))
        assert not await stopping
        outcomes = await asyncio.gather(running, waiting, return_exceptions=True)
        assert all(isinstance(one, Draining) for one in outcomes)


async def test_results_reach_the_loop_that_asked(bundles: dict[str, Bundle], graphs: CopyGraphs) -> None:
    with engine_of(bundles["de-en"], graphs) as engine:

        def ask(token: int) -> tuple[int, ...]:
            return output(asyncio.run(engine.decode([job(token)]))[0])

        answers = await asyncio.gather(*(asyncio.to_thread(ask, 10 + number) for number in range(4)))
    assert answers == [(10,), (11,), (12,), (13,)]
