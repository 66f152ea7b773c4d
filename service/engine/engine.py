"""The engine: loaded models, decode workers, and one coroutine to call. Knows nothing of HTTP.

engine = Engine(EngineOptions())
engine.add(bundle, graphs)
engine.start()
decoded = await engine.decode([Job("de-en", (ids,), options)])
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from tandem.models.bundle import Bundle
from tandem.models.search import Batch, Graphs, start_batch
from tandem.models.search.shortlist import Shortlist
from tandem.service.engine.cache import ResultCache
from tandem.service.engine.dispatcher import DecodedFuture, Dispatcher
from tandem.service.engine.failures import UnknownModel
from tandem.service.engine.jobs import BatchKey, Decoded, Job
from tandem.service.engine.residency import Residency
from tandem.service.engine.scheduler import Scheduler, SchedulerLimits
from tandem.service.engine.stalls import StallWatch
from tandem.service.engine.worker import BatchFactory, Worker

Watch: TypeAlias = Callable[[int, Decoded], None]


@dataclass(frozen=True, slots=True)
class Backend:
    """What a bundle's graphs run on, for information: such as ``onnx``, ``int8`` and ``cpu``."""

    runtime: str = "onnx"
    precision: str = "int8"
    device: str = "cpu"

    def __str__(self) -> str:
        return f"{self.runtime} {self.precision}" + (f" on {self.device}" if self.device != "cpu" else "")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine runs.

    Attributes:
        workers: decode threads.
        cache_sentences: results kept; 0 = no cache.
        limits: of the queue and the batches.
        stall: seconds after which a call of a model that has not ended is one of a lost device; None = never, on a
            CPU, which may be slow but answers.
        models_memory: bytes that the open graphs of all bundles may take together, as far as bundles are not at work;
            None = any.
    """

    workers: int = 1
    cache_sentences: int = 0
    limits: SchedulerLimits = field(default_factory=SchedulerLimits)
    stall: float | None = None
    models_memory: int | None = None


class Engine:
    """The models that are served, and the threads that decode what the dispatcher hands them.

    What it serves is replaced as a whole at every change, so that other threads may look at it, and a change is seen.

    Attributes:
        options: how it runs.
        clock: monotonic seconds; deadlines are on it.
        dispatcher: where sentences wait and are counted, and which says whether work is taken.
        bundles: the loaded ones by name, with their version where they have one, in the order in which they were added.
        leaving: those that are being removed: work that has begun goes on, no other work finds them.
        aliases: which loaded bundle a name without a version stands for: ``{"de-en": "de-en@2"}``.
        backends: what each loaded bundle runs on, by the bundle's name.
        residency: which bundles' graphs are in memory.
    """

    def __init__(self, options: EngineOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            options: how to run; the defaults suit a small machine.
            clock: monotonic seconds; deadlines are on it.
        """
        self.options, self.clock = options or EngineOptions(), clock
        scheduler, cache = Scheduler(self.options.limits, clock), ResultCache(self.options.cache_sentences)
        self.dispatcher = Dispatcher(scheduler, cache, clock)
        self.bundles: Mapping[str, Bundle] = MappingProxyType({})
        self.leaving: Mapping[str, Bundle] = MappingProxyType({})
        self.aliases: Mapping[str, str] = MappingProxyType({})
        self.backends: Mapping[str, Backend] = MappingProxyType({})
        self.residency = Residency(self.options.models_memory, self.dispatcher.works_on)
        self._aligning: set[str] = set()
        self._factories: dict[str, BatchFactory] = {}
        self._threads: list[threading.Thread] = []

    @property
    def alive(self) -> bool:
        """Whether every decode worker runs."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def add(self, bundle: Bundle, graphs: Graphs, backend: Backend | None = None, *, shortlist: bool = False) -> None:
        """Serve a bundle under its manifest's name; one of the same name is replaced for sentences yet to start.

        Of several versions (``de-en@1``, ``de-en@2``) the alias stands for the one added first, until ``point``.

        Args:
            bundle: a loaded bundle.
            graphs: its graphs, opened.
            backend: what they run on; None = ONNX Runtime, in int8.
            shortlist: whether its sentences use the tokens that its shortlist selects, where it has one.
        """
        name = bundle.manifest.name
        self.dispatcher.forget(name)
        self._factories[name] = self._noting(_factory(graphs, bundle.shortlist if shortlist else None))
        self.residency.add(name, graphs)
        self._aligning.discard(name)
        if "align" in graphs.specs:
            self._aligning.add(name)
        self.backends = MappingProxyType({**self.backends, name: backend or Backend()})
        self.bundles = MappingProxyType({**self.bundles, name: bundle})
        if alias_of(name) not in self.aliases:
            self.aliases = MappingProxyType({**self.aliases, alias_of(name): name})

    def point(self, alias: str, name: str) -> None:
        """Let an alias stand for a loaded bundle from here on; what has begun stays with the one it began with.

        Raises:
            UnknownModel: the bundle is not loaded.
        """
        self._require(name)
        self.aliases = MappingProxyType({**self.aliases, alias: name})

    def hide(self, name: str) -> None:
        """Let no further work find a bundle, as the first half of ``remove``; its aliases are gone with it.

        Raises:
            UnknownModel: the bundle is not loaded.
        """
        self._require(name)
        self.leaving = MappingProxyType({**self.leaving, name: self.bundles[name]})
        self.aliases = MappingProxyType({alias: stands for alias, stands in self.aliases.items() if stands != name})
        self.bundles = MappingProxyType({other: bundle for other, bundle in self.bundles.items() if other != name})

    def remove(self, name: str, timeout: float = 30.0) -> bool:
        """Let go of a bundle and all that belongs to it. Blocks: sessions and sentences that have begun end first.

        Args:
            name: of a bundle that is loaded, or hidden already.
            timeout: seconds that they may take; what is left then fails as ``UnknownModel``.

        Returns:
            Whether everything was finished.

        Raises:
            UnknownModel: the bundle is not loaded.
        """
        if name not in self.leaving:
            self.hide(name)
        finished = self.dispatcher.let_go(name, timeout)
        self._factories.pop(name, None)
        self.residency.forget(name)
        self._aligning.discard(name)
        self.backends = MappingProxyType({other: backend for other, backend in self.backends.items() if other != name})
        self.leaving = MappingProxyType({other: bundle for other, bundle in self.leaving.items() if other != name})
        self.dispatcher.forget(name)
        return finished

    def _noting(self, start: BatchFactory) -> BatchFactory:
        def noted(key: BatchKey) -> Batch:
            self.residency.use(key.bundle)
            return start(key)

        return noted

    def _require(self, name: str) -> None:
        if name not in self.bundles:
            raise UnknownModel(f"no model named {name!r} is loaded; there are {', '.join(self.bundles)}")

    def state_of(self, name: str) -> Literal["ready", "resting", "draining"]:
        """Of a loaded bundle: in memory, let go of until it is asked for, or being removed."""
        if self.dispatcher.draining or name in self.leaving:
            return "draining"
        return "resting" if self.residency.resting(name) else "ready"

    def aligns(self, bundle: str) -> bool:
        """Whether a loaded bundle's hypotheses can carry their attention (``SearchOptions.attention``)."""
        return bundle in self._aligning

    def start(self) -> None:
        """Start the decode workers, and what watches them. Call once."""
        workers = [Worker(self.dispatcher, self._factories, self.clock) for _ in range(self.options.workers)]
        for number, worker in enumerate(workers):
            thread = threading.Thread(target=worker.run, name=f"tandem-decode-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        if self.options.stall is not None:
            watch = StallWatch(self.dispatcher, workers, self.options.stall)
            threading.Thread(target=watch.run, name="tandem-watch", daemon=True).start()

    def submit(self, jobs: Sequence[Job], *, begun: bool = False) -> list[DecodedFuture]:
        """One future per job; cancelling a future removes its sentence from the queue or the running batch.

        Raises:
            UnknownModel: a bundle is not loaded.
            Draining, Overloaded: the work is refused, all of it.
        """
        for job in jobs:
            if job.bundle not in self.leaving:
                self._require(job.bundle)
        return self.dispatcher.submit(jobs, begun=begun)

    async def decode(self, jobs: Sequence[Job], watch: Watch | None = None, *, begun: bool = False) -> list[Decoded]:
        """Decode a request's sentences, equal ones once. When cancelled, or one fails, the others are given up too.

        Args:
            jobs: one per sentence.
            watch: told of each sentence as soon as it is finished: its number among the jobs, and the result.
            begun: whether the request had sentences decoded before; these then find room however full the queue is.

        Raises:
            UnknownModel, Draining, Overloaded: see ``submit``.
            DeadlinePassed: a job's deadline went by.
            DecodingFailed: a step crashed.
        """
        equal: dict[object, list[int]] = {}
        for number, job in enumerate(jobs):
            equal.setdefault(_sameness(job) or number, []).append(number)
        futures = self.submit([jobs[numbers[0]] for numbers in equal.values()], begun=begun)
        if watch is not None:
            for numbers, future in zip(equal.values(), futures, strict=True):
                future.add_done_callback(partial(tell, watch, numbers))
        try:
            decoded = await asyncio.gather(*futures)
            pairs = zip(equal.values(), decoded, strict=True)
            found = {number: result for numbers, result in pairs for number in numbers}
            return [found[number] for number in range(len(jobs))]
        finally:
            for future in futures:
                future.cancel()

    def stop(self, timeout: float = 30.0) -> bool:
        """Refuse new work, let admitted work finish, end the workers. Blocks.

        Args:
            timeout: seconds that admitted work may take; what is left then fails as ``Draining``.

        Returns:
            Whether everything was finished.
        """
        if self.dispatcher.stopped:  # by somebody who would not wait
            timeout = 0.0
        self.dispatcher.close()
        finished = not self._threads or self.dispatcher.wait_until_idle(timeout)
        self.dispatcher.end_workers()
        for thread in self._threads:
            thread.join(timeout=5.0 if timeout else 0.5)  # a step that hangs does not hold up who would not wait
        return finished


def tell(watch: Watch, numbers: Sequence[int], future: DecodedFuture) -> None:
    """Tell of a sentence that has ended, under each of its numbers; not where it failed or was given up."""
    if not future.cancelled() and future.exception() is None:
        for number in numbers:
            watch(number, future.result())


def _sameness(job: Job) -> object:
    """What jobs have in common that one result serves (samples too: their seed is an option); None = it serves none."""
    return (job.bundle, job.options, job.sources, job.priority, job.deadline) if job.cache else None


def alias_of(name: str) -> str:
    """A bundle's name without its version."""
    return name.partition("@")[0]


def _factory(graphs: Graphs, shortlist: Shortlist | None) -> BatchFactory:
    def start(key: BatchKey) -> Batch:
        return start_batch(graphs, beam_size=key.beam_size, shortlist=shortlist, alone=key.alone is not None)

    return start
