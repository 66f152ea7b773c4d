"""Translation memory: sentences with the translations that callers want for them, in SQLite.

Each caller has its own, and answers come from that alone. A memory belongs to the name of a key, so that it outlives a
change of the key; callers without a key have none.
"""

from __future__ import annotations

import math
import sqlite3
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from tandem.extras.accounts.errors import MemoryEntryNotFound, MemoryLimit
from tandem.extras.accounts.settings import AccountSettings
from tandem.models.text import normalise
from tandem.service.database import Database, StorageError
from tandem.service.errors import InvalidOption
from tandem.service.settings import Settings
from tandem.service.text.languages import base_code, is_language_code
from tandem.service.text.parallel import ParallelDocument

MAX_SENTENCE = 5_000
"""Characters of a sentence, and of its translation."""
_MAX_RAW = 4 * MAX_SENTENCE  # before what is composed is; what has more is not looked at
_SCHEMA = """
CREATE TABLE entry (
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    text TEXT NOT NULL,
    translation TEXT NOT NULL,
    changed REAL NOT NULL,
    PRIMARY KEY (owner, source, target, text)
) STRICT;
"""
_UPSERT = """
    INSERT INTO entry (id, owner, source, target, text, translation, changed) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, source, target, text) DO UPDATE SET translation = excluded.translation,
    changed = excluded.changed
"""
_OF_PAIR = "owner = ? AND ? IN (source, '') AND ? IN (target, '')"
_ASKED_AT_ONCE = 500  # texts of one query: SQLite bounds its parameters
_PAUSE = 30.0  # seconds for which a database that failed is not asked again: a locked one takes five for each attempt
_log = structlog.get_logger("tandem.memory")


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence and its translation.

    Attributes:
        source, target: languages without region, as ``base_code`` has them: it holds for every variety.
        text, translation: normalised, without space around them.
    """

    source: str
    target: str
    text: str
    translation: str

    @classmethod
    def of(cls, source: str, target: str, text: str, translation: str) -> Correction:
        """Checks languages and bounds; its fields are called as ``POST /suggest`` calls them. Raises InvalidOption."""
        for name, code in (("source", source), ("target", target)):
            if not is_language_code(code) or code.lower() == "auto":
                raise InvalidOption(name, "must be a language code, such as de or pt-BR", code)
        for name, side in (("q", text), ("s", translation)):
            if len(side) > _MAX_RAW:
                raise InvalidOption(name, f"must have 1 to {MAX_SENTENCE} characters", len(side))
        made = cls(base_code(source), base_code(target), normalise(text).strip(), normalise(translation).strip())
        if made.source == made.target:
            raise InvalidOption("target", "must be another language than source", target)
        for name, side in (("q", made.text), ("s", made.translation)):
            if not 1 <= len(side) <= MAX_SENTENCE:
                raise InvalidOption(name, f"must have 1 to {MAX_SENTENCE} characters", len(side))
        return made

    def sentences(self) -> list[Correction]:
        """Its sentences, where both sides have equally many, as translations are asked for one by one; else itself.

        Raises:
            InvalidOption: one of the sides has no words.
        """
        texts, languages = (self.text, self.translation), (self.source, self.target)
        pairs = ParallelDocument.parse(texts, languages, 0, self.target).sentences
        if not pairs:
            raise InvalidOption("s", "must be words for words, but q or s has none", self.translation)
        return [Correction.of(self.source, self.target, text, translation) for text, translation in pairs]


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A stored correction; ``changed`` in seconds since 1970."""

    id: str
    source: str
    target: str
    text: str
    translation: str
    changed: float


