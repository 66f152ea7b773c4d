"""The client: when requests are sent, what counts as latency, and what becomes of them."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.loadtest.client import LoadRun, RequestOutcome, arrivals, closed_loop, open_loop, send_all
from tandem.extras.loadtest.server import free_port
from tandem.models.errors import ConfigError
from tests.deploy import listening

PATIENCE = 30.0  # seconds after which something that must happen has not


@contextmanager
def service(answer: Callable[[bytes], int]) -> Iterator[str]:
    """An HTTP service that answers each body, in a thread of its own, with the status that ``answer`` returns."""

    class Handler(listening.Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with listening.listening(Handler) as url:
        yield f"{url}/"


@given(st.floats(0.5, 500), st.floats(0.01, 20), st.integers(0, 1000))
def test_arrivals_rise_within_the_duration_and_come_again(rate: float, seconds: float, seed: int) -> None:
    moments = arrivals(rate, seconds, seed)
    assert (np.diff(moments) >= 0).all()
    assert min(moments, default=1) > 0 and max(moments, default=0) < seconds
    assert np.array_equal(moments, arrivals(rate, seconds, seed))
    # A longer run begins as a shorter one does: the moments depend on nothing but rate and seed.
    assert np.array_equal(moments, arrivals(rate, 2 * seconds, seed)[: len(moments)])


@given(st.integers(0, 1000))
def test_arrivals_have_the_rate_and_the_spread_of_a_poisson_process(seed: int) -> None:
    moments = arrivals(50.0, 200.0, seed)
    assert len(moments) == pytest.approx(10_000, abs=600)  # six standard deviations
    gaps = np.diff(moments)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.1)  # of an exponential distribution they are equal
    assert not np.array_equal(moments, arrivals(50.0, 200.0, seed + 1))


@pytest.mark.parametrize(("rate", "seconds"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (math.nan, 1.0)])
def test_arrivals_need_a_rate_and_a_duration(rate: float, seconds: float) -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        arrivals(rate, seconds)


@given(st.floats(0.5, 500), st.floats(0.01, 20))
def test_even_arrivals_have_one_gap(rate: float, seconds: float) -> None:
    moments = arrivals(rate, seconds, kind="constant")
    assert moments[0] == 0
    assert moments[-1] < seconds + 1e-9
    assert len(moments) == pytest.approx(rate * seconds, abs=1)
    assert np.allclose(np.diff(moments), 1 / rate)
    assert arrivals(rate, seconds, 7, "constant") == moments  # no seed changes them


def test_even_arrivals_need_a_rate() -> None:
    assert arrivals(10.0, 0.3, kind="constant") == pytest.approx([0, 0.1, 0.2])  # 10 x 0.3 is a little more than 3
    with pytest.raises(ConfigError, match="must be above 0"):
        arrivals(0.0, 1.0, kind="constant")


def test_answers_are_looked_at_one_by_one() -> None:
    """A wrong answer is a failure; each is looked at as that of its own request."""
    with service(lambda body: int(body)) as url:
        seen: list[tuple[int, bytes]] = []

        def fault(number: int, content: bytes) -> str:
            seen.append((number, content))
            return "wrong" if number == 1 else ""

        run = open_loop(url, [b"200", b"200", b"503"], [0.0, 0.0, 0.0], fault=fault)
    assert [outcome.ending for outcome in run.outcomes] == ["answered", "failed", "rejected"]
    assert (run.outcomes[1].fault, run.completed) == ("wrong", 1)
    assert sorted(seen) == [(0, b"{}"), (1, b"{}")]  # a rejection is no answer


def test_an_open_loop_does_not_wait_for_answers() -> None:
    """Nothing is answered until everything has arrived, which a client that waits would never see."""
    count = 20
    arrived = threading.Semaphore(0)
    everything = threading.Event()

    def answer(body: bytes) -> int:
        arrived.release()
        return 200 if everything.wait(PATIENCE) else 500

    def watch() -> None:
        for _ in range(count):
            arrived.acquire()
        everything.set()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with service(answer) as url:
        run = open_loop(url, [b"{}"], [0.002 * number for number in range(count)], patience=PATIENCE)
    assert (len(run.outcomes), run.count("answered"), run.completed) == (count, count, count)


def test_latency_counts_from_when_a_request_was_due() -> None:
    with service(lambda body: 200) as url:
        run = open_loop(url, [b"{}"], [-5.0, 0.0])  # the client is five seconds late for the first one
    late, punctual = run.outcomes
    assert late.latency >= late.lag >= 5.0
    assert punctual.latency < 5.0 < late.latency
    assert run.seconds < 5.0  # what the rate is over begins with the run


def test_what_is_not_answered_in_time_is_unfinished() -> None:
    release = threading.Event()

    def answer(body: bytes) -> int:
        release.wait(PATIENCE)
        return 200

    with service(answer) as url:
        run = open_loop(url, [b"{}"], [0.0, 0.001], patience=0.05)
        release.set()
    assert (run.count("unfinished"), run.completed) == (2, 0)
    assert run.record()["p99_ms"] is None


def test_a_closed_loop_keeps_so_many_requests_in_flight_and_no_more() -> None:
    inside, most, lock = 0, 0, threading.Lock()
    pair = threading.Barrier(2)

    def answer(body: bytes) -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        try:
            pair.wait(PATIENCE)  # only a second client lets the first one go on
        finally:
            with lock:
                inside -= 1
        return 200

    with service(answer) as url:
        run = send_all(url, [b"{}"] * 8, clients=2)
    assert (most, run.count("answered")) == (2, 8)


def test_every_body_is_sent_once_in_order() -> None:
    seen: list[int] = []

    def answer(body: bytes) -> int:
        seen.append(json.loads(body))
        return 200

    with service(answer) as url:
        run = send_all(url, [json.dumps(number).encode() for number in range(10)], clients=1)
        assert seen == list(range(10))
        assert run.completed == 10
        seen.clear()
        closed_loop(url, [b"0", b"1", b"2"], clients=1, seconds=0.1)
    assert seen == [number % 3 for number in range(len(seen))]


def test_rejections_and_faults_are_told_apart() -> None:
    with service(lambda body: int(body)) as url:
        run = send_all(url, [b"200", b"503", b"429", b"500", b"422", b"503"], clients=1)
    record = run.record()
    assert (run.count("answered"), record["rejected"], record["failed"]) == (1, 3, 2)
    assert record["fault"].startswith("503")


def test_nobody_listening_is_a_failure() -> None:
    run = send_all(f"http://127.0.0.1:{free_port()}/", [b"{}"], clients=1)
    assert run.count("failed") == 1
    assert "ClientConnectorError" in run.fault
    assert run.record()["p50_ms"] is None


def test_percentiles_count_what_waited() -> None:
    outcomes = [RequestOutcome(latency / 100, "answered") for latency in range(1, 100)]
    run = LoadRun((*outcomes, RequestOutcome(9.0, "unfinished"), RequestOutcome(0.0, "rejected")), 2.0, 99, cpu=0.1)
    assert run.latency(50) == pytest.approx(0.505)  # of 100 requests: the rejected one has no latency
    assert run.latency(100) == 9.0
    assert run.requests_per_s == 49.5
    assert (run.within(0.5), run.within(10.0)) == (50, 99)  # neither what is unfinished nor what was rejected
    record = run.record()
    assert (record["p50_ms"], record["max_ms"], record["unfinished"]) == (505.0, 9000.0, 1)
    assert record["client_cpu_ms"] == pytest.approx(0.99, abs=0.01)
