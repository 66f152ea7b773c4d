"""Who runs next: pure Python, no threads, no clock of its own.

Sentences wait per lane (bundle, beam size, priority) in buckets of similar length. A batch is filled to a token budget
(rows x longest source), starting with the oldest sentence of all buckets and going on in its bucket, so that lengths
match and nobody starves: what does not fit is never overtaken by a younger sentence of another bucket. Bulk counts as
``bulk_handicap`` seconds younger than it is, so interactive work goes first, but not for ever.

The queue is bounded in predicted tokens, of waiting and running sentences together.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.engine.errors import Overloaded
from service.engine.jobs import Job, Lane, Load, Priority, Ticket

_BUCKET_EDGES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds of the queue and of a batch.

    Attributes:
        max_queue_tokens: predicted tokens, waiting and running.
        max_batch_tokens: rows (sentences x beam size) times the longest source of one running batch.
        max_batch_sentences: sentences of one running batch.
        bulk_handicap: seconds by which bulk sentences count as younger.
        max_batches_per_bundle: running batches of one bundle that one worker steps in turn.
    """

    max_queue_tokens: int = 65_536
    max_batch_tokens: int = 8_192
    max_batch_sentences: int = 64
    bulk_handicap: float = 5.0
    max_batches_per_bundle: int = 2