class TranslationMemory:
    """The memories of all callers. Calls block: they belong in threads.

    Every method but ``close`` and ``recall`` raises StorageError where the database cannot be used now. Where
    ``source`` and ``target`` choose entries, an empty one stands for every language.

    Attributes:
        failures: how often ``recall`` had no answer.
    """

    def __init__(self, settings: Settings) -> None:
        """In ``memory.db`` of the data folder, or in memory where there is none. Raises ConfigError."""
        self._own = settings.part(AccountSettings)
        self._database = Database(settings.data and settings.data / "memory.db", [_SCHEMA])
        self.failures = 0
        self._out_until = -math.inf

    def close(self) -> None:
        self._database.close()

    def add(self, owner: str, corrections: Collection[Correction]) -> int:
        """Store corrections, all or none; one of a known sentence takes the former one's place.

        Returns:
            How many did so.

        Raises:
            MemoryLimit: the memory would have too many entries, or characters.
        """
        now = time.time()
        rows = [
            (str(uuid.uuid4()), owner, one.source, one.target, one.text, one.translation, now) for one in corrections
        ]
        with self._database.connection() as connection:
            before = self._size(connection, owner)[0]
            connection.executemany(_UPSERT, rows)
            after = self._size(connection, owner)
            bounds = self._own.max_memory_entries, self._own.max_memory_characters
            for name, bound, value in zip(("entries", "characters"), bounds, after, strict=True):
                if value > bound:
                    raise MemoryLimit(f"{name} in the translation memory", bound, value)
        return len(rows) - (after[0] - before)

    def find(self, owner: str, source: str, target: str, texts: Collection[str]) -> dict[str, str]:
        """Of those texts that the memory has, the translations."""
        query = "SELECT text, translation FROM entry WHERE owner = ? AND source = ? AND target = ? AND text IN ({})"
        found: dict[str, str] = {}
        with self._database.connection(readonly=True) as connection:
            asked = list(texts)
            for start in range(0, len(asked), _ASKED_AT_ONCE):
                some = asked[start : start + _ASKED_AT_ONCE]
                marks = ", ".join("?" * len(some))
                found |= connection.execute(query.format(marks), (owner, source, target, *some)).fetchall()
        return found

    def recall(self, owner: str, source: str, target: str, texts: Collection[str]) -> dict[str, str]:
        """As ``find``; none while the database cannot be used: translations go on without a memory."""
        if time.monotonic() >= self._out_until:
            try:
                return self.find(owner, source, target, texts)
            except StorageError as error:
                self._out_until = time.monotonic() + _PAUSE
                _log.error("memory_not_readable", cause=str(error), answers="without it", seconds=_PAUSE)
        self.failures += 1
        return {}

    def entries(
        self, owner: str, source: str = "", target: str = "", offset: int = 0, limit: int = -1
    ) -> list[MemoryEntry]:
        """Entries, those that were changed last first; ``limit`` below 0 = all of them."""
        columns = "id, source, target, text, translation, changed"
        query = f"SELECT {columns} FROM entry WHERE {_OF_PAIR} ORDER BY changed DESC, rowid DESC LIMIT ? OFFSET ?"
        values = (owner, source and base_code(source), target and base_code(target), limit, offset)
        with self._database.connection(readonly=True) as connection:
            return [MemoryEntry(*row) for row in connection.execute(query, values)]

    def count(self, owner: str, source: str = "", target: str = "") -> int:
        values = (owner, source and base_code(source), target and base_code(target))
        with self._database.connection(readonly=True) as connection:
            return int(connection.execute(f"SELECT count(*) FROM entry WHERE {_OF_PAIR}", values).fetchone()[0])

    def delete(self, owner: str, identifier: str) -> None:
        """Delete an entry. Raises MemoryEntryNotFound."""
        with self._database.connection() as connection:
            query = "DELETE FROM entry WHERE id = ? AND owner = ?"
            if connection.execute(query, (identifier, owner)).rowcount == 0:
                raise MemoryEntryNotFound("there is no such entry in your memory; GET /memory lists yours")

    def _size(self, connection: sqlite3.Connection, owner: str) -> tuple[int, int]:
        """A memory's entries, and their characters."""
        query = "SELECT count(*), total(length(text) + length(translation)) FROM entry WHERE owner = ?"
        entries, characters = connection.execute(query, (owner,)).fetchone()
        return entries, int(characters)
