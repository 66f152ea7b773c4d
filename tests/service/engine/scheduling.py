"""What tests of the scheduler share: a clock that moves when told to, jobs of a given length, books kept by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tandem.models.search import SearchOptions
from tandem.service.engine import BatchKey, Job, Load, Scheduler, SchedulerLimits, Ticket

WORKERS = 2


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def job(length: int = 5, beam: int = 2, bundle: str = "a", **fields: Any) -> Job:
    return Job(bundle, ((1,) * length,), SearchOptions(beam_size=beam, max_length=50), **fields)


def scheduler(clock: Clock | None = None, **limits: Any) -> Scheduler:
    return Scheduler(SchedulerLimits(**limits), clock or Clock())


def taken(plan: list[tuple[BatchKey, list[Ticket]]]) -> list[int]:
    return [ticket.id for _, tickets in plan for ticket in tickets]


@dataclass
class Waiting:
    """A ticket that waits, who was there before it under its key, and how many that came later have overtaken it."""

    ticket: Ticket
    older: int
    overtaken: int = 0


@dataclass
class Books:
    """Where everybody is, kept by hand."""

    waiting: dict[int, Waiting] = field(default_factory=dict)
    batches: list[dict[BatchKey, dict[int, Ticket]]] = field(default_factory=lambda: [{} for _ in range(WORKERS)])
    dropped: set[int] = field(default_factory=set)  # running, but cancelled or overdue
    gone: Counter[int] = field(default_factory=Counter)

    @property
    def running(self) -> dict[int, Ticket]:
        batches = [batch for worker in self.batches for batch in worker.values()]
        return {number: ticket for batch in batches for number, ticket in batch.items()}

    def join(self, worker: int, key: BatchKey, ticket: Ticket) -> None:
        del self.waiting[ticket.id]
        self.batches[worker].setdefault(key, {})[ticket.id] = ticket
        for other in self.waiting.values():
            if other.ticket.key == key and other.ticket.id < ticket.id:
                other.overtaken += 1

    def leave(self, worker: int, key: BatchKey, number: int) -> None:
        del self.batches[worker][key][number]
        if not self.batches[worker][key]:
            del self.batches[worker][key]
        self.dropped.discard(number)
        self.gone[number] += 1

    def loads(self, worker: int) -> dict[BatchKey, Load]:
        own = self.batches[worker]
        return {key: Load(len(b), max(t.job.length for t in b.values())) for key, b in own.items()}
