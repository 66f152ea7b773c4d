"""Jobs in SQLite and their files on disk, so that the end of the process at any moment loses nothing.

    files/lock                      held by the one process that works on the jobs
    files/<id>/source               the upload, on disk before its job is accepted
    files/<id>/result               the finished file, complete before its job counts as done

A slice's translation is a row: once it is written, it is never translated again. A folder without a job is what an
upload or a deletion that was cut short left behind.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tandem.extras.files.disk import remove, whole
from tandem.extras.files.records import OPEN, FileJob, Holdings
from tandem.extras.files.slices import Slice, joined
from tandem.extras.shared.database import Database
from tandem.models.folders import sync_folder
from tandem.service.errors import StorageError

_COLUMNS = tuple(column.name for column in fields(FileJob))


class JobStore:
    """Every method blocks, and may be called from several threads."""

    def __init__(self, database: Database, folder: Path) -> None:
        """
        Args:
            database: with ``records.MIGRATIONS``.
            folder: of the files; exists.
        """
        self._database, self._folder = database, folder

    def folder_of(self, job: str) -> Path:
        """Where a job's files are."""
        return self._folder / job

    def file(self, job: FileJob, name: str, what: str) -> tuple[Path, os.stat_result | None]:
        """Where a job's file lies, and what the system says of it; None where it is missing or damaged.

        Args:
            job: its ``bytes`` are the file's.
            name: in the job's folder.
            what: it is, for a message.

        Raises:
            StorageError: it cannot be read now.
        """
        path = self.folder_of(job.id) / name
        try:
            return path, whole(path, job.bytes)
        except OSError as error:
            raise StorageError.of(f"the {what} of the file {job.id} cannot be read", error) from error

    def new_folder(self) -> str:
        """The id of a job to come; its folder is made."""
        job = secrets.token_hex(16).upper()
        self.folder_of(job).mkdir(mode=0o700)
        return job

    def add(self, job: FileJob, slices: Iterable[Slice]) -> None:
        """Write a new job with its slices, so that not even a power cut loses it."""
        with self._database.connection() as connection:
            marks = ", ".join("?" * len(_COLUMNS))
            values = [getattr(job, column) for column in _COLUMNS]
            connection.execute(f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({marks})", values)
            connection.executemany(
                "INSERT INTO slices (job, number, markup, segments, texts, characters) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (job.id, number, one.markup, json.dumps(one.segments), json.dumps(one.texts), one.characters)
                    for number, one in enumerate(slices)
                ),
            )
        sync_folder(self._folder)
        self._sync_log()

    def get(self, job: str) -> FileJob | None:
        """The job of that id."""
        return self._one("id = ?", job)

    def of_download(self, name: str) -> FileJob | None:
        """The job whose result has that unguessable name."""
        return self._one("download = ?", name)

    def of_owner(self, owner: str, limit: int) -> list[FileJob]:
        """A caller's newest jobs, the newest first."""
        return self._several("owner = ? ORDER BY created DESC, id LIMIT ?", owner, limit)

    def unfinished(self) -> list[FileJob]:
        """Jobs to work on, the oldest first."""
        return self._several("status IN ('queued', 'running') ORDER BY created, id")

    def next_slice(self, job: str) -> tuple[int, Slice] | None:
        """The first slice that is not translated, with its number; None where all are."""
        with self._database.connection(readonly=True) as connection:
            row = connection.execute(
                "SELECT number, markup, segments, texts FROM slices WHERE job = ? AND translations IS NULL"
                " ORDER BY number LIMIT 1",
                (job,),
            ).fetchone()
        if row is None:
            return None
        return row["number"], Slice(
            tuple(json.loads(row["segments"])), tuple(json.loads(row["texts"])), bool(row["markup"])
        )

    def keep_slice(self, job: str, number: int, translations: Sequence[str]) -> None:
        """Write what a slice became. A job that was deleted meanwhile is left alone."""
        with self._database.connection() as connection:
            changed = connection.execute(
                "UPDATE slices SET translations = ? WHERE job = ? AND number = ? AND translations IS NULL",
                (json.dumps(list(translations)), job, number),
            ).rowcount
            if changed:
                connection.execute(
                    "UPDATE jobs SET done = done + (SELECT characters FROM slices WHERE job = ? AND number = ?)"
                    " WHERE id = ?",
                    (job, number, job),
                )

    def translations(self, job: str) -> list[str]:
        """The translation of each segment of the file."""
        with self._database.connection(readonly=True) as connection:
            rows = connection.execute(
                "SELECT segments, translations FROM slices WHERE job = ? ORDER BY number", (job,)
            ).fetchall()
        segments = [number for row in rows for number in json.loads(row["segments"])]
        return joined(segments, [text for row in rows for text in json.loads(row["translations"])])

    def begin(self, job: str) -> FileJob | None:
        """Mark a job as running; None where it is not to be worked on any more."""
        return self.get(job) if self._change(job, "status = 'running'") else None

    def requeue(self) -> None:
        """Mark the jobs that were running when the process ended as waiting."""
        with self._database.connection() as connection:
            connection.execute("UPDATE jobs SET status = 'queued' WHERE status = 'running'")

    def finish(self, job: str, status: str, now: float, expires: float, fault: tuple[str, str] | None = None) -> bool:
        """Mark an unfinished job as done, failed or cancelled; ``fault``: sentence and code.

        Returns:
            Whether it was unfinished.
        """
        result = self.folder_of(job) / "result"
        size = result.stat().st_size if status == "done" else 0
        return self._change(
            job,
            "status = ?, finished = ?, expires = ?, error = ?, code = ?, bytes = ?",
            status, now, expires, *(fault or (None, None)), size,
        )  # fmt: skip

    def shed(self, job: str) -> None:
        """Delete the files of a finished job but the result, and its texts."""
        found = self.get(job)
        for path in self._spare(job, found.status if found else None):
            remove(path)
        with self._database.connection() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM slices WHERE job = ?", (job,))

    def delete(self, job: str) -> None:
        """Delete a job with everything that belongs to it: first the files, for which no full disk is in the way."""
        remove(self.folder_of(job))
        with self._database.connection() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM jobs WHERE id = ?", (job,))

    def expire(self, now: float, forget: float) -> int:
        """Delete the files of jobs whose time is over, and jobs that expired ``forget`` seconds ago altogether.

        Returns:
            How many expired.
        """
        with self._database.connection(readonly=True) as connection:
            over = "SELECT id FROM jobs WHERE status NOT IN ('queued', 'running', 'expired') AND expires <= ?"
            expired = [row["id"] for row in connection.execute(over, (now,))]
        for job in expired:
            remove(self.folder_of(job))
        with self._database.connection() as connection:
            change = "UPDATE jobs SET status = 'expired', bytes = 0, download = NULL WHERE id = ?"
            connection.executemany(change, [(job,) for job in expired])
            connection.execute("DELETE FROM jobs WHERE status = 'expired' AND expires <= ?", (now - forget,))
        return len(expired)

    def holdings(self, owner: str | None = None) -> Holdings:
        """What a caller has here; None = all of them."""
        which, values = ("owner = ?", (owner,)) if owner is not None else ("1", ())
        with self._database.connection(readonly=True) as connection:
            row = connection.execute(
                "SELECT COALESCE(SUM(status IN ('queued', 'running')), 0) AS waiting, COALESCE(SUM(bytes), 0) AS bytes,"
                " COALESCE(SUM(CASE WHEN status IN ('queued', 'running') THEN characters END), 0) AS characters,"
                " MIN(CASE WHEN status IN ('queued', 'running') THEN created END) AS oldest"
                f" FROM jobs WHERE {which}",
                values,
            ).fetchone()
        return Holdings(row["waiting"], row["characters"], row["bytes"], row["oldest"])

    def counts(self) -> dict[str, int]:
        """Number of jobs by status."""
        with self._database.connection(readonly=True) as connection:
            rows = connection.execute("SELECT status, COUNT(*) AS number FROM jobs GROUP BY status").fetchall()
        return {row["status"]: row["number"] for row in rows}

    def tidy(self) -> None:
        """Delete what the end of an earlier process left behind: folders without a job, and what finished jobs shed.

        Call before jobs are accepted.
        """
        with self._database.connection(readonly=True) as connection:
            statuses = {row["id"]: row["status"] for row in connection.execute("SELECT id, status FROM jobs")}
            left = {row["job"] for row in connection.execute("SELECT DISTINCT job FROM slices")}
        for folder in self._folder.iterdir():
            if folder.is_dir() and statuses.get(folder.name, "expired") == "expired":
                remove(folder)
        for job, status in statuses.items():
            if status not in OPEN and (job in left or self._spare(job, status)):
                self.shed(job)

    def _spare(self, job: str, status: str | None) -> list[Path]:
        """What is in a finished job's folder besides the result of one that is done."""
        return [path for path in self.folder_of(job).glob("*") if status != "done" or path.name != "result"]

    def _sync_log(self) -> None:
        """A commit survives the end of the process; with its log on disk it survives a power cut too."""
        with self._database.connection(readonly=True) as connection:
            path = next(iter(connection.execute("PRAGMA database_list")))["file"]
        if path:
            for name in (f"{path}-wal", path):
                with open(name, "rb") as file:
                    os.fsync(file.fileno())

    def _change(self, job: str, assignments: str, *values: Any) -> bool:
        with self._database.connection() as connection:
            statement = f"UPDATE jobs SET {assignments} WHERE id = ? AND status IN ('queued', 'running')"
            return connection.execute(statement, (*values, job)).rowcount > 0

    def _one(self, condition: str, *values: Any) -> FileJob | None:
        found = self._several(condition, *values)
        return found[0] if found else None

    def _several(self, condition: str, *values: Any) -> list[FileJob]:
        with self._database.connection(readonly=True) as connection:
            rows = connection.execute(f"SELECT * FROM jobs WHERE {condition}", values).fetchall()
        return [_job(row) for row in rows]


def _job(row: sqlite3.Row) -> FileJob:
    return FileJob(**{column: row[column] for column in _COLUMNS})
