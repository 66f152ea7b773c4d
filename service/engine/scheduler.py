"""Who runs next: pure Python, no threads, no clock of its own.

Sentences wait by what a batch shares (bundle, beam size, priority), in buckets of similar length. A batch is filled to
a token budget (rows x longest source), starting with the oldest sentence of all buckets and going on in its bucket, so
that lengths match and nobody starves: what does not fit is never overtaken by a younger sentence of another bucket.
Bulk counts as ``bulk_handicap`` seconds younger than it is, so interactive work goes first, but not for ever.

No sentence is ever held back in the hope of company. A batch that runs takes joiners at every step boundary, and those
that come during a step gather by themselves; an idle worker would only waste its time. (Measured: letting joiners wait
20 to 100 ms beside a running batch halves the calls of the encoder and changes the throughput by less than the noise.)

The queue is bounded in predicted tokens, of waiting and running sentences together. A request counts at most half of
the bound when it asks to be let in: the bound is about seconds of waiting, and a long document would otherwise find
room only when nobody else is there. Bulk work is behind interactive work, and shuts none out: an interactive request
finds room beside what is interactive. Half of the bound is kept beyond it for callers of whom nothing is queued: who
sends much is refused before others are.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tandem.service.engine.failures import Overloaded
from tandem.service.engine.jobs import BatchKey, Job, Load, Priority, Ticket

_BUCKET_EDGES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
_SPARE_DEADLINES = 64  # those of sentences that left, kept before the heap is made anew without them
_WINDOW = 10.0  # seconds that the rate looks back over
_GRAIN = 0.25  # seconds that share one entry, so that memory does not grow with the rate
_GUESS = 1_000.0  # tokens per second, before anything was measured
Plans = list[tuple[BatchKey, list[Ticket]]]


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds of the queue and of a batch.

    Attributes:
        max_queue_tokens: predicted tokens, waiting and running, of interactive sentences, and of all where bulk ones
            are to join them; more where the last request let in is a large one, or a caller's only one.
        max_batch_tokens: rows (sentences x beam size) times the longest source of one running batch.
        max_batch_sentences: sentences of one running batch.
        max_join_tokens: source tokens that a worker with running batches encodes between two of their steps; one
            sentence always may join, however long it is.
        bulk_handicap: seconds by which bulk sentences count as younger.
        max_batches_per_bundle: running batches of one bundle that one worker steps in turn.
    """

    max_queue_tokens: int = 65_536
    max_batch_tokens: int = 8_192
    max_batch_sentences: int = 64
    max_join_tokens: int = 512
    bulk_handicap: float = 5.0
    max_batches_per_bundle: int = 2


