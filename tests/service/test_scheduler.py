"""The scheduler with a clock that stands still: nothing lost, nothing twice, nobody starves, every bound kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from models.search import SearchOptions
from service.engine import Job, Lane, Load, Overloaded, Priority, Scheduler, SchedulerLimits, Ticket


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def job(length: int = 5, beam: int = 2, bundle: str = "a", **fields: Any) -> Job:
    return Job(bundle, ((1,) * length,), SearchOptions(beam_size=beam, max_length=50), **fields)


def scheduler(clock: Clock | None = None, **limits: Any) -> Scheduler:
    return Scheduler(SchedulerLimits(**limits), clock or Clock())


def taken(plan: list[tuple[Lane, list[Ticket]]]) -> list[int]:
    return [ticket.id for _, tickets in plan for ticket in tickets]


def test_admits_all_or_nothing_and_says_when_to_come_back() -> None:
    small = scheduler(max_queue_tokens=100)
    small.admit([job(20)])
    held = small.queued_tokens
    with pytest.raises(Overloaded, match="at most 100 predicted tokens") as caught:
        small.admit([job(1), job(60)])
    assert 1 <= caught.value.retry_after <= 60
    assert (small.queued_tokens, small.waiting) == (held, 1)


def test_a_request_over_the_whole_bound_runs_when_alone() -> None:
    small = scheduler(max_queue_tokens=10)
    tickets = small.admit([job(40)])
    assert taken(small.plan({})) == [tickets[0].id]


def test_batches_similar_lengths_from_the_oldest_on() -> None:
    queue = scheduler(max_batch_tokens=2 * 3 * 10)
    tickets = queue.admit([job(10), job(40), job(9), job(10), job(12), job(10)])
    assert taken(queue.plan({})) == [tickets[i].id for i in (0, 2, 3)]  # the first one's bucket, to the budget
    assert taken(queue.plan({})) == [tickets[1].id]  # then the oldest again, alone over the budget


def test_the_longest_of_several_sources_counts() -> None:
    """For buckets and budgets whichever source it is; the queue holds the tokens of all of them."""
    options = SearchOptions(beam_size=2, max_length=50)
    sizes = ((3, 10), (10, 3), (4, 40), (9, 9))
    jobs = [Job("a", tuple((1,) * length for length in lengths), options) for lengths in sizes]
    assert [one.length for one in jobs] == [10, 10, 40, 9]
    assert jobs[2].predicted_tokens == 44 + 50
    assert jobs[2].predicted_tokens > job(40).predicted_tokens
    queue = scheduler(max_batch_tokens=2 * 3 * 10)
    tickets = queue.admit(jobs)
    assert taken(queue.plan({})) == [tickets[i].id for i in (0, 1, 3)]
    assert taken(queue.plan({})) == [tickets[2].id]


def test_what_does_not_fit_is_not_overtaken_by_younger_sentences() -> None:
    queue = scheduler(max_batch_tokens=2 * 2 * 10)
    lane = job().lane
    queue.admit([job(30)])
    queue.admit([job(5)])
    assert queue.plan({lane: Load(1, 10)}) == []
    assert len(taken(queue.plan({}))) == 1


def test_interactive_before_bulk_but_not_for_ever() -> None:
    clock = Clock()
    queue = scheduler(clock, max_batch_sentences=1, max_batches_per_bundle=1, bulk_handicap=5.0)
    (bulk,) = queue.admit([job(priority=Priority.BULK)])
    clock.now += 4
    (early,) = queue.admit([job()])
    clock.now += 2
    (late,) = queue.admit([job()])
    order = []
    while queue.waiting:
        (number,) = taken(queue.plan({}))
        order.append(number)
        queue.finish([number])
    assert order == [early.id, bulk.id, late.id]


def test_a_third_lane_of_a_bundle_waits_and_holds_back_the_younger() -> None:
    queue = scheduler()
    loads = {job(beam=1).lane: Load(1, 5), job(beam=2).lane: Load(1, 5)}
    queue.admit([job(beam=3)])
    queue.admit([job(beam=1)])
    queue.admit([job(bundle="b")])
    assert [lane.bundle for lane, _ in queue.plan(loads)] == ["b"]  # bundle a empties a batch first
    del loads[job(beam=1).lane]
    assert [lane.beam_size for lane, _ in queue.plan(loads)] == [3]


def test_workers_share_what_waits() -> None:
    queue = scheduler()
    queue.admit([job() for _ in range(10)])
    assert len(taken(queue.plan({}, share=2))) == 5


def test_cancel_removes_waiting_at_once_and_running_at_the_next_step() -> None:
    queue = scheduler(max_batch_sentences=1)
    first, second = queue.admit([job(), job(30)])
    assert taken(queue.plan({}))[0] == first.id
    assert queue.cancel([first.id, second.id, 999]) == 2
    assert queue.waiting == 0
    assert queue.doomed([first.id]) == [first.id]
    queue.finish([first.id])
    assert (queue.queued_tokens, queue.running) == (0, 0)


def test_deadlines_remove_waiting_and_running_sentences() -> None:
    clock = Clock()
    queue = scheduler(clock, max_batch_sentences=1)
    running, waiting, patient = queue.admit([job(deadline=101.0), job(deadline=101.0), job(deadline=500.0)])
    queue.plan({})
    assert queue.expire() == []
    clock.now = 102.0
    assert queue.expire() == [running, waiting]
    assert queue.doomed([running.id]) == [running.id]
    assert queue.waiting == 1
    assert patient.id in taken(queue.plan({}))


def test_the_wait_until_a_retry_follows_the_measured_rate() -> None:
    clock = Clock()
    queue = scheduler(clock, max_batch_sentences=100)
    for _ in range(20):
        queue.admit([job(20)])
        queue.finish(taken(queue.plan({})))
        clock.now += 0.5
    rate = job(20).predicted_tokens / 0.5
    queue.admit([job(20) for _ in range(40)])
    assert queue.retry_after() == pytest.approx(queue.queued_tokens / rate, abs=3)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    others=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 4)), min_size=1, max_size=6),
    bulk=st.booleans(),
)
def test_nobody_starves_while_others_keep_coming(lengths: list[int], others: list[tuple[int, int]], bulk: bool) -> None:
    """Whatever younger work arrives each round, sentences that were there first are all taken within bounded time."""
    clock = Clock()
    queue = scheduler(clock, max_batch_tokens=240, max_batch_sentences=4, max_queue_tokens=10**9)
    old = {
        t.id for t in queue.admit([job(n, priority=Priority.BULK if bulk else Priority.INTERACTIVE) for n in lengths])
    }
    batches: dict[Lane, list[tuple[int, int, int]]] = {}  # ticket, length, rounds left
    for _ in range(200):
        clock.now += 1.0
        queue.admit([job(length, beam) for length, beam in others])
        loads = {lane: Load(len(batch), max(n for _, n, _ in batch)) for lane, batch in batches.items()}
        for lane, tickets in queue.plan(loads):
            batches.setdefault(lane, []).extend((t.id, t.job.length, 3) for t in tickets)
            old -= {t.id for t in tickets}
        for lane, batch in list(batches.items()):
            queue.finish([number for number, _, left in batch if left == 0])
            batches[lane] = [(number, n, left - 1) for number, n, left in batch if left]
            if not batches[lane]:
                del batches[lane]
        if not old:
            return
    pytest.fail(f"{len(old)} sentences starved")


class SchedulerMachine(RuleBasedStateMachine):
    """Random traffic against a plain account of who is where."""

    @initialize(tokens=st.integers(16, 400), sentences=st.integers(1, 6))
    def start(self, tokens: int, sentences: int) -> None:
        self.clock = Clock()
        self.limits = SchedulerLimits(max_queue_tokens=600, max_batch_tokens=tokens, max_batch_sentences=sentences)
        self.queue = Scheduler(self.limits, self.clock)
        self.waiting: dict[int, Ticket] = {}
        self.batches: dict[Lane, dict[int, Ticket]] = {}
        self.late: set[int] = set()
        self.gone: Counter[int] = Counter()

    @rule(
        lengths=st.lists(st.integers(1, 70), min_size=1, max_size=5),
        beam=st.integers(1, 3),
        bundle=st.sampled_from("ab"),
        bulk=st.booleans(),
        seconds=st.none() | st.floats(0, 5),
    )
    def admit(self, lengths: list[int], beam: int, bundle: str, bulk: bool, seconds: float | None) -> None:
        deadline = None if seconds is None else self.clock.now + seconds
        priority = Priority.BULK if bulk else Priority.INTERACTIVE
        jobs = [job(n, beam, bundle, priority=priority, deadline=deadline) for n in lengths]
        try:
            tickets = self.queue.admit(jobs)
        except Overloaded:
            assert self.queue.queued_tokens + sum(one.predicted_tokens for one in jobs) > 600
            return
        self.waiting |= {ticket.id: ticket for ticket in tickets}

    @rule(seconds=st.floats(0, 3), share=st.integers(1, 3))
    def step(self, seconds: float, share: int) -> None:
        self.clock.now += seconds
        for ticket in self.queue.expire():
            self.late.add(ticket.id)
            assert ticket.job.deadline is not None
            assert ticket.job.deadline <= self.clock.now
            if self.waiting.pop(ticket.id, None):
                self.gone[ticket.id] += 1
        for lane, batch in list(self.batches.items()):
            self._leave(lane, self.queue.doomed(batch))
        loads = {lane: Load(len(b), max(t.job.length for t in b.values())) for lane, b in self.batches.items()}
        for lane, tickets in self.queue.plan(loads, share):
            for ticket in tickets:
                assert ticket.lane == lane
                self.batches.setdefault(lane, {})[ticket.id] = self.waiting.pop(ticket.id)
            self._check_batch(lane)
        for bundle in "ab":
            assert sum(lane.bundle == bundle for lane in self.batches) <= self.limits.max_batches_per_bundle

    def _check_batch(self, lane: Lane) -> None:
        batch = self.batches[lane]
        assert len(batch) <= self.limits.max_batch_sentences
        longest = max(ticket.job.length for ticket in batch.values())
        assert len(batch) == 1 or len(batch) * lane.beam_size * longest <= self.limits.max_batch_tokens

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        lane = data.draw(st.sampled_from(list(self.batches)))
        self._leave(lane, data.draw(st.lists(st.sampled_from(list(self.batches[lane])), min_size=1, unique=True)))

    def _leave(self, lane: Lane, numbers: list[int]) -> None:
        self.queue.finish(numbers)
        for number in numbers:
            del self.batches[lane][number]
            self.gone[number] += 1
        if not self.batches[lane]:
            del self.batches[lane]

    @precondition(lambda self: self.waiting or self.batches)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        everyone = [*self.waiting, *(number for batch in self.batches.values() for number in batch)]
        number = data.draw(st.sampled_from(everyone))
        assert self.queue.cancel([number]) == 1
        if self.waiting.pop(number, None):
            self.gone[number] += 1

    @invariant()
    def everyone_is_in_one_place(self) -> None:
        if not hasattr(self, "queue"):
            return
        running = [ticket for batch in self.batches.values() for ticket in batch.values()]
        assert self.queue.waiting == len(self.waiting)
        assert self.queue.running == len(running)
        assert self.queue.queued_tokens == sum(ticket.tokens for ticket in [*self.waiting.values(), *running])
        assert set(self.gone.values()) <= {1}

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return
        for _ in range(10_000):
            if not (self.waiting or self.batches):
                break
            self.step(0.0, 1)
            for lane in list(self.batches):
                self._leave(lane, list(self.batches[lane]))
        assert not self.waiting
        assert self.queue.queued_tokens == 0


TestSchedulerMachine = SchedulerMachine.TestCase
