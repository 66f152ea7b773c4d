"""Where the asyncio side and the decode workers meet: the scheduler, the cache and the counters behind one lock.

Jobs come in from event loops and wait as asyncio futures; workers take tickets, and hand results back. A future is only
ever touched in its own loop: workers hand outcomes over with ``call_soon_threadsafe``, one call per loop and step.
Cancelling a future removes its sentence, wherever it is by then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tandem.models.errors import DeviceLost
from tandem.models.search import Counters
from tandem.service.engine.cache import ResultCache
from tandem.service.engine.counters import EngineCounters
from tandem.service.engine.failures import DeadlinePassed, Draining, Overloaded, UnknownModel
from tandem.service.engine.jobs import BatchKey, Decoded, Job, Load, Ticket
from tandem.service.engine.scheduler import Scheduler

DecodedFuture = asyncio.Future[Decoded]
Outcome = Decoded | Exception


class Dispatcher:
    """Thread-safe front of a scheduler.

    Every sentence that is admitted has one end, and is counted under one: finished, cancelled, expired or failed.

    Attributes:
        lost: why no worker can go on, where a device is gone; None as long as they can.
        on_loss: called then, in the thread that has found out.
    """

    def __init__(self, scheduler: Scheduler, cache: ResultCache, clock: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._cache = cache
        self._clock = clock
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # sentences wait, or the workers must end
        self._done = threading.Condition(self._lock)  # sentences have left, or sessions have ended
        self._sessions: set[object] = set()  # the open ones
        self._futures: dict[int, DecodedFuture] = {}
        self._last: list[tuple[Ticket, Decoded]] = []  # results that are handed over by a worker that then waits
        self._idle_workers = 0
        self._draining = self._closed = False
        self._stopped = threading.Event()
        self._last_finished: dict[str, float] = {}
        self.counters = EngineCounters()
        self.lost: DeviceLost | None = None
        self.on_loss: Callable[[], None] = lambda: None

    # ---- the asyncio side

    def submit(self, jobs: Sequence[Job], *, begun: bool = False) -> list[DecodedFuture]:
        """Admit all jobs of a request, or none; called in the event loop that awaits the futures.

        Where others of the request were decoded before (``begun``), these are not refused for want of room.

        Raises:
            Draining: no new work is taken.
            Overloaded: the queue is full.
        """
        loop = asyncio.get_running_loop()
        futures: list[DecodedFuture] = [loop.create_future() for _ in jobs]
        with self._lock:
            if self._closed:
                self.counters.rejected["draining"] += 1
                raise Draining
            known = self._look_up(jobs)
            fresh = [(job, future) for job, future, hit in zip(jobs, futures, known, strict=True) if hit is None]
            try:
                tickets = self._scheduler.admit([job for job, _ in fresh], begun=begun)
            except Overloaded:
                self.counters.rejected["queue_full"] += 1
                raise
            self.counters.cache_hits += len(jobs) - len(fresh)
            self.counters.cache_misses += sum(self._cache.covers(job) for job, _ in fresh)
            for ticket, (_, future) in zip(tickets, fresh, strict=True):
                self._futures[ticket.id] = future
            self._work.notify(len(tickets))
        for ticket, (_, future) in zip(tickets, fresh, strict=True):
            future.add_done_callback(self._withdraw(ticket.id))
        for future, hit in zip(futures, known, strict=True):
            if hit is not None:
                future.set_result(hit)
        return futures

    def _look_up(self, jobs: Sequence[Job]) -> list[Decoded | None]:
        found = [self._cache.get(job) if self._cache.covers(job) else None for job in jobs]
        return [None if hypotheses is None else Decoded(hypotheses, cached=True) for hypotheses in found]

    def _withdraw(self, number: int) -> Callable[[DecodedFuture], None]:
        def withdraw(future: DecodedFuture) -> None:
            if future.cancelled():
                with self._lock:
                    self._futures.pop(number, None)
                    self.counters.cancelled += self._scheduler.cancel([number])
                    self._done.notify_all()

        return withdraw

    @contextmanager
    def session(self) -> Iterator[None]:
        """A piece of work, from looking for its bundle to its last sentence, as a ``with`` block.

        It may submit until it ends, though the engine drains or the bundle is hidden meanwhile: a request chooses its
        bundle and splits its texts in a thread, and what it began with must still be there when it submits.

        Raises:
            Draining: no new work is taken.
        """
        session = object()
        with self._lock:
            if self._draining:
                self.counters.rejected["draining"] += 1
                raise Draining
            self._sessions.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.discard(session)
                self._done.notify_all()

    def drain(self) -> None:
        """Let no further session begin; those that are open may still submit."""
        with self._lock:
            self._draining = True

    def close(self) -> None:
        """Take no new work from here on; what was admitted goes on."""
        with self._lock:
            self._draining = self._closed = True

    def wait_until_idle(self, timeout: float) -> bool:
        """Block until nothing waits or runs and no session is open.

        Returns False where that took longer (seconds), or a device is lost, of which nothing is to be waited for.
        """
        with self._lock:
            idle = self._done.wait_for(
                lambda: self.lost is not None or (self.sentences == (0, 0) and not self._sessions), timeout
            )
            return idle and self.lost is None

    def let_go(self, bundle: str, timeout: float) -> bool:
        """Block until nothing of a bundle waits or runs, nor can come from sessions that are open now.

        What is left after ``timeout`` seconds fails as ``UnknownModel``. Returns whether nothing was.
        """
        until = self._clock() + timeout
        with self._lock:
            present = set(self._sessions)
            ended = self._done.wait_for(lambda: present.isdisjoint(self._sessions), timeout)
            left = max(0.0, until - self._clock())
            finished = self._done.wait_for(lambda: not self._scheduler.tickets_of(bundle), left)
            if not finished:
                error = UnknownModel(f"{bundle} was unloaded before this text was done")
                self._drop(self._scheduler.tickets_of(bundle), error)
            return ended and finished

    def _drop(self, tickets: Sequence[Ticket], error: Exception) -> None:
        self.counters.failed += self._scheduler.cancel([ticket.id for ticket in tickets])
        self._resolve((ticket, error) for ticket in tickets)
        self._done.notify_all()

    def end_workers(self) -> None:
        """Let the workers end at their next step boundary; what still waits fails as drained."""
        with self._lock:
            self._closed = True
            self._stopped.set()
            self.drop_waiting(Draining())
            self._work.notify_all()

    def lose(self, error: DeviceLost, failure: Exception) -> None:
        """Fail all that waits and runs, take no more work, and let the workers end: a device does not work any more.

        Of several calls the first counts.
        """
        with self._lock:
            if self.lost is not None:
                return
            self.lost = error
            self.close()
            self._drop(self._scheduler.tickets_of(), failure)
            self.end_workers()
        self.on_loss()

    def drop_waiting(self, error: Exception) -> None:
        """Fail all that waits."""
        with self._lock:
            dropped = self._scheduler.drop_waiting()
            self.counters.failed += len(dropped)
            self._resolve((ticket, error) for ticket in dropped)
            self._done.notify_all()

    def forget(self, bundle: str) -> None:
        """Drop cached results of a bundle, and when it finished a sentence."""
        with self._lock:
            self._cache.forget(bundle)
            self._last_finished.pop(bundle, None)

    @property
    def stopped(self) -> bool:
        """Whether the workers have been told to end."""
        return self._stopped.is_set()

    def wait_until_stopped(self, timeout: float) -> bool:
        """Block until the workers have been told to end. Returns False where that took longer (seconds)."""
        return self._stopped.wait(timeout)

    @property
    def draining(self) -> bool:
        """Whether new sessions, or all new work, is refused."""
        return self._draining

    @property
    def sentences(self) -> tuple[int, int]:
        """Sentences that wait, and that run."""
        return self._scheduler.waiting, self._scheduler.running

    @property
    def queued_tokens(self) -> int:
        """Predicted tokens of all of them."""
        return self._scheduler.queued_tokens

    @property
    def records(self) -> int:
        """Entries of all books about sentences: none are left where nothing waits or runs, whatever came before."""
        with self._lock:
            return self._scheduler.records + len(self._futures)

    def refuse_if_full(self) -> None:
        """Turn away a request that finds no room, before anything is spent on it. Raises Overloaded, and counts it."""
        if not self._scheduler.full:  # read without the lock: who finds room too early is refused when it submits
            return
        with self._lock:
            if self._scheduler.full:
                self.counters.rejected["queue_full"] += 1
                raise self._scheduler.overloaded()

    def retry_after(self) -> float:
        """Seconds until the present queue should be worked off."""
        with self._lock:
            return self._scheduler.retry_after()

    def works_on(self, bundle: str) -> bool:
        """Whether sentences of a bundle wait or run."""
        with self._lock:
            return bool(self._scheduler.tickets_of(bundle))

    def last_finished(self, bundle: str) -> float | None:
        """When a sentence of a bundle was last decoded, on ``clock``; None = never."""
        return self._last_finished.get(bundle)

    # ---- the workers' side

    def wait_for_work(self, busy: bool) -> bool:
        """Block until there is something to do. Returns False where the worker must end."""
        with self._lock:
            self._idle_workers += 1
            try:
                idle = not (self.stopped or busy or self._scheduler.waiting)
                self._resolve(self._last)
                self._last = []
                while idle:
                    self._work.wait()
                    idle = not (self.stopped or self._scheduler.waiting)
            finally:
                self._idle_workers -= 1
            return not self.stopped

    def expire(self) -> None:
        """Turn away what is overdue; running sentences among it leave their batch before its next step."""
        with self._lock:
            late = self._scheduler.expire()
            if late:
                self.counters.expired += len(late)
                self._resolve((ticket, DeadlinePassed()) for ticket in late)
                self._done.notify_all()

    def plan(self, loads: Mapping[BatchKey, Load]) -> list[tuple[BatchKey, list[Ticket]]]:
        """What joins this worker's batches now."""
        with self._lock:
            return self._scheduler.plan(loads, share=1 + self._idle_workers)

    def doomed(self, ids: Iterable[int]) -> list[int]:
        """Sentences of a batch that must leave it before the next step: cancelled or overdue."""
        with self._lock:
            leaving = self._scheduler.doomed(ids)
            self._scheduler.finish(leaving)
            if leaving:
                self._done.notify_all()
            return leaving

    def note_joined(self, tickets: Sequence[Ticket], started: float, seconds: float) -> None:
        """Count sentences that joined a batch."""
        with self._lock:
            self.counters.joined += len(tickets)
            self.counters.source_tokens += sum(len(source) for t in tickets for source in t.job.sources)
            self.counters.step_seconds["encode"].observe(seconds)
            for ticket in tickets:
                self.counters.wait.observe(started - ticket.arrival)

    def note_step(self, sentences: int, before: Counters, after: Counters, seconds: float) -> None:
        """Count a step of a batch that decodes ``sentences``; ``before`` and ``after`` are the batch's own counters."""
        with self._lock:
            counters = self.counters
            counters.steps += after.steps - before.steps
            counters.sentence_steps += sentences
            counters.rows += after.rows - before.rows
            counters.batch_rows.observe(after.rows - before.rows)
            counters.dead_rows += after.dead_rows - before.dead_rows
            counters.source_cells += after.source_cells - before.source_cells
            counters.source_padding += after.source_padding - before.source_padding
            counters.slot_cells += after.slot_cells - before.slot_cells
            counters.slot_padding += after.slot_padding - before.slot_padding
            counters.step_seconds["decode"].observe(seconds)

    def deliver(self, results: Sequence[tuple[Ticket, Decoded]], *, keep: bool = True, last: bool = False) -> None:
        """Hand finished sentences to those who wait for them.

        Args:
            results: the sentences.
            keep: whether the cache may have them too.
            last: whether the worker has no others. Then they are handed over as the last that it does before it waits:
                whoever is woken has the interpreter to himself.
        """
        with self._lock:
            wanted = self._scheduler.finish([ticket.id for ticket, _ in results])
            for ticket, decoded in results:
                self._last_finished[ticket.job.bundle] = self._clock()
                if ticket.id in wanted:
                    self.counters.finished += 1
                    self.counters.target_tokens += len(decoded.hypotheses[0].tokens) if decoded.hypotheses else 0
                if keep and self._cache.covers(ticket.job):
                    self._cache.put(ticket.job, decoded.hypotheses)
            if last:
                self._last += results
            else:
                self._resolve(results)
            self._done.notify_all()

    def fail(self, tickets: Sequence[Ticket], error: Exception) -> None:
        """Tell those who wait for sentences of a crashed batch; those that have left already are not counted again."""
        with self._lock:
            self.counters.failed += len(self._scheduler.finish([ticket.id for ticket in tickets]))
            self._resolve((ticket, error) for ticket in tickets)
            self._done.notify_all()

    def _resolve(self, outcomes: Iterable[tuple[Ticket, Outcome]]) -> None:
        per_loop: dict[asyncio.AbstractEventLoop, list[tuple[DecodedFuture, Outcome]]] = {}
        for ticket, outcome in outcomes:
            future = self._futures.pop(ticket.id, None)
            if future is not None:
                per_loop.setdefault(future.get_loop(), []).append((future, outcome))
        for loop, own in per_loop.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_set_outcomes, own)


def _set_outcomes(outcomes: Sequence[tuple[DecodedFuture, Outcome]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