class Rate:
    """Predicted tokens worked off per second, over the last ten seconds that saw any."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: deque[tuple[float, int]] = deque()  # when it began, tokens
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, tokens: int) -> None:
        """Count the tokens of a sentence that was worked off."""
        now = self._clock()
        if self._entries and now - self._entries[-1][0] < _GRAIN:
            began, before = self._entries.pop()
            self._entries.append((began, before + tokens))
        else:
            self._entries.append((now, tokens))
        self._tokens += tokens
        while self._entries[0][0] < now - _WINDOW:
            self._tokens -= self._entries.popleft()[1]

    def tokens_per_second(self) -> float:
        """The measured rate; a guess where too little was seen."""
        if not self._entries:
            return _GUESS
        span = self._entries[-1][0] - self._entries[0][0]
        return self._tokens / span if span >= 1.0 else max(_GUESS, float(self._tokens))


class Scheduler:
    """Admits, orders and removes sentences. Not thread-safe: its owner holds a lock."""

    def __init__(self, limits: SchedulerLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ids = itertools.count(1)
        self._waiting: dict[BatchKey, dict[int, OrderedDict[int, Ticket]]] = {}
        self._running: dict[int, Ticket] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._timed = 0  # active sentences with a deadline
        self._active: dict[int, Ticket] = {}
        self._doomed: set[int] = set()
        self._rate = Rate(clock)
        self._queued: Counter[Priority] = Counter()
        self._held: Counter[str] = Counter()  # by caller

    @property
    def queued_tokens(self) -> int:
        """Predicted tokens of what waits and runs."""
        return self._queued.total()

    @property
    def waiting(self) -> int:
        """Sentences that wait."""
        return len(self._active) - len(self._running)

    @property
    def running(self) -> int:
        """Sentences in batches."""
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether no request would be let in, however small."""
        return self._queued[Priority.INTERACTIVE] >= self._limits.max_queue_tokens + self._reserve

    @property
    def _reserve(self) -> int:
        """Tokens beyond the bound that are kept for callers of whom nothing is queued."""
        return self._limits.max_queue_tokens // 2

    @property
    def records(self) -> int:
        """Entries of all its books: what must not grow with the number of sentences that have come and gone."""
        queues = sum(1 + len(bucket) for buckets in self._waiting.values() for bucket in buckets.values())
        books = len(self._running) + len(self._active) + len(self._doomed)
        return queues + len(self._waiting) + books + len(self._deadlines) + len(self._rate) + len(self._held)

    def admit(self, jobs: Sequence[Job], *, begun: bool = False) -> list[Ticket]:
        """Take all jobs of a request, or none.

        A request larger than half of the bound is admitted when half of it is free: it could hardly ever run otherwise.
        One that was let in and has ``begun`` goes on whatever waits: what was spent on it would be lost.

        Raises:
            Overloaded: the queue has no room for all of them.
        """
        tokens = [job.predicted_tokens for job in jobs]
        if jobs and not begun and not self._has_room(jobs[0], sum(tokens)):
            raise self.overloaded()
        now = self._clock()
        tickets = [self._ticket(job, now, predicted) for job, predicted in zip(jobs, tokens, strict=True)]
        for ticket in tickets:
            self._enter(ticket)
        return tickets

    def _has_room(self, first: Job, tokens: int) -> bool:
        """Whether a request finds room that begins with this job, and has so many tokens."""
        bound = self._limits.max_queue_tokens
        if first.caller and not self._held[first.caller]:
            bound += self._reserve
        interactive = first.priority is Priority.INTERACTIVE
        ahead = self._queued[Priority.INTERACTIVE] if interactive else self.queued_tokens
        return not ahead or ahead + min(tokens, self._limits.max_queue_tokens // 2) <= bound

    def overloaded(self) -> Overloaded:
        """What a request that finds no room is told."""
        return Overloaded(self.queued_tokens, self._limits.max_queue_tokens, self.retry_after())

    def retry_after(self) -> float:
        """Seconds, 1 to 60, until the present queue should be worked off."""
        return float(min(60, max(1, math.ceil(self.queued_tokens / self._rate.tokens_per_second()))))

    def plan(self, loads: Mapping[BatchKey, Load], share: int = 1) -> Plans:
        """Choose what joins a worker's batches now; the chosen count as running from here on.

        Args:
            loads: the worker's running batches.
            share: workers that are free to take what waits, this one included. It takes so much that it and they
                would run equally many sentences: nothing, where it has its part already.

        Returns:
            By batch, the most urgent first, the tickets to join; one that is not in ``loads`` is started.
        """
        plans = self._choose(loads, share)
        for _, tickets in plans:
            for ticket in tickets:
                self._unqueue(ticket)
                self._running[ticket.id] = ticket
        return plans

    def cancel(self, ids: Iterable[int]) -> int:
        """Drop sentences, waiting ones at once, running ones at their batch's next step.

        Returns:
            How many were here, and not already dropped.
        """
        known = [self._active[number] for number in ids if number in self._active and number not in self._doomed]
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
            if ticket is not None and self.cancel([number]):
                late.append(ticket)
        return late

    def doomed(self, ids: Iterable[int]) -> list[int]:
        """Those of a batch's sentences that must leave it before the next step."""
        return [number for number in ids if number in self._doomed] if self._doomed else []

    def finish(self, ids: Iterable[int]) -> set[int]:
        """Running sentences have left their batch, finished, failed or removed; others are ignored.

        Returns:
            Those that somebody still waits for: running until now, and not dropped before.
        """
        wanted = set()
        for number in ids:
            ticket = self._running.pop(number, None)
            if ticket is None:
                continue
            if number not in self._doomed:
                wanted.add(number)
                self._rate.add(ticket.tokens)
            self._leave(ticket)
        return wanted

    def tickets_of(self, bundle: str | None = None) -> list[Ticket]:
        """What of a bundle waits or runs; None = of all."""
        return [ticket for ticket in self._active.values() if bundle in (None, ticket.job.bundle)]

    def drop_waiting(self) -> list[Ticket]:
        """Remove all that waits."""
        tickets = [ticket for number, ticket in self._active.items() if number not in self._running]
        for ticket in tickets:
            self._leave(ticket)
        return tickets

    def _ticket(self, job: Job, now: float, tokens: int) -> Ticket:
        key = job.key
        urgency = now + (self._limits.bulk_handicap if key.priority is Priority.BULK else 0.0)
        return Ticket(next(self._ids), job, key, now, urgency, tokens)

    def _enter(self, ticket: Ticket) -> None:
        buckets = self._waiting.setdefault(ticket.key, {})
        buckets.setdefault(_bucket(ticket), OrderedDict())[ticket.id] = ticket
        self._active[ticket.id] = ticket
        self._queued[ticket.job.priority] += ticket.tokens
        if ticket.job.caller:
            self._held[ticket.job.caller] += ticket.tokens
        if ticket.job.deadline is not None:
            self._timed += 1
            heapq.heappush(self._deadlines, (ticket.job.deadline, ticket.id))

    def _leave(self, ticket: Ticket) -> None:
        del self._active[ticket.id]
        self._doomed.discard(ticket.id)
        self._queued[ticket.job.priority] -= ticket.tokens
        if caller := ticket.job.caller:
            self._held[caller] -= ticket.tokens
            if not self._held[caller]:
                del self._held[caller]
        self._unqueue(ticket)
        if ticket.job.deadline is not None:
            self._timed -= 1
            if len(self._deadlines) > 2 * self._timed + _SPARE_DEADLINES:
                self._deadlines = [entry for entry in self._deadlines if entry[1] in self._active]
                heapq.heapify(self._deadlines)

    def _unqueue(self, ticket: Ticket) -> None:
        buckets = self._waiting.get(ticket.key, {})
        number = _bucket(ticket)
        if ticket.id in buckets.get(number, ()):
            del buckets[number][ticket.id]
            if not buckets[number]:
                del buckets[number]
            if not buckets:
                del self._waiting[ticket.key]

    def _queue(self, key: BatchKey) -> Iterator[Ticket]:
        """The sentences of one key in the order in which they join: the bucket with the oldest one first, and so on."""
        buckets = sorted(self._waiting[key].values(), key=lambda bucket: next(iter(bucket)))
        return itertools.chain.from_iterable(bucket.values() for bucket in buckets)

    def _choose(self, loads: Mapping[BatchKey, Load], share: int) -> Plans:
        """What ``plan`` returns. Changes nothing, so that a crash here loses nobody."""
        running = sum(load.sentences for load in loads.values())
        most = math.ceil((self.waiting + running) / max(share, 1)) - running
        room = self._limits.max_join_tokens if loads else math.inf
        per_bundle = Counter(key.bundle for key in loads)
        blocked: set[str] = set()
        plans: Plans = []
        for key in sorted(self._waiting, key=lambda key: next(self._queue(key)).urgency):
            if most <= 0 or room <= 0:
                break
            if key.bundle in blocked:
                continue
            if key not in loads:
                if per_bundle[key.bundle] >= self._limits.max_batches_per_bundle:
                    # An older sentence has no batch: younger ones stop joining, until one has emptied for it.
                    blocked.add(key.bundle)
                    continue
                per_bundle[key.bundle] += 1
            fitting = self._fitting(key, loads.get(key, Load()))
            chosen = _within(room, itertools.islice(fitting, most), alone=not plans)
            if chosen:
                plans.append((key, chosen))
                most -= len(chosen)
                room -= sum(ticket.job.source_tokens for ticket in chosen)
        return plans

    def _fitting(self, key: BatchKey, load: Load) -> Iterator[Ticket]:
        """Those that a batch has room for, up to the first one that does not fit."""
        if load.closed:
            return
        limits, longest = self._limits, load.longest
        for sentences, ticket in enumerate(self._queue(key), load.sentences + 1):
            longest = max(longest, ticket.job.length)
            over_budget = sentences > 1 and sentences * key.beam_size * longest > limits.max_batch_tokens
            if over_budget or sentences > limits.max_batch_sentences:
                return
            yield ticket


def _within(room: float, tickets: Iterable[Ticket], *, alone: bool) -> list[Ticket]:
    """The first tickets, up to a number of source tokens; where it may be ``alone``, one is never too much."""
    chosen: list[Ticket] = []
    for ticket in tickets:
        room -= ticket.job.source_tokens
        if room < 0 and (chosen or not alone):
            break
        chosen.append(ticket)
    return chosen


def _bucket(ticket: Ticket) -> int:
    return bisect_left(_BUCKET_EDGES, ticket.job.length)
