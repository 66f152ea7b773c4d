"""SQLite databases of the service: opened, migrated, shared by threads and processes, backed up while in use.

The standard library's ``sqlite3`` and not SQLAlchemy, peewee or aiosqlite: the service has a few tables and plain SQL,
and what matters here (write-ahead log, ``BEGIN IMMEDIATE``, ``user_version``, online backup) is SQLite's own, which a
mapper would only hide. Calls block, so they belong in threads.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tandem.models.errors import ConfigError
from tandem.service.errors import StorageError, StorageFull

_BUSY_SECONDS = 5.0  # how long a transaction waits for another process or thread


class Database:
    """One SQLite file, or one in memory.

    Every transaction has a connection of its own while it lasts, so threads may share this object, and processes the
    file (which must lie on a local disk: the write-ahead log needs shared memory). A commit survives the end of the
    process at any moment; a power cut can take back the last ones, but leaves the file whole.
    """

    def __init__(self, path: Path | None, migrations: Sequence[str]) -> None:
        """Open or make the database and bring it up to date.

        Args:
            path: of the file, made with its folder where missing, for the owner only; None = in memory.
            migrations: SQL scripts; the n-th takes a database of version n (``PRAGMA user_version``) to n + 1. Those
                that are missing are applied in order, all in one transaction.

        Raises:
            ConfigError: no database, damaged, not accessible, or made by a newer version of the service.
            StorageFull: there is no room for the files that SQLite makes beside it.
        """
        self._path = path
        self._name = "the database in memory" if path is None else path.name
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._prepare_file()
            self._idle.put(self._connect())
            self._migrate(migrations)
        except (sqlite3.Error, StorageError, OSError) as error:
            self.close()
            refused = error if isinstance(error, StorageError) else StorageError.of(f"{path} cannot be opened", error)
            if isinstance(refused, StorageFull):
                raise refused from error
            raise ConfigError(f"{path or self._name}: {_why_unusable(error)}") from error
        except ConfigError:
            self.close()
            raise

    @contextmanager
    def connection(self, *, readonly: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction: committed at the end, rolled back where an exception leaves the block.

        Rows are ``sqlite3.Row``. Transactions do not nest. A transaction takes the write lock at its start, so that it
        never fails halfway because another one wrote; ``readonly=True`` waits for no writer and sees one state.

        Raises:
            StorageError: the database cannot be used now.
            sqlite3.IntegrityError: a constraint of a table is broken.
        """
        connection = self._take()
        try:
            connection.execute("BEGIN" if readonly else "BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
                raise StorageError.of(f"{self._name} cannot be used now", error) from error
            raise
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the connections; a transaction that is still running ends first, and further ones are refused."""
        with self._lock:
            self._closed = True
            with suppress(queue.Empty):
                while True:
                    self._idle.get_nowait().close()

    def _prepare_file(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make_private(self._path)

    def _connect(self) -> sqlite3.Connection:
        # Taken by one thread at a time, which need not be the one that opened it.
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            if self._path is not None:
                _use_log(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _migrate(self, migrations: Sequence[str]) -> None:
        with self.connection() as connection:
            _check(connection)
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version > len(migrations):
                raise ConfigError(
                    f"{self._path}: was written by a newer version of this service (its schema is {version}, the "
                    f"newest known here {len(migrations)}); install that version, or restore an older backup"
                )
            for script in migrations[version:]:
                for statement in _statements(script):
                    connection.execute(statement)
            if version < len(migrations):
                connection.execute(f"PRAGMA user_version = {len(migrations)}")

    def _take(self) -> sqlite3.Connection:
        try:
            with self._lock:
                if self._closed:
                    raise StorageError(f"{self._name} is closed")
                with suppress(queue.Empty):
                    return self._idle.get_nowait()
                if self._path is not None:
                    return self._connect()
            return self._idle.get(timeout=_BUSY_SECONDS)  # what is in memory belongs to its only connection
        except queue.Empty as error:
            raise StorageError(f"{self._name} cannot be used now (busy)") from error
        except sqlite3.Error as error:
            raise StorageError.of(f"{self._name} cannot be used now", error) from error

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        with self._lock:
            if self._closed:
                connection.close()
            else:
                self._idle.put(connection)


def copy_database(source: Path, target: Path) -> None:
    """Write a copy of a database's state of this moment to one file, while it is in use, whatever its schema.

    The copy is checked and takes the place of an earlier file at ``target`` only once it is whole.

    Raises:
        StorageError: it is no database, or cannot be read, or its copy cannot be written.
    """
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_private(unfinished)
        # Not read-only: a reader of the write-ahead log takes part in its locking.
        url = f"{source.resolve().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(url, uri=True, timeout=_BUSY_SECONDS)) as original,
            closing(sqlite3.connect(unfinished, isolation_level=None)) as copy,
        ):
            original.backup(copy)
            _check(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, no log beside it
        os.replace(unfinished, target)
    except (sqlite3.Error, OSError) as error:
        raise StorageError.of(f"{source.name} cannot be backed up", error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def _why_unusable(error: Exception) -> str:
    if sqlite3.DatabaseError in (type(error), type(error.__cause__)):  # while it is opened, or checked
        return f"is no database, or damaged ({error}); restore it from a backup, or move it away to start with none"
    return f"cannot be opened ({error}); check that file and folder can be written, and that no process locks it"


def _make_private(path: Path) -> None:
    """An empty file for the owner only, where there is none; SQLite gives the log beside it the same permissions."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite does not wait by itself where two processes do so at once."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def _check(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(f"it is damaged: {' '.join(found.split())}")


def _statements(script: str) -> Iterator[str]:
    """A script's statements; ``executescript`` would commit the transaction that it runs in."""
    pending = ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            if pending.strip("; \t\r\n"):
                yield pending
            pending = ""
    if pending.strip("; \t\r\n"):
        yield pending
