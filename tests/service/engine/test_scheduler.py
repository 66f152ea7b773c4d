"""The scheduler by example, with a clock that stands still: who joins when, who is refused, who leaves."""

from __future__ import annotations

import pytest

from tandem.models.search import SearchOptions
from tandem.service.engine import Job, Load, Overloaded, Priority
from tests.service.engine.scheduling import Clock, job, scheduler, taken


def test_admits_all_or_nothing_and_says_when_to_come_back() -> None:
    small = scheduler(max_queue_tokens=100)
    small.admit([job(20)])
    held = small.queued_tokens
    with pytest.raises(Overloaded, match="at most 100 predicted tokens") as caught:
        small.admit([job(1), job(60)])
    assert 1 <= caught.value.retry_after <= 60
    assert (small.queued_tokens, small.waiting) == (held, 1)
    small.admit([job(1), job(60)], begun=True)  # of a request that was let in before
    assert small.waiting == 3


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
    key = job().key
    queue.admit([job(30)])
    queue.admit([job(5)])
    assert queue.plan({key: Load(1, 10)}) == []
    assert len(taken(queue.plan({}))) == 1


def test_a_third_batch_of_a_bundle_waits_and_holds_back_the_younger() -> None:
    queue = scheduler()
    loads = {job(beam=1).key: Load(1, 5), job(beam=2).key: Load(1, 5)}
    queue.admit([job(beam=3)])
    queue.admit([job(beam=1)])
    queue.admit([job(bundle="b")])
    assert [key.bundle for key, _ in queue.plan(loads)] == ["b"]  # bundle a empties a batch first
    del loads[job(beam=1).key]
    assert [key.beam_size for key, _ in queue.plan(loads)] == [3]


def test_workers_share_what_waits() -> None:
    queue = scheduler()
    queue.admit([job() for _ in range(10)])
    assert len(taken(queue.plan({}, share=2))) == 5


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


def test_an_idle_worker_gets_what_a_busy_one_has_its_part_of() -> None:
    """Two free workers end up with equally many; one that has more than that leaves new sentences to the other."""
    queue = scheduler()
    (first,) = queue.admit([job()])
    assert queue.plan({job().key: Load(10, 5)}, share=2) == []
    assert taken(queue.plan({}, share=2)) == [first.id]
    queue.admit([job() for _ in range(10)])
    assert len(taken(queue.plan({job().key: Load(4, 5)}, share=2))) == 3


def test_a_running_batch_does_not_wait_long_for_the_encoder() -> None:
    queue = scheduler(max_join_tokens=50)
    long, *short = queue.admit([job(60), *(job(20) for _ in range(5))])
    loads = {job(beam=3).key: Load(1, 5)}
    assert taken(queue.plan(loads)) == [long.id]  # one always may, however long
    assert taken(queue.plan(loads)) == [ticket.id for ticket in short[:2]]
    queue.admit([job(20, bundle="b"), job(5, bundle="b")])
    assert taken(queue.plan(loads)) == [ticket.id for ticket in short[2:4]]  # the bound is one for all batches
    assert len(taken(queue.plan({}))) == 3  # nothing runs that could be held up


def test_a_closed_batch_takes_nobody() -> None:
    queue = scheduler()
    queue.admit([job()])
    assert queue.plan({job().key: Load(1, 5, closed=True)}) == []
    assert queue.waiting == 1


def test_what_was_dropped_is_not_dropped_twice() -> None:
    clock = Clock()
    queue = scheduler(clock)
    (ticket,) = queue.admit([job(deadline=101.0)])
    queue.plan({})
    assert queue.cancel([ticket.id]) == 1
    clock.now = 102.0
    assert queue.expire() == []
    assert queue.cancel([ticket.id]) == 0
    assert queue.finish([ticket.id]) == set()
    assert queue.finish([ticket.id]) == set()
    assert queue.records == 0


def test_deadlines_of_sentences_long_gone_are_forgotten() -> None:
    """Deadlines of a day must not pile up behind sentences of a second."""
    queue = scheduler(max_batch_sentences=8)
    most = 0
    for _ in range(2_000):
        queue.admit([job(deadline=86_400.0) for _ in range(4)])
        queue.finish(taken(queue.plan({})))
        most = max(most, queue.records)
    assert most < 300


def test_bulk_work_shuts_no_interactive_request_out() -> None:
    queue = scheduler(max_queue_tokens=100)
    queue.admit([job(60, priority=Priority.BULK)] * 4)  # a large one, which finds room where half of the bound is free
    with pytest.raises(Overloaded):
        queue.admit([job(1, priority=Priority.BULK)])
    queue.admit([job(10), job(10)])
    assert not queue.full
    with pytest.raises(Overloaded):
        queue.admit([job(40)])


def test_bulk_work_waits_for_interactive_work() -> None:
    queue = scheduler(max_queue_tokens=100)
    queue.admit([job(20), job(20)])
    with pytest.raises(Overloaded):
        queue.admit([job(1, priority=Priority.BULK)])


def test_who_sends_much_is_refused_before_others() -> None:
    queue = scheduler(max_queue_tokens=100)
    large = queue.admit([job(20, caller="large"), job(20, caller="large")])
    with pytest.raises(Overloaded):
        queue.admit([job(1, caller="large")])
    with pytest.raises(Overloaded):
        queue.admit([job(1)])
    (small,) = queue.admit([job(5, caller="small")])
    with pytest.raises(Overloaded):
        queue.admit([job(1, caller="small")])
    queue.cancel([small.id])
    queue.admit([job(5, caller="small")])
    with pytest.raises(Overloaded):
        queue.admit([job(30, caller="third")])  # the reserve is half of the bound
    queue.cancel([ticket.id for ticket in large])
    queue.admit([job(5, caller="large")])
    assert queue.queued_tokens == 2 * job(5).predicted_tokens
