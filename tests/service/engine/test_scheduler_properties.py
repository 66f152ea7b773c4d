"""The scheduler under random traffic: nothing lost, nothing twice, nobody starves, every bound kept at every plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tandem.models.search import DecodeBatch, SearchOptions, Sentence
from tandem.service.engine import BatchKey, Job, Load, Overloaded, Priority, Scheduler, SchedulerLimits
from tests.models.search.tables import TableGraphs, hashed, source
from tests.service.engine.dispatchers import alone
from tests.service.engine.dispatchers import job as sentence_job
from tests.service.engine.scheduling import WORKERS, Books, Clock, Waiting, job, scheduler, taken

QUEUE = 600  # predicted tokens
LANES = st.tuples(st.integers(1, 3), st.sampled_from("ab"), st.sampled_from(Priority))


class SchedulerMachine(RuleBasedStateMachine):
    """Several workers and random traffic against books that are kept by hand."""

    @initialize(
        batch_tokens=st.integers(16, 400),
        sentences=st.integers(1, 6),
        join_tokens=st.integers(1, 100),
        places=st.integers(1, 2),
    )
    def start(self, batch_tokens: int, sentences: int, join_tokens: int, places: int) -> None:
        self.clock = Clock()
        self.limits = SchedulerLimits(QUEUE, batch_tokens, sentences, join_tokens, max_batches_per_bundle=places)
        self.queue = Scheduler(self.limits, self.clock)
        self.books = Books()

    @rule(
        lengths=st.lists(st.integers(1, 70), min_size=1, max_size=5),
        kind=LANES,
        seconds=st.none() | st.floats(0, 5),
    )
    def admit(self, lengths: list[int], kind: tuple[int, str, Priority], seconds: float | None) -> None:
        beam, bundle, priority = kind
        deadline = None if seconds is None else self.clock.now + seconds
        jobs = [job(n, beam, bundle, priority=priority, deadline=deadline) for n in lengths]
        before, tokens = self.queue.queued_tokens, sum(one.predicted_tokens for one in jobs)
        there = [*(one.ticket for one in self.books.waiting.values()), *self.books.running.values()]
        # Bulk work shuts no interactive request out.
        ahead = sum(one.tokens for one in there if priority is Priority.BULK or one.job.priority is not Priority.BULK)
        if ahead and ahead + min(tokens, QUEUE // 2) > QUEUE:
            with pytest.raises(Overloaded) as refused:
                self.queue.admit(jobs)
            assert 1 <= refused.value.retry_after <= 60
            assert self.queue.queued_tokens == before
            return
        tickets = self.queue.admit(jobs)
        assert [ticket.job for ticket in tickets] == jobs
        for ticket in tickets:
            older = sum(other.ticket.key == ticket.key for other in self.books.waiting.values())
            self.books.waiting[ticket.id] = Waiting(ticket, older)

    @rule(seconds=st.floats(0, 3), worker=st.integers(0, WORKERS - 1), share=st.integers(1, WORKERS))
    def step(self, seconds: float, worker: int, share: int) -> None:
        """What a worker does between two steps."""
        self.clock.now += seconds
        self._expire()
        for key, batch in list(self.books.batches[worker].items()):
            leaving = self.queue.doomed(batch)
            assert set(leaving) == self.books.dropped & set(batch)  # all that were dropped leave within one step
            assert self.queue.finish(leaving) == set()
            for number in leaving:
                self.books.leave(worker, key, number)
        self._plan(worker, share)

    def _expire(self) -> None:
        everyone = self.books.running | {n: one.ticket for n, one in self.books.waiting.items()}
        deadlines = {number: ticket.job.deadline for number, ticket in everyone.items()}
        due = {n for n, deadline in deadlines.items() if deadline is not None and deadline <= self.clock.now}
        late = {ticket.id for ticket in self.queue.expire()}
        assert late == due - self.books.dropped
        for number in late:
            if self.books.waiting.pop(number, None):
                self.books.gone[number] += 1
            else:
                self.books.dropped.add(number)

    def _plan(self, worker: int, share: int) -> None:
        books, limits, loads = self.books, self.limits, self.books.loads(worker)
        waiting, running = len(books.waiting), sum(load.sentences for load in loads.values())
        plans = self.queue.plan(loads, share)
        joined = [ticket for _, tickets in plans for ticket in tickets]
        for key, tickets in plans:
            for ticket in tickets:
                assert ticket.key == key
                books.join(worker, key, ticket)
        assert len({key for key, _ in plans}) == len(plans)
        encoded = sum(ticket.job.source_tokens for ticket in joined)
        assert not loads or len(joined) <= 1 or encoded <= limits.max_join_tokens
        assert running + len(joined) <= max(running, -(-(waiting + running) // share))
        assert joined or loads or not waiting  # an idle worker never leaves empty-handed
        for key, batch in books.batches[worker].items():
            longest = max(ticket.job.length for ticket in batch.values())
            assert len(batch) == 1 or len(batch) * key.beam_size * longest <= limits.max_batch_tokens
            assert len(batch) <= limits.max_batch_sentences
        for bundle in "ab":
            assert sum(key.bundle == bundle for key in books.batches[worker]) <= limits.max_batches_per_bundle
        for one in books.waiting.values():
            # Whoever joins a batch before it comes with somebody older than it.
            assert one.overtaken <= one.older * (limits.max_batch_sentences - 1)

    @precondition(lambda self: self.books.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        places = [(w, key) for w, own in enumerate(self.books.batches) for key in own]
        worker, key = data.draw(st.sampled_from(places))
        self._leave(worker, key, data.draw(st.sets(st.sampled_from(list(self.books.batches[worker][key])), min_size=1)))

    def _leave(self, worker: int, key: BatchKey, numbers: set[int]) -> None:
        assert self.queue.finish(numbers) == numbers - self.books.dropped
        for number in numbers:
            self.books.leave(worker, key, number)

    @precondition(lambda self: self.books.running or self.books.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([*self.books.waiting, *self.books.running]))
        known = number not in self.books.dropped
        assert self.queue.cancel([number, 10**9]) == known
        if self.books.waiting.pop(number, None):
            self.books.gone[number] += 1
        else:
            self.books.dropped.add(number)

    @precondition(lambda self: self.books.waiting)
    @rule()
    def drop_waiting(self) -> None:
        dropped = {ticket.id for ticket in self.queue.drop_waiting()}
        assert dropped == set(self.books.waiting)
        self.books.gone.update(dropped)
        self.books.waiting.clear()

    @invariant()
    def everyone_is_in_one_place(self) -> None:
        if not hasattr(self, "queue"):
            return
        running, waiting = self.books.running, [one.ticket for one in self.books.waiting.values()]
        assert (self.queue.waiting, self.queue.running) == (len(waiting), len(running))
        assert self.queue.queued_tokens == sum(ticket.tokens for ticket in [*waiting, *running.values()])
        assert set(self.books.gone.values()) <= {1}
        assert not self.books.gone.keys() & {*running, *self.books.waiting}

    def teardown(self) -> None:
        """Without new arrivals everybody leaves, and nothing stays behind."""
        if not hasattr(self, "queue"):
            return
        for _ in range(len(self.books.waiting) + 1):
            self.step(0.0, 0, 1)
            for worker, own in enumerate(self.books.batches):
                for key in list(own):
                    self._leave(worker, key, set(own[key]))
        assert not self.books.waiting
        assert self.queue.queued_tokens == 0
        assert self.queue.records <= 64 + 50  # deadlines of those who left, and the last seconds' rate


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(stateful_step_count=40)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    kind=LANES,
    others=st.lists(st.tuples(st.integers(1, 60), LANES), min_size=1, max_size=6),
)
def test_nobody_starves_while_others_keep_coming(
    lengths: list[int], kind: tuple[int, str, Priority], others: list[tuple[int, tuple[int, str, Priority]]]
) -> None:
    """Whatever younger work arrives each round, of whichever bundle, beam size or priority, the old is all taken.

    Rounds take a second, sentences run for three. Once the handicap is over and what ran has left, each round that
    takes none of the old sentences is one in which a batch empties for them.
    """
    clock = Clock()
    queue = scheduler(clock, max_batch_tokens=240, max_batch_sentences=4, max_join_tokens=60, max_queue_tokens=10**9)
    old = {ticket.id for ticket in queue.admit([_of(kind, n) for n in lengths])}
    batches: dict[BatchKey, list[tuple[int, int, int]]] = {}  # ticket, length, rounds left
    bound = 5 + 9 * (len(lengths) + 1)
    for _ in range(bound):
        clock.now += 1.0
        queue.admit([_of(other, length) for length, other in others])
        loads = {key: Load(len(batch), max(n for _, n, _ in batch)) for key, batch in batches.items()}
        for key, tickets in queue.plan(loads):
            batches.setdefault(key, []).extend((t.id, t.job.length, 3) for t in tickets)
            old -= {t.id for t in tickets}
        for key, batch in list(batches.items()):
            queue.finish([number for number, _, left in batch if left == 0])
            batches[key] = [(number, n, left - 1) for number, n, left in batch if left]
            if not batches[key]:
                del batches[key]
        if not old:
            return
    pytest.fail(f"{len(old)} of {len(lengths)} sentences still wait after {bound} rounds")


def _of(kind: tuple[int, str, Priority], length: int) -> Job:
    beam, bundle, priority = kind
    return job(length, beam, bundle, priority=priority)


@given(arrivals=st.lists(st.tuples(st.floats(0, 4), st.integers(1, 60), LANES), min_size=1, max_size=15))
def test_with_one_place_the_order_is_that_of_arrival_and_handicap(
    arrivals: list[tuple[float, int, tuple[int, str, Priority]]],
) -> None:
    """One bundle, one batch, one sentence: who is served next is who is most urgent, whatever lengths and beams."""
    clock = Clock()
    queue = scheduler(clock, max_batch_sentences=1, max_batches_per_bundle=1, bulk_handicap=5.0)
    urgency: dict[int, float] = {}
    keys: dict[int, BatchKey] = {}
    for seconds, length, (beam, _, priority) in arrivals:
        clock.now += seconds
        (ticket,) = queue.admit([job(length, beam, priority=priority)])
        urgency[ticket.id] = clock.now + (5.0 if priority is Priority.BULK else 0.0)
        keys[ticket.id] = ticket.key
    served = []
    while queue.waiting:
        (number,) = taken(queue.plan({}))
        served.append(number)
        queue.finish([number])
    assert [urgency[number] for number in served] == sorted(urgency.values())
    for key in set(keys.values()):
        own = [number for number in served if keys[number] == key]
        assert own == sorted(own)


@given(st.data())
def test_bundles_with_work_share_a_worker(data: st.DataObject) -> None:
    """However much waits for one bundle, a bundle that has a free place and the older sentence gets its batch."""
    queue = scheduler(max_join_tokens=10**6)
    many = data.draw(st.integers(1, 200))
    first = data.draw(st.sampled_from("ab"))
    queue.admit([job(bundle=first)])
    queue.admit([job(bundle="c") for _ in range(many)])
    queue.admit([job(bundle="ab".replace(first, ""))])
    planned = {key.bundle: len(tickets) for key, tickets in queue.plan({})}
    assert planned == {"a": 1, "b": 1, "c": min(many, 64)}


ALONE = TableGraphs(hashed(9), 9)
OPTIONS = (SearchOptions(beam_size=2, max_length=9), SearchOptions(beam_size=3, max_length=6, n_best=2))


SENTENCES = st.lists(
    st.tuples(
        st.lists(st.integers(4, 8), min_size=1, max_size=12).map(tuple), st.sampled_from(OPTIONS), st.integers(0, 6)
    ),
    min_size=1,
    max_size=10,
)


@given(sentences=SENTENCES, gone=st.sets(st.integers(0, 9)))
def test_neither_arrival_nor_company_changes_a_result(
    sentences: list[tuple[tuple[int, ...], SearchOptions, int]], gone: set[int]
) -> None:
    """Sentences come at random steps, some are cancelled half-way, and the others get what they get alone."""
    queue = scheduler(max_batch_tokens=100, max_batch_sentences=4, max_join_tokens=20)
    batches: dict[BatchKey, DecodeBatch] = {}
    tickets: dict[int, int] = {}  # ticket id -> sentence
    results: dict[int, Any] = {}
    at = 0
    while at <= 6 or queue.waiting or queue.running:
        arriving = [number for number, (_, _, when) in enumerate(sentences) if when == at]
        jobs = [sentence_job(*sentences[n][0], options=sentences[n][1]) for n in arriving]
        tickets |= {t.id: n for t, n in zip(queue.admit(jobs), arriving, strict=True)}
        queue.cancel([number for number, n in tickets.items() if n in gone and at > sentences[n][2] + 1])
        lengths = {number: len(sentences[n][0]) + 1 for number, n in tickets.items()}
        loads = {key: Load(len(b.ids), max(lengths[int(str(i))] for i in b.ids)) for key, b in batches.items()}
        for key, joining in queue.plan(loads):
            batch = batches.setdefault(key, DecodeBatch(ALONE, beam_size=key.beam_size))
            batch.join([Sentence(t.id, source(*sentences[tickets[t.id]][0]), t.job.options) for t in joining])
        for key, batch in list(batches.items()):
            leaving = queue.doomed([int(str(number)) for number in batch.ids])
            queue.finish(leaving)
            batch.remove(leaving)
            for finished in batch.step() if len(batch) else ():
                results[tickets[int(str(finished.id))]] = finished.hypotheses
                queue.finish([int(str(finished.id))])
            if not len(batch):
                del batches[key]
        at += 1
    assert set(results) >= set(range(len(sentences))) - gone
    assert results == {n: alone(ALONE, sentence_job(*sentences[n][0], options=sentences[n][1])) for n in results}