class Scheduler:
    """Admits, orders and removes sentences. Not thread-safe: its owner holds a lock."""

    def __init__(self, limits: SchedulerLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ids = itertools.count(1)
        self._waiting: dict[Lane, dict[int, OrderedDict[int, Ticket]]] = {}
        self._running: dict[int, Ticket] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._active: dict[int, Ticket] = {}
        self._doomed: set[int] = set()
        self._rate = _Rate(clock)
        self.queued_tokens = 0

    @property
    def waiting(self) -> int:
        """Sentences that wait."""
        return len(self._active) - len(self._running)

    @property
    def running(self) -> int:
        """Sentences in batches."""
        return len(self._running)

    def admit(self, jobs: Sequence[Job]) -> list[Ticket]:
        """Take all jobs of a request, or none.

        A request larger than the whole bound is admitted when nothing else is there: it could never run otherwise.

        Raises:
            Overloaded: the queue has no room for all of them.
        """
        tokens = [job.predicted_tokens for job in jobs]
        bound = self._limits.max_queue_tokens
        if jobs and self.queued_tokens and self.queued_tokens + sum(tokens) > bound:
            raise Overloaded(self.queued_tokens, bound, self.retry_after())
        now = self._clock()
        tickets = [self._ticket(job, now, predicted) for job, predicted in zip(jobs, tokens, strict=True)]
        for ticket in tickets:
            self._enter(ticket)
        return tickets

    def retry_after(self) -> float:
        """Seconds, 1 to 60, until the present queue should be worked off."""
        return float(min(60, max(1, math.ceil(self.queued_tokens / self._rate.tokens_per_second()))))

    def plan(self, loads: Mapping[Lane, Load], share: int = 1) -> list[tuple[Lane, list[Ticket]]]:
        """Choose what joins a worker's batches now; the chosen count as running from here on.

        Args:
            loads: the worker's running batches.
            share: workers that are free to take what waits, this one included: it takes its part and no more.

        Returns:
            Per lane, most urgent first, the tickets to join; lanes not in ``loads`` start a new batch.
        """
        plans = []
        per_bundle: dict[str, int] = {}
        for lane in loads:
            per_bundle[lane.bundle] = per_bundle.get(lane.bundle, 0) + 1
        blocked: set[str] = set()
        for lane in sorted(self._waiting, key=lambda lane: self._head(lane).urgency):
            if lane.bundle in blocked:
                continue
            if lane not in loads:
                if per_bundle.get(lane.bundle, 0) >= self._limits.max_batches_per_bundle:
                    # An older lane has no place: younger sentences stop joining, until a batch has emptied for it.
                    blocked.add(lane.bundle)
                    continue
                per_bundle[lane.bundle] = per_bundle.get(lane.bundle, 0) + 1
            taken = self._take(lane, loads.get(lane, Load()), share)
            if taken:
                plans.append((lane, taken))
        return plans

    def cancel(self, ids: Iterable[int]) -> int:
        """Drop sentences, waiting ones at once, running ones at their batch's next step. Returns how many were here."""
        known = [self._active[number] for number in ids if number in self._active]
        for ticket in known:
            if ticket.id in self._running:
                self._doomed.add(ticket.id)
            else:
                self._leave(ticket)
        return len(known)

    def expire(self) -> list[Ticket]:
        """Tickets whose deadline has passed. Waiting ones have left; running ones leave at their next step."""
        now, late = self._clock(), []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, number = heapq.heappop(self._deadlines)
            ticket = self._active.get(number)
            if ticket is not None:
                self.cancel([number])
                late.append(ticket)
        return late

    def doomed(self, ids: Iterable[int]) -> list[int]:
        """Those of a batch's sentences that must leave it before the next step."""
        return [number for number in ids if number in self._doomed] if self._doomed else []

    def finish(self, ids: Iterable[int]) -> None:
        """Running sentences have left their batch, finished, failed or removed."""
        for number in ids:
            ticket = self._running.pop(number)
            self._rate.add(ticket.tokens)
            self._leave(ticket)

    def drop_waiting(self) -> list[Ticket]:
        """Remove all that waits, for a shutdown."""
        tickets = [ticket for number, ticket in self._active.items() if number not in self._running]
        for ticket in tickets:
            self._leave(ticket)
        return tickets

    def _ticket(self, job: Job, now: float, tokens: int) -> Ticket:
        lane = job.lane
        urgency = now + (self._limits.bulk_handicap if lane.priority is Priority.BULK else 0.0)
        return Ticket(next(self._ids), job, lane, now, urgency, tokens)

    def _enter(self, ticket: Ticket) -> None:
        buckets = self._waiting.setdefault(ticket.lane, {})
        buckets.setdefault(_bucket(ticket), OrderedDict())[ticket.id] = ticket
        self._active[ticket.id] = ticket
        self.queued_tokens += ticket.tokens
        if ticket.job.deadline is not None:
            heapq.heappush(self._deadlines, (ticket.job.deadline, ticket.id))

    def _leave(self, ticket: Ticket) -> None:
        del self._active[ticket.id]
        self._doomed.discard(ticket.id)
        self.queued_tokens -= ticket.tokens
        self._unqueue(ticket)

    def _unqueue(self, ticket: Ticket) -> None:
        buckets = self._waiting.get(ticket.lane, {})
        number = _bucket(ticket)
        if ticket.id in buckets.get(number, ()):
            del buckets[number][ticket.id]
            if not buckets[number]:
                del buckets[number]
            if not buckets:
                del self._waiting[ticket.lane]

    def _head(self, lane: Lane) -> Ticket:
        """The oldest sentence of a lane."""
        buckets = self._waiting[lane].values()
        return min((next(iter(bucket.values())) for bucket in buckets), key=lambda ticket: ticket.id)

    def _take(self, lane: Lane, load: Load, share: int) -> list[Ticket]:
        total = sum(len(bucket) for bucket in self._waiting[lane].values())
        most = min(math.ceil(total / max(share, 1)), self._limits.max_batch_sentences - load.sentences)
        taken: list[Ticket] = []
        longest = load.longest
        while lane in self._waiting and len(taken) < most:
            bucket = self._waiting[lane][_bucket(self._head(lane))]
            while bucket and len(taken) < most:
                ticket = next(iter(bucket.values()))
                length = max(longest, ticket.job.length)
                sentences = load.sentences + len(taken) + 1
                if sentences > 1 and sentences * lane.beam_size * length > self._limits.max_batch_tokens:
                    return taken
                longest = length
                self._unqueue(ticket)
                self._running[ticket.id] = ticket
                taken.append(ticket)
        return taken


def _bucket(ticket: Ticket) -> int:
    return bisect_left(_BUCKET_EDGES, ticket.job.length)


class _Rate:
    """Predicted tokens worked off per second, over the last ten seconds that saw any."""

    _WINDOW, _GUESS = 10.0, 1_000.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._events: deque[tuple[float, int]] = deque()
        self._tokens = 0

    def add(self, tokens: int) -> None:
        now = self._clock()
        self._events.append((now, tokens))
        self._tokens += tokens
        while self._events[0][0] < now - self._WINDOW:
            self._tokens -= self._events.popleft()[1]

    def tokens_per_second(self) -> float:
        if not self._events:
            return self._GUESS
        span = self._events[-1][0] - self._events[0][0]
        return self._tokens / span if span >= 1.0 else max(self._GUESS, float(self._tokens))
