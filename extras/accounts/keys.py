"""The key store: who has which key, with which limits.

A key is ``tandem_ID_SECRET``: a prefix that people and secret scanners recognise, an identifier that may be shown, and
256 random bits. Only a SHA-256 of it is kept. A slow hash (argon2, bcrypt) defends passwords, which have few bits and
can be guessed; nobody guesses 256 bits, however fast the hash is, and a slow one would cost each request tens of
milliseconds and be a way to keep the server busy. The record is found by the identifier, and the hashes are compared
in constant time, also where there is no such record.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError

MIGRATIONS = (
    """
    CREATE TABLE callers (
        name TEXT PRIMARY KEY, admin INTEGER NOT NULL, rate INTEGER NOT NULL, quota INTEGER NOT NULL
    );
    CREATE TABLE keys (
        id TEXT PRIMARY KEY, caller TEXT NOT NULL REFERENCES callers (name), digest BLOB NOT NULL,
        created REAL NOT NULL, expires REAL, revoked REAL
    );
    CREATE INDEX keys_by_caller ON keys (caller);
    CREATE TABLE revision (number INTEGER NOT NULL);
    INSERT INTO revision VALUES (0);
    """,
)
RESERVED = frozenset(("admin", "anonymous"))
PREFIX = "tandem_"
_KEY = re.compile(PREFIX + r"([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NO_DIGEST = bytes(32)
_PUT_CALLER = (
    "INSERT INTO callers (name, admin, rate, quota) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "admin = excluded.admin, rate = excluded.rate, quota = excluded.quota"
)


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """What a caller may use; 0 = without bound.

    Attributes:
        rate: requests a minute.
        quota: characters a calendar month (UTC).
    """

    rate: int = 0
    quota: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown. Times are seconds since 1970."""

    id: str
    caller: str
    admin: bool
    limits: CallerLimits
    created: float
    expires: float | None
    revoked: float | None

    def state(self, now: float) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or now < self.expires else "expired"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. The secret is nowhere else, and never shown again."""

    id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The keys that were not revoked, as of one revision of the store; read without touching it."""

    revision: int
    keys: Mapping[str, tuple[Key, bytes]]

    def find(self, secret: str, now: float) -> Key | None:
        """The key, unless unknown, revoked or expired."""
        match = _KEY.fullmatch(secret)
        key, digest = self.keys.get(match[1], (None, _NO_DIGEST)) if match else (None, _NO_DIGEST)
        same = hmac.compare_digest(digest_of(secret), digest)
        return key if same and key is not None and key.state(now) == "active" else None

    def limits_of(self, caller: str) -> CallerLimits | None:
        """A caller's limits; None where the caller has no key left."""
        return next((key.limits for key, _ in self.keys.values() if key.caller == caller), None)

    @property
    def has_admin(self) -> bool:
        """Whether any key is an admin's."""
        return any(key.admin for key, _ in self.keys.values())


