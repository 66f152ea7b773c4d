"""The engine lets go of bundles: sessions and sentences that have begun end first, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.bundle import Bundle
from tandem.models.search import SearchOptions
from tandem.service.engine import (
    DecodingFailed,
    Draining,
    Engine,
    EngineOptions,
    Job,
    Scheduler,
    SchedulerLimits,
    UnknownModel,
)
from tandem.service.engine.cache import ResultCache
from tandem.service.engine.dispatcher import Dispatcher
from tests.service.support import PATIENCE, CopyGraphs, copying, decoding, tiny_bundle

pytestmark = pytest.mark.anyio
OPTIONS = SearchOptions(beam_size=2, max_length=20)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder: Path = tmp_path_factory.mktemp("removal")
    return {name: tiny_bundle(folder, name) for name in ("de-en@1", "de-en@2")}


@asynccontextmanager
async def started(pair: dict[str, Bundle], workers: int = 1) -> AsyncIterator[tuple[Engine, dict[str, CopyGraphs]]]:
    engine = Engine(EngineOptions(workers=workers, cache_sentences=10))
    graphs = {name: copying(bundle) for name, bundle in pair.items()}
    for name, bundle in pair.items():
        engine.add(bundle, graphs[name])
    async with decoding(engine, graphs.values()):
        yield engine, graphs


def job(name: str, *tokens: int) -> Job:
    return Job(name, ((*(tokens or (20, 21)), 3),), OPTIONS)


async def test_an_alias_stands_for_the_first_until_it_is_pointed_elsewhere(pair: dict[str, Bundle]) -> None:
    async with started(pair) as (engine, _):
        assert engine.aliases == {"de-en": "de-en@1"}
        engine.point("de-en", "de-en@2")
        assert engine.aliases == {"de-en": "de-en@2"}
        with pytest.raises(UnknownModel, match="de-en@3"):
            engine.point("de-en", "de-en@3")


async def test_what_is_removed_is_unknown_and_leaves_no_books(pair: dict[str, Bundle]) -> None:
    async with started(pair) as (engine, _):
        await engine.decode([job("de-en@1"), job("de-en@2")])
        assert await asyncio.to_thread(engine.remove, "de-en@1", PATIENCE)
        assert (list(engine.bundles), list(engine.backends), engine.leaving, engine.aliases) == (
            ["de-en@2"], ["de-en@2"], {}, {},
        )  # fmt: skip
        assert engine.dispatcher.last_finished("de-en@1") is None
        with pytest.raises(UnknownModel, match="de-en@1"):
            engine.submit([job("de-en@1")])
        with pytest.raises(UnknownModel, match="de-en@1"):
            engine.remove("de-en@1")
        engine.add(pair["de-en@1"], copying(pair["de-en@1"]))
        (again,) = await engine.decode([job("de-en@1")])
        assert not again.cached


async def test_what_does_not_end_in_time_fails_clearly(pair: dict[str, Bundle]) -> None:
    async with started(pair) as (engine, graphs):
        held = graphs["de-en@1"]
        held.gate.clear()
        futures = engine.submit([job("de-en@1", 20 + number) for number in range(3)])
        assert await asyncio.to_thread(held.entered.wait, PATIENCE)
        futures += engine.submit([job("de-en@1", 40)])
        assert not await asyncio.to_thread(engine.remove, "de-en@1", 0.01)
        async with asyncio.timeout(PATIENCE):
            ends = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(end) for end in ends] == [UnknownModel] * 4
        assert "unloaded before this text was done" in str(ends[0])
        held.gate.set()
        assert (await engine.decode([job("de-en@2")]))[0].hypotheses  # the worker has gone on
        assert await asyncio.to_thread(engine.dispatcher.wait_until_idle, PATIENCE)
        assert engine.dispatcher.counters.failed == 4


async def test_removal_waits_for_sessions_that_began_before(pair: dict[str, Bundle]) -> None:
    async with started(pair) as (engine, _):
        with engine.dispatcher.session():
            removal = asyncio.ensure_future(asyncio.to_thread(engine.remove, "de-en@1", PATIENCE))
            while "de-en@1" not in engine.leaving:
                await asyncio.sleep(0)
            assert (await engine.decode([job("de-en@1")]))[0].hypotheses
            assert not removal.done()
        assert await removal


class Noticing(threading.Condition):
    """Says when somebody waits."""

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__(lock)
        self.waiting = threading.Event()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        self.waiting.set()
        return super().wait_for(predicate, timeout)


async def test_sessions_that_begin_later_are_not_waited_for() -> None:
    clock = time.monotonic
    dispatcher = Dispatcher(Scheduler(SchedulerLimits(), clock), ResultCache(0), clock)
    dispatcher._done = condition = Noticing(dispatcher._lock)
    with ExitStack() as later:
        with dispatcher.session():
            waiting = asyncio.ensure_future(asyncio.to_thread(dispatcher.let_go, "de-en@1", PATIENCE))
            assert await asyncio.to_thread(condition.waiting.wait, PATIENCE)
            later.enter_context(dispatcher.session())
        assert await waiting
        assert len(dispatcher._sessions) == 1
        assert not dispatcher.let_go("de-en@1", 0.001)
    assert not dispatcher._sessions


async def test_draining_lets_sessions_end_but_none_begin(pair: dict[str, Bundle]) -> None:
    async with started(pair) as (engine, _):
        with engine.dispatcher.session():
            engine.dispatcher.drain()
            assert engine.dispatcher.draining
            assert (await engine.decode([job("de-en@1")]))[0].hypotheses
            with pytest.raises(Draining), engine.dispatcher.session():
                pass
            assert not engine.dispatcher.wait_until_idle(0.01)
        assert engine.dispatcher.wait_until_idle(PATIENCE)
        assert engine.dispatcher.counters.rejected["draining"] == 1


@given(moves=st.lists(st.tuples(st.sampled_from(["add", "remove", "ask"]), st.sampled_from([1, 2])), max_size=12))
def test_whatever_the_order_every_sentence_has_one_end(pair: dict[str, Bundle], moves: list[tuple[str, int]]) -> None:
    """Adding, removing and asking in any order, on two workers: an answer, or that the model is not known."""

    async def play() -> None:
        async with started(pair, workers=2) as (engine, _):
            asked: list[asyncio.Future[object]] = []
            removals = []
            for move, number in moves:
                name = f"de-en@{number}"
                if move == "ask" and name in engine.bundles:
                    asked += engine.submit([job(name, 20 + len(asked) % 5, 30)])  # type: ignore[arg-type]
                elif move == "remove" and name in engine.bundles:
                    engine.hide(name)
                    removals.append(asyncio.to_thread(engine.remove, name, PATIENCE))
                elif move == "add" and name not in engine.bundles and name not in engine.leaving:
                    engine.add(pair[name], copying(pair[name]))
            async with asyncio.timeout(PATIENCE):
                gone = await asyncio.gather(*removals)
                ends = await asyncio.gather(*asked, return_exceptions=True)
            assert all(gone)
            assert not [end for end in ends if isinstance(end, DecodingFailed | UnknownModel)]
            assert engine.leaving == {}
            assert set(engine.backends) == set(engine.bundles)

    asyncio.run(play())
