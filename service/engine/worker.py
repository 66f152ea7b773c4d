"""A decode worker: admit -> step -> finish, in one thread, for ever.

A worker owns its running batches. Sentences join and leave at step boundaries; the batches are stepped in turn,
interactive ones first. Where a batch crashes, its sentences are decoded again, each alone, and only those that crash
alone fail. A crash that no batch can be blamed for costs what this worker runs and all that waits: nobody is left
without an answer, and the next request finds the worker at its place. A device that is lost costs the same and the
engine, which takes no more work.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import structlog

from tandem.models.errors import DeviceLost, OptionError
from tandem.models.search import Batch, Finished, SentenceError
from tandem.service.engine.dispatcher import Dispatcher
from tandem.service.engine.failures import DecodingFailed, Draining, UnknownModel
from tandem.service.engine.jobs import BatchKey, Decoded, Load, Ticket

_log = structlog.get_logger("tandem.engine")

BatchFactory = Callable[[BatchKey], Batch]


@dataclass(frozen=True, slots=True)
class RunningSentence:
    """A sentence in a running batch: when it joined, and how long its encoding took, in seconds."""

    ticket: Ticket
    joined: float
    encode: float


@dataclass(slots=True)
class RunningBatch:
    """Sentences that are decoded together, and what they share."""

    key: BatchKey
    decoder: Batch
    factory: BatchFactory
    members: dict[int, RunningSentence] = field(default_factory=dict)

    @property
    def tickets(self) -> list[Ticket]:
        return [member.ticket for member in self.members.values()]

    def load(self, current: BatchFactory | None) -> Load:
        """What it holds; closed where its bundle is served by another factory by now, or not at all."""
        longest = max((ticket.job.length for ticket in self.tickets), default=0)
        return Load(len(self.members), longest, closed=current is not self.factory)


class Worker:
    """Runs batches until the dispatcher is stopped.

    Attributes:
        calls: of models, those that have begun; one that does not end is seen by this number.
    """

    def __init__(
        self, dispatcher: Dispatcher, factories: Mapping[str, BatchFactory], clock: Callable[[], float]
    ) -> None:
        """
        Args:
            dispatcher: where work comes from and goes to.
            factories: per bundle, how to start an empty batch.
            clock: monotonic seconds.
        """
        self._dispatcher = dispatcher
        self._factories = factories
        self._clock = clock
        self._batches: dict[BatchKey, RunningBatch] = {}
        self._joining: list[Ticket] = []
        self._retrying: list[Ticket] = []
        self.calls = 0

    @property
    def busy(self) -> bool:
        """Whether it has sentences, and does not wait for any."""
        return bool(self._batches or self._joining or self._retrying)

    def run(self) -> None:
        while self._dispatcher.wait_for_work(busy=bool(self._batches)):
            try:
                self._sweep()
                self._admit()
                self._step_all()
            except DeviceLost as error:
                self._dispatcher.lose(error, self._give_up_all())
            except Exception:
                self._give_up_all()
        for batch in list(self._batches.values()):
            self._abandon(batch)

    def _step_all(self) -> None:
        # Not in the loop of ``run``, whose variables would keep the last batch, and its bundle, while it waits.
        for batch in sorted(self._batches.values(), key=lambda batch: batch.key.priority):
            self._step(batch)

    def _sweep(self) -> None:
        """Take out who has gone, before others are let in: their places are free at once."""
        self._dispatcher.expire()
        for batch in list(self._batches.values()):
            self._drop_doomed(batch)
            self._close_if_empty(batch)

    def _admit(self) -> None:
        loads = {key: batch.load(self._factories.get(key.bundle)) for key, batch in self._batches.items()}
        plans = self._dispatcher.plan(loads)
        self._joining = [ticket for _, tickets in plans for ticket in tickets]
        for key, tickets in plans:
            try:
                self._join(self._batch(key), tickets)
            except UnknownModel as error:
                self._dispatcher.fail(tickets, error)
            except DeviceLost:
                raise
            except Exception:
                self._fail(key, tickets)
                if key in self._batches:
                    self._give_up(self._batches[key])
        self._joining = []

    def _batch(self, key: BatchKey) -> RunningBatch:
        if key not in self._batches:
            factory = self._factories.get(key.bundle)
            if factory is None:
                raise UnknownModel(f"{key.bundle} was unloaded before this text was done")
            self._batches[key] = RunningBatch(key, factory(key), factory)
        return self._batches[key]

    def _join(self, batch: RunningBatch, tickets: list[Ticket]) -> None:
        """Encode and join. Where that fails, each is tried alone: a sentence at fault costs itself only."""
        self.calls += 1
        started = self._clock()
        try:
            batch.decoder.join([ticket.job.sentence(ticket.id) for ticket in tickets])
        except DeviceLost:
            raise
        except Exception as error:
            batch.decoder.remove([ticket.id for ticket in tickets])  # of a crash half-way something may be left
            if len(tickets) > 1:
                for ticket in tickets:
                    self._join(batch, [ticket])
            elif isinstance(error, OptionError):
                self._dispatcher.fail(tickets, error)
            else:
                self._fail(batch.key, tickets)
        else:
            seconds = self._clock() - started
            batch.members |= {ticket.id: RunningSentence(ticket, started, seconds) for ticket in tickets}
            self._dispatcher.note_joined(tickets, started, seconds)

    def _step(self, batch: RunningBatch) -> None:
        self._drop_doomed(batch)
        try:
            if batch.members:
                self._advance(batch)
        except SentenceError as error:
            self._expel(batch, [number for number in batch.members if number in error.ids])
        except DeviceLost:
            raise
        except Exception:
            self._give_up(batch)
        self._close_if_empty(batch)

    def _advance(self, batch: RunningBatch) -> None:
        self.calls += 1
        sentences, before, started = len(batch.decoder.ids), batch.decoder.counters, self._clock()
        finished = batch.decoder.step()
        self._dispatcher.note_step(sentences, before, batch.decoder.counters, self._clock() - started)
        self._finish(batch, finished)
        if len(batch.decoder) != len(batch.members):
            # What the batch has lost would never finish, and never be asked for.
            raise RuntimeError(f"the batch has {len(batch.decoder)} sentences, but {len(batch.members)} wait for it")

    def _drop_doomed(self, batch: RunningBatch) -> None:
        try:
            self._remove(batch, self._dispatcher.doomed(batch.members))
        except DeviceLost:
            raise
        except Exception:
            self._give_up(batch)

    def _close_if_empty(self, batch: RunningBatch) -> None:
        if not batch.members:
            del self._batches[batch.key]

    def _remove(self, batch: RunningBatch, leaving: list[int]) -> None:
        for number in leaving:
            del batch.members[number]
        if leaving:
            batch.decoder.remove(leaving)

    def _expel(self, batch: RunningBatch, faulty: list[int]) -> None:
        """Fail the sentences at fault, and let the others go on."""
        try:
            self._fail(batch.key, [batch.members[number].ticket for number in faulty] or batch.tickets)
            self._remove(batch, faulty or list(batch.members))
        except DeviceLost:
            raise
        except Exception:
            self._give_up(batch)

    def _give_up(self, batch: RunningBatch) -> None:
        """Called while an exception is handled: one that was alone fails, several are decoded again, each alone."""
        tickets = batch.tickets
        batch.members.clear()
        if len(tickets) < 2:
            self._fail(batch.key, tickets)
            return
        _log.warning("batch_crashed", bundle=batch.key.bundle, sentences=len(tickets), exc_info=True)
        self._retrying = tickets
        for ticket in tickets:
            self._decode_alone(ticket, batch)
        self._retrying = []

    def _decode_alone(self, ticket: Ticket, crashed: RunningBatch) -> None:
        key = replace(crashed.key, alone=ticket.id)
        try:
            batch = RunningBatch(key, crashed.factory(key), crashed.factory)
        except DeviceLost:
            raise
        except Exception:
            self._fail(key, [ticket])
            return
        self._join(batch, [ticket])
        if batch.members:
            self._batches[key] = batch

    def _give_up_all(self) -> DecodingFailed:
        """The last resort, called while an exception is handled. Returns what those who waited were told."""
        error = DecodingFailed(uuid.uuid4().hex[:12])
        _log.error("worker_crashed", incident=error.incident, exc_info=True)
        held = [ticket for batch in self._batches.values() for ticket in batch.tickets]
        self._batches.clear()
        self._dispatcher.fail(held + self._joining + self._retrying, error)
        self._joining, self._retrying = [], []
        self._dispatcher.drop_waiting(error)
        return error

    def _finish(self, batch: RunningBatch, finished: list[Finished]) -> None:
        now, results = self._clock(), []
        for item in finished:
            member = batch.members[cast("int", item.id)]  # the ids are the tickets' own
            ticket = member.ticket
            decode = now - member.joined - member.encode
            queue = member.joined - ticket.arrival
            results.append((ticket, Decoded(item.hypotheses, False, queue, member.encode, decode)))
        if results:
            keep = self._factories.get(batch.key.bundle) is batch.factory
            last = len(self._batches) == 1 and len(results) == len(batch.members)
            self._dispatcher.deliver(results, keep=keep, last=last)
        for ticket, _ in results:
            del batch.members[ticket.id]

    def _fail(self, key: BatchKey, tickets: list[Ticket]) -> None:
        """Called while an exception is handled: log it under a new id, and tell those who wait."""
        incident = uuid.uuid4().hex[:12]
        requests = sorted({ticket.job.tag for ticket in tickets})
        _log.error("decoding_failed", incident=incident, bundle=key.bundle, requests=requests, exc_info=True)
        error = DecodingFailed(incident)
        error.__cause__ = sys.exception()
        self._dispatcher.fail(tickets, error)

    def _abandon(self, batch: RunningBatch) -> None:
        _log.warning("batch_abandoned", bundle=batch.key.bundle, sentences=len(batch.members))
        self._dispatcher.fail(batch.tickets, Draining())
