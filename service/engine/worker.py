"""A decode worker: admit -> step -> finish, in one thread, for ever.

A worker owns its running batches. Sentences join and leave at step boundaries; the batches are stepped in turn,
interactive ones first. A crash costs the sentences of that batch, and nobody else.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import structlog

from models.errors import OptionError
from models.search import DecodeBatch, Finished, Sentence, SentenceError
from service.engine.desk import Desk
from service.engine.errors import DecodingFailed, Draining
from service.engine.jobs import Decoded, Lane, Load, Ticket

_log = structlog.get_logger("tandem.engine")

BatchFactory = Callable[[Lane], DecodeBatch]


@dataclass(frozen=True, slots=True)
class Member:
    """A sentence in a running batch: when it joined, and how long its encoding took, in seconds."""

    ticket: Ticket
    joined: float
    encode: float


@dataclass(slots=True)
class RunningBatch:
    """Sentences of one lane that are decoded together."""

    lane: Lane
    decoder: DecodeBatch
    members: dict[int, Member] = field(default_factory=dict)

    @property
    def lengths(self) -> list[int]:
        return [member.ticket.job.length for member in self.members.values()]

    @property
    def load(self) -> Load:
        return Load(len(self.members), max(self.lengths, default=0))


class Worker:
    """Runs batches until the desk is stopped."""

    def __init__(self, desk: Desk, factories: Mapping[str, BatchFactory], clock: Callable[[], float]) -> None:
        """
        Args:
            desk: where work comes from and goes to.
            factories: per bundle, how to start an empty batch.
            clock: monotonic seconds.
        """
        self._desk = desk
        self._factories = factories
        self._clock = clock
        self._batches: dict[Lane, RunningBatch] = {}

    def run(self) -> None:
        """The thread's body."""
        while self._desk.wait_for_work(busy=bool(self._batches)):
            self._admit()
            for batch in sorted(self._batches.values(), key=lambda batch: batch.lane.priority):
                self._step(batch)
        for batch in list(self._batches.values()):
            self._abandon(batch)

    def _admit(self) -> None:
        loads = {lane: batch.load for lane, batch in self._batches.items()}
        for lane, tickets in self._desk.plan(loads):
            batch = self._batches.get(lane)
            if batch is None:
                batch = self._batches[lane] = RunningBatch(lane, self._factories[lane.bundle](lane))
            self._join(batch, tickets)

    def _join(self, batch: RunningBatch, tickets: list[Ticket]) -> None:
        """Encode and join. Where that fails, each is tried alone: a sentence at fault costs itself only."""
        started = self._clock()
        try:
            batch.decoder.join([_sentence(ticket) for ticket in tickets])
        except OptionError as error:
            self._desk.fail(tickets, error) if len(tickets) == 1 else self._join_each(batch, tickets)
        except Exception:
            self._fail(batch.lane, tickets) if len(tickets) == 1 else self._join_each(batch, tickets)
        else:
            seconds = self._clock() - started
            batch.members |= {ticket.id: Member(ticket, started, seconds) for ticket in tickets}
            self._desk.note_joined(tickets, started, seconds)

    def _join_each(self, batch: RunningBatch, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            self._join(batch, [ticket])

    def _step(self, batch: RunningBatch) -> None:
        try:
            self._remove(batch, self._desk.doomed(batch.members))
            if batch.members:
                self._advance(batch)
        except SentenceError as error:
            faulty = [number for number in batch.members if number in error.ids] or list(batch.members)
            self._fail(batch.lane, [batch.members[number].ticket for number in faulty])
            self._remove(batch, faulty)
        except Exception:
            self._fail(batch.lane, [member.ticket for member in batch.members.values()])
            batch.members.clear()
        if not batch.members:
            del self._batches[batch.lane]

    def _advance(self, batch: RunningBatch) -> None:
        sentences, before, started = len(batch.decoder.ids), batch.decoder.counters, self._clock()
        finished = batch.decoder.step()
        self._desk.note_step(sentences, before, batch.decoder.counters, self._clock() - started)
        self._finish(batch, finished)

    def _remove(self, batch: RunningBatch, leaving: list[int]) -> None:
        for number in leaving:
            del batch.members[number]
        if leaving:
            batch.decoder.remove(leaving)

    def _finish(self, batch: RunningBatch, finished: list[Finished]) -> None:
        now, results = self._clock(), []
        for item in finished:
            member = batch.members.pop(cast("int", item.id))  # the ids are the tickets' own
            ticket = member.ticket
            decode = now - member.joined - member.encode
            queue = member.joined - ticket.arrival
            results.append((ticket, Decoded(item.hypotheses, False, queue, member.encode, decode)))
        if results:
            self._desk.deliver(results)

    def _fail(self, lane: Lane, tickets: list[Ticket]) -> None:
        """Called while an exception is handled: log it under a new id, and tell those who wait."""
        incident = uuid.uuid4().hex[:12]
        requests = sorted({ticket.job.tag for ticket in tickets})
        _log.error("decoding_failed", incident=incident, bundle=lane.bundle, requests=requests, exc_info=True)
        self._desk.fail(tickets, DecodingFailed(incident))

    def _abandon(self, batch: RunningBatch) -> None:
        _log.warning("batch_abandoned", bundle=batch.lane.bundle, sentences=len(batch.members))
        self._desk.fail([member.ticket for member in batch.members.values()], Draining())


def _sentence(ticket: Ticket) -> Sentence:
    sources = tuple(np.asarray(source, dtype=np.int64) for source in ticket.job.sources)
    return Sentence(ticket.id, sources, ticket.job.options)
