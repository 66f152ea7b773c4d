"""What is written down about file jobs, the tables that hold it, and how much of it may be here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from tandem.extras.files.formats import FORMATS
from tandem.extras.files.settings import FileSettings
from tandem.service.errors import ServiceError

MIGRATIONS = (
    """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, format TEXT NOT NULL, source TEXT NOT NULL,
        target TEXT NOT NULL, model TEXT, status TEXT NOT NULL, created REAL NOT NULL, finished REAL, expires REAL,
        characters INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL, error TEXT, code TEXT,
        download TEXT UNIQUE, confidence REAL
    );
    CREATE INDEX jobs_by_owner ON jobs (owner, created);
    CREATE INDEX jobs_by_status ON jobs (status, created);
    CREATE TABLE slices (
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, number INTEGER NOT NULL, markup INTEGER NOT NULL,
        segments TEXT NOT NULL, texts TEXT NOT NULL, characters INTEGER NOT NULL, translations TEXT,
        PRIMARY KEY (job, number)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE jobs ADD COLUMN glossaries TEXT NOT NULL DEFAULT ''",
)
OPEN = ("queued", "running")
"""Statuses of jobs that are not finished."""


@dataclass(frozen=True, slots=True)
class FileJob:
    """A file that is being translated, or was.

    Attributes:
        id: unguessable.
        owner: name of the caller who sent it.
        name: of the file, as it was sent, without folders.
        format: see ``FORMATS``.
        source, target: language codes; ``source`` is ``auto`` only where there is nothing to translate.
        model: the bundle that was asked for; None = any.
        status: queued, running, done, failed, cancelled or expired.
        created, finished, expires: seconds since 1970; the last two once it is finished.
        characters: to translate.
        done: those of finished slices.
        bytes: on disk.
        error, code: of a job that failed: a sentence for people, and for machines.
        download: unguessable name of the result, where anybody who knows it may have it.
        confidence: per cent, where ``source`` was detected.
        glossaries: ids of those to use, with commas between them.
    """

    id: str
    owner: str
    name: str
    format: str
    source: str
    target: str
    model: str | None
    status: str
    created: float
    characters: int
    bytes: int
    finished: float | None = None
    expires: float | None = None
    done: int = 0
    error: str | None = None
    code: str | None = None
    download: str | None = None
    confidence: float | None = None
    glossaries: str = ""

    @property
    def progress(self) -> float:
        """Share of the characters that are translated, 0..1."""
        return 1.0 if self.status == "done" else self.done / self.characters if self.characters else 0.0

    @property
    def result_name(self) -> str:
        """The name of its result: ``letter.docx`` becomes ``letter.en.docx``."""
        path = PurePath(self.name)
        return f"{path.stem}.{self.target.lower()}.{FORMATS[self.format].result or path.suffix[1:]}"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a caller, or all callers, have here.

    Attributes:
        waiting, characters: unfinished jobs, and their characters.
        bytes: on disk, results included.
        oldest: when the first of the unfinished jobs was accepted, in seconds since 1970; None where there is none.
    """

    waiting: int
    characters: int
    bytes: int
    oldest: float | None = None


class TooManyFiles(ServiceError):
    """The caller has as much here as it may have; names the bound and the value."""

    retry_after = 30.0  # seconds: a file takes about that long

    def __init__(self, what: str, bound: int, value: int, remedy: str, whose: str = "of yours") -> None:
        message = f"at most {bound} {what} {whose} may be here at a time, and this file would make {value}; {remedy}"
        super().__init__(message, {"bound": bound, "value": value})


class FilesFull(TooManyFiles):
    """The server stores as much as it may, of all callers."""


def check_room(settings: FileSettings, own: Holdings, everybody: Holdings, size: int, characters: int) -> None:
    """Raises TooManyFiles or FilesFull where a file of that size is too much for its caller or for the server."""
    waiting, busy = own.waiting + 1, "wait until one is finished, or cancel one"
    if waiting > settings.files_per_caller:
        raise TooManyFiles("unfinished files", settings.files_per_caller, waiting, busy)
    if own.characters + characters > settings.file_characters_per_caller:
        value = own.characters + characters
        raise TooManyFiles("characters of unfinished files", settings.file_characters_per_caller, value, busy)
    if own.bytes + size > settings.file_bytes_per_caller:
        remedy = "delete files that you have fetched"
        raise TooManyFiles("bytes of files", settings.file_bytes_per_caller, own.bytes + size, remedy)
    if everybody.bytes + size > settings.file_bytes_of_all:
        remedy = "try again later"
        raise FilesFull("bytes of files", settings.file_bytes_of_all, everybody.bytes + size, remedy, "of all callers")
