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
from types import MappingProxyType

from models.bundle import Bundle
from models.search import DecodeBatch, Graphs
from models.shortlist import Shortlist
from service.engine.cache import ResultCache
from service.engine.counters import Counters
from service.engine.desk import DecodedFuture, Desk
from service.engine.errors import UnknownModel
from service.engine.jobs import Decoded, Job, Lane
from service.engine.scheduler import Scheduler, SchedulerLimits
from service.engine.worker import BatchFactory, Worker


@dataclass(frozen=True, slots=True)
class Backend:
    """What a bundle's graphs run on, for information: a runtime and a precision, such as ``onnx`` and ``int8``."""

    runtime: str
    precision: str

    def __str__(self) -> str:
        return f"{self.runtime} {self.precision}"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine runs.

    Attributes:
        workers: decode threads.
        cache_sentences: results kept; 0 = no cache.
        limits: of the queue and the batches.
        runtime, precision: what graphs run on where ``Engine.add`` is not told otherwise, for information.
    """

    workers: int = 1
    cache_sentences: int = 0
    limits: SchedulerLimits = field(default_factory=SchedulerLimits)
    runtime: str = "onnx"
    precision: str = "int8"


class Engine:
    """Decodes sentences of all callers together."""

    def __init__(self, options: EngineOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            options: how to run; the defaults suit a small machine.
            clock: monotonic seconds; deadlines are on it.
        """
        self.options = options or EngineOptions()
        self.clock = clock
        self._desk = Desk(Scheduler(self.options.limits, clock), ResultCache(self.options.cache_sentences), clock)
        self._bundles: dict[str, Bundle] = {}
        self._backends: dict[str, Backend] = {}
        self._factories: dict[str, BatchFactory] = {}
        self._threads: list[threading.Thread] = []

    @property
    def bundles(self) -> Mapping[str, Bundle]:
        """The loaded bundles by name, in the order in which they were added."""
        return MappingProxyType(self._bundles)

    @property
    def backends(self) -> Mapping[str, Backend]:
        """What each loaded bundle runs on, by the bundle's name."""
        return MappingProxyType(self._backends)

    @property
    def counters(self) -> Counters:
        """Totals since the start."""
        return self._desk.counters

    @property
    def sentences(self) -> tuple[int, int]:
        """Sentences that wait, and that run."""
        return self._desk.sentences

    @property
    def queued_tokens(self) -> int:
        """Predicted tokens of both."""
        return self._desk.queued_tokens

    @property
    def draining(self) -> bool:
        """Whether new work is refused."""
        return self._desk.closed

    @property
    def alive(self) -> bool:
        """Whether every decode worker runs."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def add(self, bundle: Bundle, graphs: Graphs, backend: Backend | None = None, *, shortlist: bool = False) -> None:
        """Serve a bundle under its manifest's name; one of the same name is replaced for sentences yet to start.

        Args:
            bundle: a loaded bundle.
            graphs: its graphs, opened.
            backend: what they run on; None = what the options say.
            shortlist: whether its sentences use the tokens that its shortlist selects, where it has one.
        """
        name = bundle.manifest.name
        self._desk.forget(name)
        self._factories[name] = _factory(graphs, bundle.shortlist if shortlist else None)
        self._backends[name] = backend or Backend(self.options.runtime, self.options.precision)
        self._bundles[name] = bundle

    def start(self) -> None:
        """Start the decode workers. Call once."""
        for number in range(self.options.workers):
            worker = Worker(self._desk, self._factories, self.clock)
            thread = threading.Thread(target=worker.run, name=f"tandem-decode-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(self, jobs: Sequence[Job]) -> list[DecodedFuture]:
        """One future per job; cancelling a future removes its sentence from the queue or the running batch.

        Raises:
            UnknownModel: a bundle is not loaded.
            Draining, Overloaded: the work is refused, all of it.
        """
        for job in jobs:
            if job.bundle not in self._bundles:
                raise UnknownModel(f"no model named {job.bundle!r} is loaded; there are {', '.join(self._bundles)}")
        return self._desk.submit(jobs)

    async def decode(self, jobs: Sequence[Job]) -> list[Decoded]:
        """Decode a request's sentences. When cancelled, or when one fails, the others are given up too.

        Raises:
            UnknownModel, Draining, Overloaded: see ``submit``.
            DeadlinePassed: a job's deadline went by.
            DecodingFailed: a step crashed.
        """
        futures = self.submit(jobs)
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()

    def retry_after(self) -> float:
        """Seconds until the present queue should be worked off."""
        return self._desk.retry_after()

    def last_finished(self, bundle: str) -> float | None:
        """When a sentence of a bundle was last decoded, on ``clock``; None = never."""
        return self._desk.last_finished(bundle)

    def close(self) -> None:
        """Refuse new work from here on; what was admitted goes on."""
        self._desk.close()

    def wait_until_idle(self, timeout: float) -> bool:
        """Block until nothing waits or runs. Returns False where that took longer than ``timeout`` seconds."""
        return self._desk.wait_until_idle(timeout)

    def stop(self, timeout: float = 30.0) -> bool:
        """Refuse new work, let admitted work finish, end the workers. Blocks.

        Args:
            timeout: seconds that admitted work may take; what is left then fails as ``Draining``.

        Returns:
            Whether everything was finished.
        """
        self._desk.close()
        finished = not self._threads or self._desk.wait_until_idle(timeout)
        self._desk.stop()
        for thread in self._threads:
            thread.join(timeout=5.0)
        return finished


def _factory(graphs: Graphs, shortlist: Shortlist | None) -> BatchFactory:
    def start_batch(lane: Lane) -> DecodeBatch:
        return DecodeBatch(graphs, beam_size=lane.beam_size, shortlist=shortlist)

    return start_batch
