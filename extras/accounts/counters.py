"""Counters of requests and characters: in SQLite, or in a store that several replicas share.

With the library ``limits``: its strategies take any storage that implements its interface, so SQLite (below) and
Redis or Valkey (its own, by URL) count alike; hits have a cost, and a window needs two numbers per caller.
``pyrate-limiter`` has a SQLite bucket, but that keeps a row for each unit consumed, a million for a quota of a
million characters, its constant-size algorithms have no SQLite store, and nothing can be given back.
``throttled-py`` and ``slowapi`` know no SQLite.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from limits.errors import ConfigurationError
from limits.storage import SlidingWindowCounterSupport, Storage, storage_from_string

from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError
from tandem.service.errors import StorageError

MIGRATIONS = (
    "CREATE TABLE counters (key TEXT PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX counters_by_expiry ON counters (expires);",
)
SHARED = ("redis", "rediss", "valkey", "valkeys")
_PATIENCE = 1.0  # seconds for a shared store to answer; requests wait for it
_SWEEP_SECONDS = 60.0


class SqliteCounters(Storage, SlidingWindowCounterSupport):
    """Counters in a database of ours. Safe to use from several threads and processes."""

    STORAGE_SCHEME = None  # made from an open database, not from a URL

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            database: opened with ``MIGRATIONS``.
            clock: seconds since 1970.
        """
        super().__init__(wrap_exceptions=True)
        self._database, self._clock = database, clock
        self._swept = 0.0

    @property
    def base_exceptions(self) -> type[Exception]:
        """What means that the store is out."""
        return StorageError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter, which a first addition makes for ``expiry`` seconds. Returns what it is then."""
        now = self._clock()
        with self._database.connection() as connection:
            self._sweep(connection, now)
            return self._add(connection, key, amount, now, now + expiry)

    def get(self, key: str) -> int:
        """A counter; 0 where there is none."""
        with self._database.connection(readonly=True) as connection:
            return self._value(connection, key, self._clock())

    def get_expiry(self, key: str) -> float:
        """When a counter ends, in seconds since 1970; now, where there is none."""
        with self._database.connection(readonly=True) as connection:
            row = connection.execute("SELECT expires FROM counters WHERE key = ?", (key,)).fetchone()
        return self._clock() if row is None else float(row[0])

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add to this window's counter, unless its sum with the share of the last one would exceed the limit."""
        now = self._clock()
        with self._database.connection() as connection:
            self._sweep(connection, now)
            before, left, current, _ = self._windows(connection, key, expiry, now)
            if math.floor(before * left / expiry + current) + amount > limit:
                return False
            self._add(connection, _window(key, now, expiry), amount, now, now + 2 * expiry)
            return True

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The last window's counter and for how long a share of it counts, and the same of this one."""
        with self._database.connection(readonly=True) as connection:
            return self._windows(connection, key, expiry, self._clock())

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        now = self._clock()
        self.clear(_window(key, now, expiry))
        self.clear(_window(key, now - expiry, expiry))

    def check(self) -> bool:
        """Whether the store answers."""
        self.get("")
        return True

    def reset(self) -> int:
        with self._database.connection() as connection:
            return connection.execute("DELETE FROM counters").rowcount

    def clear(self, key: str) -> None:
        with self._database.connection() as connection:
            connection.execute("DELETE FROM counters WHERE key = ?", (key,))

    def _windows(
        self, connection: sqlite3.Connection, key: str, expiry: int, now: float
    ) -> tuple[int, float, int, float]:
        before = self._value(connection, _window(key, now - expiry, expiry), now)
        current = self._value(connection, _window(key, now, expiry), now)
        left = expiry - now % expiry
        return before, left if before else 0.0, current, left + expiry

    @staticmethod
    def _value(connection: sqlite3.Connection, key: str, now: float) -> int:
        query = "SELECT value FROM counters WHERE key = ? AND expires > ?"
        row = connection.execute(query, (key, now)).fetchone()
        return 0 if row is None else int(row[0])

    def _add(self, connection: sqlite3.Connection, key: str, amount: int, now: float, expires: float) -> int:
        value = self._value(connection, key, now) + amount
        connection.execute(
            "INSERT INTO counters VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET value = ?2, "
            "expires = CASE WHEN expires > ?4 THEN expires ELSE ?3 END",
            (key, value, expires, now),
        )
        return value

    def _sweep(self, connection: sqlite3.Connection, now: float) -> None:
        if now - self._swept > _SWEEP_SECONDS:
            connection.execute("DELETE FROM counters WHERE expires <= ?", (now,))
            self._swept = now


def shared_counters(url: str) -> Storage:
    """The store at a URL. It is not asked yet, so it may come up later than the service.

    Raises:
        ConfigError: a scheme that is not supported, or one whose client library is not installed.
    """
    scheme = urlsplit(url).scheme
    family = scheme.split("+")[0]
    if family not in SHARED:
        raise ConfigError(
            f"limits_url: {scheme[:40] or 'no scheme'!r} is not supported; use one of {', '.join(SHARED)}"
        )
    patience = {"socket_timeout": _PATIENCE, "socket_connect_timeout": _PATIENCE}
    try:
        storage = storage_from_string(url, wrap_exceptions=True, **patience)
    except ConfigurationError as error:  # its message may quote the URL, which may hold a password
        package = family.removesuffix("s") if family != "redis" else family
        raise ConfigError(f"limits_url: {family} needs the Python package {package!r}; install it") from error
    except ValueError as error:
        raise ConfigError("limits_url: is no URL of a store, such as redis://host:6379/0") from error
    assert isinstance(storage, Storage)
    return storage


def _window(key: str, moment: float, expiry: int) -> str:
    return f"{key}/{int(moment // expiry)}"
