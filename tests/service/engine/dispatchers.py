"""A dispatcher with its workers and nothing around them, over scripted models; models and batches that misbehave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tandem.models.search import Array, DecodeBatch, Finished, Graphs, GraphSpecs, Hypothesis, SearchOptions, Sentence
from tandem.service.engine import BatchKey, Decoded, Job, Scheduler, SchedulerLimits
from tandem.service.engine.cache import ResultCache
from tandem.service.engine.dispatcher import DecodedFuture, Dispatcher
from tandem.service.engine.worker import BatchFactory, Worker
from tests.models.search.tables import EOS, Prefix, TableGraphs, source
from tests.service.engine.scheduling import Clock
from tests.service.support import PATIENCE

SIZE = 9  # of the vocabulary
OPTIONS = SearchOptions(beam_size=2, max_length=12)
LONG = SearchOptions(beam_size=2, max_length=35)


def job(*tokens: int, options: SearchOptions = OPTIONS, **fields: Any) -> Job:
    return Job("a", ((*tokens, EOS),), options, **fields)


def alone(graphs: Graphs, one: Job) -> tuple[Hypothesis, ...]:
    """What a job gets when nothing else is there."""
    batch = DecodeBatch(graphs, beam_size=one.options.beam_size)
    batch.join([Sentence(0, source(*one.sources[0][:-1]), one.options)])
    while True:
        for finished in batch.step():
            return finished.hypotheses


@dataclass
class Bench:
    """A dispatcher and its workers, without an engine around them."""

    dispatcher: Dispatcher
    factories: dict[str, BatchFactory]
    workers: list[Worker] = field(default_factory=list)

    def submit(self, *jobs: Job) -> list[DecodedFuture]:
        return self.dispatcher.submit(jobs)

    async def outcomes(self, *jobs: Job) -> list[Decoded | BaseException]:
        return await self.settle(self.submit(*jobs))

    async def settle(self, futures: Sequence[DecodedFuture]) -> list[Decoded | BaseException]:
        """What became of each; fails where one never ends."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*futures, return_exceptions=True)

    async def idle(self) -> None:
        assert await asyncio.to_thread(self.dispatcher.wait_until_idle, PATIENCE)


@asynccontextmanager
async def bench(
    factory: BatchFactory,
    *,
    workers: int = 1,
    clock: Clock | None = None,
    scheduler: type[Scheduler] = Scheduler,
    cached: int = 0,
    **limits: Any,
) -> AsyncIterator[Bench]:
    clock = clock or Clock()
    dispatcher = Dispatcher(scheduler(SchedulerLimits(**limits), clock), ResultCache(cached), clock)
    running = Bench(dispatcher, {"a": factory})
    running.workers += [Worker(dispatcher, running.factories, clock) for _ in range(workers)]
    threads = [threading.Thread(target=worker.run) for worker in running.workers]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        dispatcher.end_workers()
        for thread in threads:
            await asyncio.to_thread(thread.join, PATIENCE)
        assert not any(thread.is_alive() for thread in threads)


def plain(graphs: Graphs) -> BatchFactory:
    return lambda key: DecodeBatch(graphs, beam_size=key.beam_size)


def hypotheses(outcome: Decoded | BaseException) -> tuple[Hypothesis, ...]:
    assert isinstance(outcome, Decoded), outcome
    return outcome.hypotheses


def endless(_: tuple[Prefix, ...], prefix: Prefix) -> Sequence[float]:
    """Never EOS: as improbable as float32 can say."""
    return [-200.0 if token == EOS else -float((token + len(prefix)) % 5) for token in range(SIZE)]


@dataclass
class SteppedGraphs:
    """Graphs whose steps wait to be let through, and say which sources were in them."""

    inner: TableGraphs
    seen: list[set[Prefix]] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    allowed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def specs(self) -> GraphSpecs:
        return self.inner.specs

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph == "step":
            alive_BK = np.isfinite(inputs["score"]).reshape(len(inputs["memory.lengths.0"]), -1)
            alive_B = np.any(alive_BK, axis=1).tolist()
            pairs = zip(inputs["memory.tokens.0"], inputs["memory.lengths.0"], alive_B, strict=True)
            self.seen.append({tuple(tokens[: length - 1].tolist()) for tokens, length, alive in pairs if alive})
            self.arrived.release()
            assert self.allowed.acquire(timeout=PATIENCE)
        return self.inner.run(graph, inputs)

    async def next_step(self) -> set[Prefix]:
        """Wait until a step has begun; the sources whose rows it runs."""
        assert await asyncio.to_thread(self.arrived.acquire, timeout=PATIENCE)
        return self.seen[-1]

    async def go_on(self) -> set[Prefix]:
        """Let the step that has begun through, and wait for the next."""
        self.allowed.release()
        return await self.next_step()


class FaultyBatch(DecodeBatch):
    """A batch that crashes, or forgets a sentence, at chosen calls."""

    def __init__(self, graphs: Graphs, key: BatchKey, faults: Callable[[str], bool]) -> None:
        super().__init__(graphs, beam_size=key.beam_size)
        self._faults = faults

    def join(self, sentences: Sequence[Sentence]) -> None:
        self._crash("before join")
        super().join(sentences)
        self._crash("after join")

    def step(self) -> list[Finished]:
        self._crash("before step")
        finished = super().step()
        self._crash("after step")
        if self.ids and self._faults("forget"):
            super().remove(self.ids[:1])
        if finished and self._faults("swallow"):
            return finished[1:]
        return finished

    def remove(self, ids: Iterable[Hashable]) -> None:
        self._crash("before remove")
        super().remove(ids)

    def _crash(self, where: str) -> None:
        if self._faults(where):
            raise RuntimeError(f"crashed {where}")
