"""The SQLite files: migrated, shared by threads and processes, backed up while in use, clear about damage."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tandem.extras.shared.database import Database, copy_database
from tandem.models.errors import ConfigError
from tandem.service.errors import StorageError, StorageFull

FIRST = "CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL); INSERT INTO counts VALUES ('a', 0);"
SECOND = """
ALTER TABLE counts ADD COLUMN note TEXT NOT NULL DEFAULT 'none; yet';
CREATE TRIGGER keep BEFORE DELETE ON counts BEGIN SELECT RAISE(ABORT, 'kept'); END;
-- the end
"""


def add_one(database: Database) -> None:
    with database.connection() as connection:
        (value,) = connection.execute("SELECT value FROM counts WHERE name = 'a'").fetchone()
        connection.execute("UPDATE counts SET value = ? WHERE name = 'a'", (value + 1,))


def set_seven_and_run(database: Database, statement: str) -> None:
    with database.connection() as connection:
        connection.execute("UPDATE counts SET value = 7 WHERE name = 'a'")
        connection.execute(statement)


def value_of(database: Database) -> int:
    with database.connection(readonly=True) as connection:
        return int(connection.execute("SELECT value FROM counts WHERE name = 'a'").fetchone()["value"])


@pytest.fixture(params=["file", "memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "data" / "counts.db" if request.param == "file" else None


def test_migrations_are_applied_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "counts.db"
    with closing(Database(path, [FIRST])) as database:
        add_one(database)
    for _ in range(2):
        with closing(Database(path, [FIRST, SECOND])) as database, database.connection() as connection:
            row = connection.execute("SELECT * FROM counts").fetchone()
            assert dict(row) == {"name": "a", "value": 1, "note": "none; yet"}
            with pytest.raises(sqlite3.IntegrityError, match="kept"):
                connection.execute("DELETE FROM counts")


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "counts.db"
    Database(path, [FIRST]).close()
    with pytest.raises(ConfigError, match=r"counts\.db"):
        Database(path, [FIRST, SECOND, "CREATE TABLE counts (again TEXT);"])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert [row[1] for row in connection.execute("PRAGMA table_info(counts)")] == ["name", "value"]


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.db"
    Database(path, [FIRST, SECOND]).close()
    with pytest.raises(ConfigError, match="newer version") as caught:
        Database(path, [FIRST])
    assert "its schema is 2" in str(caught.value)
    assert "known here 1" in str(caught.value)


def test_threads_write_together_and_lose_nothing(path: Path | None) -> None:
    with closing(Database(path, [FIRST])) as database, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: add_one(database), range(200)))
        assert value_of(database) == 200


def test_processes_write_together_and_lose_nothing(tmp_path: Path) -> None:
    """Two further processes, which also open and migrate the file at the same time."""
    path = tmp_path / "counts.db"
    program = (
        "import sys; from pathlib import Path; from tandem.extras.shared.tests.test_database import *\n"
        "database = Database(Path(sys.argv[1]), [FIRST, SECOND])\n"
        "for _ in range(100): add_one(database)\n"
    )
    others = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(2)]
    with closing(Database(path, [FIRST, SECOND])) as database:
        for _ in range(100):
            add_one(database)
        assert [other.wait(60) for other in others] == [0, 0]
        assert value_of(database) == 300


def test_a_transaction_ends_whole_or_not_at_all(path: Path | None) -> None:
    with closing(Database(path, [FIRST])) as database:
        with pytest.raises(sqlite3.IntegrityError):
            set_seven_and_run(database, "INSERT INTO counts (name, value) VALUES ('a', 1)")
        assert value_of(database) == 0
        with pytest.raises(StorageError):
            set_seven_and_run(database, "INSERT INTO nothing VALUES (1)")
        assert value_of(database) == 0
        set_seven_and_run(database, "INSERT INTO counts (name, value) VALUES ('b', 1)")
        assert value_of(database) == 7


def test_a_reader_waits_for_no_writer_and_sees_one_state(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "counts.db", [FIRST])) as database:
        with database.connection() as connection:
            connection.execute("UPDATE counts SET value = 7")
            assert value_of(database) == 0
        assert value_of(database) == 7


def test_a_backup_while_threads_write_is_a_whole_database(tmp_path: Path) -> None:
    copy = tmp_path / "backups" / "counts.db"
    source = tmp_path / "counts.db"
    with closing(Database(source, [FIRST])) as database:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                add_one(database)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                before = value_of(database)
                copy_database(source, copy)
                with closing(Database(tmp_path / "restored.db", [FIRST])):
                    pass
                with closing(Database(copy, [FIRST])) as restored:
                    assert before <= value_of(restored)
        finally:
            stop.set()
            writer.join()
        assert value_of(database) >= before
    assert [one.name for one in copy.parent.iterdir()] == ["counts.db"]


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "data" / "counts.db", [FIRST])) as database:
        add_one(database)
        copy_database(tmp_path / "data" / "counts.db", tmp_path / "copy.db")
        files = [*(tmp_path / "data").iterdir(), tmp_path / "copy.db"]
        assert len(files) >= 2
        assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}


def test_what_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "counts.db"
    path.write_text("not a database, although long enough for a header of one hundred bytes. " * 4)
    with pytest.raises(ConfigError, match="restore it from a backup"):
        Database(path, [FIRST])


def test_a_damaged_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "counts.db"
    with closing(Database(path, [FIRST])) as database, database.connection() as connection:
        rows = ((f"name {number}", number) for number in range(2000))
        connection.executemany("INSERT INTO counts VALUES (?, ?)", rows)
    content = bytearray(path.read_bytes())
    content[5000:20000] = b"\xff" * 15000
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"counts\.db: is no database, or damaged .*; restore it from a backup"):
        Database(path, [FIRST])


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="check that file and folder can be written"):
        Database(tmp_path / "file" / "counts.db", [FIRST])


def test_a_full_disk_is_named_and_what_is_kept_can_be_read(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "counts.db", [FIRST])) as database:
        add_one(database)
        with database.connection() as connection:
            connection.execute("PRAGMA max_page_count = 4")  # SQLite fails as on a disk without room for a fifth
        with (
            pytest.raises(StorageFull, match=r"counts.db cannot be used now .*full.*make room"),
            database.connection() as connection,
        ):
            connection.execute("INSERT INTO counts VALUES (?, 1)", ("n" * 50_000,))
        add_one(database)


def test_a_closed_database_refuses_and_a_missing_table_says_no_path(path: Path | None) -> None:
    database = Database(path, [FIRST])
    with pytest.raises(StorageError) as caught, database.connection() as connection:
        connection.execute("SELECT * FROM nothing")
    assert "/" not in str(caught.value)
    database.close()
    with pytest.raises(StorageError, match="closed"):
        add_one(database)