class KeyStore:
    """Makes, lists and revokes keys. All methods block, and all raise StorageError where the database is out."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            database: opened with ``MIGRATIONS``.
            clock: seconds since 1970.
        """
        self._database, self._clock = database, clock

    def add(self, name: str, limits: CallerLimits, *, admin: bool = False, expires: float | None = None) -> NewKey:
        """Make the key of a new caller, or of one whose keys are all revoked or expired.

        Raises:
            ConfigError: the name is malformed, reserved or taken.
        """
        if not _NAME.fullmatch(name) or name in RESERVED:
            raise ConfigError(
                f"{name[:80]!r} cannot be a key's name: up to 64 letters, digits, '.', '_' and '-' that begin with a "
                f"letter or digit, and none of {', '.join(sorted(RESERVED))}"
            )
        with self._database.connection() as connection:
            if self._active(connection, name):
                raise ConfigError(f"there is a key of {name} already; 'tandem keys rotate {name}' makes another one")
            connection.execute(_PUT_CALLER, (name, admin, limits.rate, limits.quota))
            return self._insert(connection, name, expires)

    def rotate(self, name: str, overlap: float, expires: float | None = None) -> NewKey:
        """Make a further key of a caller; those that there are end in ``overlap`` seconds, if not sooner.

        Raises:
            ConfigError: the caller has no active key.
        """
        now = self._clock()
        with self._database.connection() as connection:
            self._expect_active(connection, name)
            connection.execute(
                "UPDATE keys SET expires = min(coalesce(expires, ?1), ?1) WHERE caller = ?2 AND revoked IS NULL",
                (now + overlap, name),
            )
            return self._insert(connection, name, expires)

    def revoke(self, name: str) -> int:
        """End all keys of a caller. Returns how many there were.

        Raises:
            ConfigError: the caller has no active key.
        """
        with self._database.connection() as connection:
            self._expect_active(connection, name)
            done = connection.execute(
                "UPDATE keys SET revoked = ? WHERE caller = ? AND revoked IS NULL", (self._clock(), name)
            )
            self._count_up(connection)
            return done.rowcount

    def set_limits(self, name: str, rate: int | None, quota: int | None) -> CallerLimits:
        """Change limits; None leaves one as it is. Returns those that hold now.

        Raises:
            ConfigError: the caller has no active key.
        """
        with self._database.connection() as connection:
            self._expect_active(connection, name)
            connection.execute(
                "UPDATE callers SET rate = coalesce(?, rate), quota = coalesce(?, quota) WHERE name = ?",
                (rate, quota, name),
            )
            self._count_up(connection)
            row = connection.execute("SELECT rate, quota FROM callers WHERE name = ?", (name,)).fetchone()
            return CallerLimits(row["rate"], row["quota"])

    def take_over(self, other: Path) -> int:
        """Take over every key of another key store, a copy of its file: new ones, limits, and what has ended there.

        Keys that only this store has stay as they are. Returns how many keys the other one has.

        Raises:
            ConfigError: the other file is none of a key store.
        """
        with closing(Database(other, MIGRATIONS)) as found, found.connection(readonly=True) as source:
            callers = [tuple(row) for row in source.execute("SELECT name, admin, rate, quota FROM callers")]
            columns = "id, caller, digest, created, expires, revoked"
            keys = [tuple(row) for row in source.execute(f"SELECT {columns} FROM keys")]
        with self._database.connection() as connection:
            connection.executemany(_PUT_CALLER, callers)
            connection.executemany(
                f"INSERT INTO keys ({columns}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "expires = excluded.expires, revoked = coalesce(revoked, excluded.revoked)",
                keys,
            )
            self._count_up(connection)
        return len(keys)

    def all_keys(self) -> list[Key]:
        """All keys by caller and age, also those that ended."""
        with self._database.connection(readonly=True) as connection:
            return [key for key, _ in self._read(connection)]

    def snapshot(self, known: Snapshot | None = None) -> Snapshot:
        """What requests are checked against; the one that is known where nothing has changed since."""
        with self._database.connection(readonly=True) as connection:
            revision = int(connection.execute("SELECT number FROM revision").fetchone()[0])
            if known is not None and known.revision == revision:
                return known
            current = {key.id: (key, digest) for key, digest in self._read(connection) if key.revoked is None}
        return Snapshot(revision, current)

    def _active(self, connection: sqlite3.Connection, name: str) -> bool:
        query = "SELECT 1 FROM keys WHERE caller = ? AND revoked IS NULL AND (expires IS NULL OR expires > ?)"
        return connection.execute(query, (name, self._clock())).fetchone() is not None

    def _expect_active(self, connection: sqlite3.Connection, name: str) -> None:
        if not self._active(connection, name):
            raise ConfigError(f"there is no active key of {name[:80]!r}; 'tandem keys list' shows all")

    def _insert(self, connection: sqlite3.Connection, name: str, expires: float | None) -> NewKey:
        identifier = secrets.token_hex(4)
        secret = f"{PREFIX}{identifier}_{secrets.token_urlsafe(32)}"
        connection.execute(
            "INSERT INTO keys VALUES (?, ?, ?, ?, ?, NULL)",
            (identifier, name, digest_of(secret), self._clock(), expires),
        )
        self._count_up(connection)
        return NewKey(identifier, secret)

    @staticmethod
    def _count_up(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE revision SET number = number + 1")

    @staticmethod
    def _read(connection: sqlite3.Connection) -> list[tuple[Key, bytes]]:
        rows = connection.execute(
            "SELECT id, name, admin, rate, quota, created, expires, revoked, digest FROM keys "
            "JOIN callers ON caller = name ORDER BY name, created, id"
        )
        return [
            (Key(row[0], row[1], bool(row[2]), CallerLimits(row[3], row[4]), *row[5:8]), row["digest"]) for row in rows
        ]


def digest_of(secret: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
