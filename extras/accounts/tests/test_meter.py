"""Rates and quotas: counted alike in SQLite and in a shared store, given back, and while a store is down."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fakeredis
import pytest
from limits.storage import RedisStorage, Storage
from structlog.testing import capture_logs

from tandem.extras.accounts.counters import MIGRATIONS, SqliteCounters, shared_counters
from tandem.extras.accounts.errors import LimitsUnavailable, QuotaExceeded, RateLimited
from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.accounts.meter import Meter
from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError
from tandem.service.callers import Receipt
from tandem.service.errors import StorageError
from tandem.service.http.error_replies import reply_for
from tests.service.support import Clock

START = datetime(2030, 1, 31, 23, 0, tzinfo=UTC).timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "limits.db", MIGRATIONS)) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "redis"])
def storage(request: pytest.FixtureRequest, database: Database, clock: Clock) -> Iterator[Storage]:
    if request.param == "sqlite":
        yield SqliteCounters(database, clock)
        return
    server = fakeredis.FakeServer()
    with closing(fakeredis.FakeStrictRedis(server=server).connection_pool) as pool:
        yield RedisStorage("redis://counters", connection_pool=pool, wrap_exceptions=True)


@pytest.fixture
def meter(storage: Storage, clock: Clock) -> Meter:
    return Meter(storage, clock=clock)


def test_a_rate_bounds_requests_of_one_caller(meter: Meter) -> None:
    for _ in range(3):
        meter.charge("web", CallerLimits(rate=3), 0)
    with pytest.raises(RateLimited) as caught:
        meter.charge("web", CallerLimits(rate=3), 0)
    assert 1 <= int(reply_for(caught.value).headers["Retry-After"]) <= 60
    assert caught.value.detail == {"bound": 3, "unit": "requests a minute"}
    meter.charge("app", CallerLimits(rate=3), 0)
    meter.charge("web", CallerLimits(), 0)


def test_a_rate_window_slides(database: Database, clock: Clock) -> None:
    """Half of the last minute still counts in the middle of this one."""
    storage = SqliteCounters(database, clock)
    clock.now = 60_000.0
    assert [storage.acquire_sliding_window_entry("web", 4, 60) for _ in range(5)] == [True] * 4 + [False]
    clock.now += 60
    assert not storage.acquire_sliding_window_entry("web", 4, 60)
    clock.now += 30
    assert [storage.acquire_sliding_window_entry("web", 4, 60) for _ in range(3)] == [True, True, False]
    clock.now += 120
    assert storage.get_sliding_window("web", 60)[:3] == (0, 0.0, 0)
    assert [storage.acquire_sliding_window_entry("web", 4, 60) for _ in range(5)] == [True] * 4 + [False]
    storage.clear_sliding_window("web", 60)
    assert storage.acquire_sliding_window_entry("web", 4, 60, amount=4)


def test_a_quota_bounds_characters_of_a_month(meter: Meter, clock: Clock) -> None:
    limits = CallerLimits(quota=100)
    meter.charge("web", limits, 60)
    with pytest.raises(QuotaExceeded) as caught:
        meter.charge("web", limits, 41)
    assert caught.value.detail == {"bound": 100, "used": 60, "value": 41}
    assert reply_for(caught.value).headers == {"Retry-After": "3600"}  # the month has one hour left
    meter.charge("web", limits, 40)  # what was refused was not counted
    assert (meter.used("web"), meter.used("app")) == (100, 0)
    clock.now += 3600
    meter.charge("web", limits, 100)
    assert meter.used("web") == 100


def test_december_has_an_end_too(meter: Meter, clock: Clock) -> None:
    clock.now = datetime(2030, 12, 31, 23, 59, 30, tzinfo=UTC).timestamp()
    with pytest.raises(QuotaExceeded) as caught:
        meter.charge("web", CallerLimits(quota=1), 2)
    assert reply_for(caught.value).headers == {"Retry-After": "30"}


def test_what_failed_is_given_back_in_the_month_it_was_charged(meter: Meter, clock: Clock) -> None:
    receipt = meter.charge("web", CallerLimits(quota=100), 70)
    clock.now += 7200  # the next month
    meter.charge("web", CallerLimits(quota=100), 10)
    meter.refund(receipt)
    assert meter.used("web") == 10
    clock.now -= 7200
    assert meter.used("web") == 0
    meter.refund(Receipt())
    assert meter.used("web") == 0


def test_characters_are_counted_without_a_quota(meter: Meter) -> None:
    meter.charge("web", CallerLimits(), 70)
    meter.charge("web", CallerLimits(), 0)
    assert meter.used("web") == 70


def test_threads_never_pass_more_than_the_quota(meter: Meter) -> None:
    passed: list[int] = []

    def charge(number: int) -> None:
        with suppress(QuotaExceeded):
            meter.charge("web", CallerLimits(quota=50), 7)
            passed.append(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(charge, range(40)))
    assert 1 <= len(passed) <= 7
    assert meter.used("web") == 7 * len(passed)


def test_two_servers_share_a_file(database: Database, tmp_path: Path, clock: Clock) -> None:
    with closing(Database(tmp_path / "limits.db", MIGRATIONS)) as other:
        first, second = (Meter(SqliteCounters(one, clock), clock=clock) for one in (database, other))
        first.charge("web", CallerLimits(2, 100), 60)
        second.charge("web", CallerLimits(2, 100), 20)
        assert (first.used("web"), second.used("web")) == (80, 80)
        with pytest.raises(RateLimited):
            first.charge("web", CallerLimits(2, 100), 1)


def test_counters_end_and_are_swept_out(database: Database, clock: Clock) -> None:
    storage = SqliteCounters(database, clock)
    assert storage.incr("old", 10, 5) == 5
    assert storage.get_expiry("old") == START + 10
    assert storage.incr("old", 10, 2) == 7
    clock.now += 10
    assert storage.get("old") == 0
    assert storage.incr("old", 10, 1) == 1
    clock.now += 100
    storage.incr("new", 10)
    with database.connection() as connection:
        assert [row["key"] for row in connection.execute("SELECT key FROM counters")] == ["new"]
    storage.clear("new")
    assert storage.get("new") == 0
    assert storage.check()
    assert storage.reset() == 0
    assert storage.get_expiry("new") == clock.now


def break_database(database: Database) -> None:
    with database.connection() as connection:
        connection.execute("ALTER TABLE counters RENAME TO hidden")


def mend_database(database: Database) -> None:
    with database.connection() as connection:
        connection.execute("ALTER TABLE hidden RENAME TO counters")


def test_while_the_store_is_down_open_counts_nothing_and_says_so_once(database: Database) -> None:
    pause = Clock()
    meter = Meter(SqliteCounters(database), "open", monotonic=pause)
    break_database(database)
    with capture_logs() as lines:
        for _ in range(3):
            assert meter.charge("web", CallerLimits(1, 1), 70) == Receipt()
        assert meter.used("web") == 0
        meter.refund(Receipt("any", 5))
        pause.now += 60
        assert meter.charge("web", CallerLimits(1, 1), 70) == Receipt()
        mend_database(database)
        pause.now += 60
        assert meter.charge("web", CallerLimits(1, 100), 70).characters == 70
    assert [line["event"] for line in lines] == ["limits_store_failed", "limits_store_back"]
    assert lines[0]["answers"] == "open"
    assert meter.failures == 2


def test_a_store_that_fails_slowly_is_left_alone_afterwards(database: Database) -> None:
    pause, asked = Clock(), 0

    class Slow(SqliteCounters):
        def incr(self, key: str, expiry: int, amount: int = 1) -> int:
            nonlocal asked
            asked += 1
            pause.now += 5.0
            raise StorageError("busy")

    meter = Meter(Slow(database), "open", monotonic=pause)
    with capture_logs():
        assert [meter.charge("web", CallerLimits(), 70) for _ in range(3)] == [Receipt()] * 3
    assert asked == 1


def test_while_the_store_is_down_closed_refuses(database: Database) -> None:
    meter = Meter(SqliteCounters(database), "closed")
    break_database(database)
    with capture_logs():
        for attempt in (lambda: meter.charge("web", CallerLimits(), 70), lambda: meter.used("web")):
            with pytest.raises(LimitsUnavailable) as caught:
                attempt()
            assert int(reply_for(caught.value).headers["Retry-After"]) >= 1
        meter.refund(Receipt("any", 5))


def test_a_shared_store_that_nobody_runs_is_down(free_port: int) -> None:
    meter = Meter(shared_counters(f"redis://:secret@127.0.0.1:{free_port}/0"), "open")
    with capture_logs() as lines:
        assert meter.charge("web", CallerLimits(1, 1), 5) == Receipt()
    assert lines[0]["cause"] == "ConnectionError"
    assert "secret" not in str(lines)


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that nobody listens on, since this test keeps it."""
    import socket

    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memcached://host", "'memcached' is not supported"),
        ("host:6379", "'host' is not supported"),
        ("/tmp/file", "'no scheme' is not supported"),
        ("redis://:secret@host:port", "is no URL of a store"),
        ("valkey://:secret@host", "needs the Python package 'valkey'"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_quoting_it(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        shared_counters(url)
    assert "secret" not in str(caught.value)


def test_months_are_those_of_utc(meter: Meter, clock: Clock) -> None:
    keys: list[Any] = []
    for moment in (START, START + 3599, START + 3600):
        clock.now = moment
        receipt = meter.charge("web", CallerLimits(), 1)
        keys.append(receipt.counter)
    assert keys[0] == keys[1] != keys[2]
    assert keys[0].endswith("web/2030-01")
