"""Translation memory: sentences with the translations that callers want for them, in SQLite.

Each caller has its own, and answers come from that alone. A memory belongs to the name of a key, so that it outlives a
change of the key; callers without a key have none. Texts are stored and looked up as models read them (``as_read``):
no sentence is another one for a soft hyphen or a no-break space in it.
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
from tandem.extras.shared.database import Database
from tandem.models.text import as_read, normalise
from tandem.service.errors import InvalidOption, LanguageNotServed, StorageError
from tandem.service.settings import Settings
from tandem.service.text.languages import NAMES, base_code, base_language, is_language_code, match_language
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
_UNREAD = """
CREATE TABLE unread (id TEXT PRIMARY KEY) STRICT;
INSERT INTO unread SELECT id FROM entry;
"""  # entries that were stored when texts were kept as they were sent
_UPSERT = """
    INSERT INTO entry (id, owner, source, target, text, translation, changed) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, source, target, text) DO UPDATE SET translation = excluded.translation,
    changed = excluded.changed
"""
_DELETE_OLDER = """
    DELETE FROM entry WHERE id = ?2 AND EXISTS (
        SELECT 1 FROM entry AS other WHERE other.owner = entry.owner AND other.source = entry.source
        AND other.target = entry.target AND other.text = ?1 AND other.changed > entry.changed
    )
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
        matched: the text as it is stored and looked up.
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
        for name, side in (("q", made.matched), ("s", made.translation)):
            if not 1 <= len(side) <= MAX_SENTENCE:
                raise InvalidOption(name, f"must have 1 to {MAX_SENTENCE} characters", len(side))
        return made

    @property
    def matched(self) -> str:
        return as_matched(self.text)

    def check_languages(self, served: Collection[str]) -> None:
        """Raises LanguageNotServed for a language that has no name here and that no model reads or writes.

        Others may be without a model now: one may be loaded later.
        """
        for code in (self.source, self.target):
            if base_language(code) not in NAMES and match_language(code, served) is None:
                message = f"this server does not know the language {code!r}; served: {', '.join(served) or 'none'}"
                raise LanguageNotServed(message, {"served": list(served)})

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


def as_matched(text: str) -> str:
    """A text as it is stored and looked up."""
    return as_read(normalise(text))


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A stored correction; its text as models read it, ``changed`` in seconds since 1970."""

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
        """In ``memory.db`` of the data folder, or in memory where there is none. Raises ConfigError, StorageError."""
        self._own = settings.part(AccountSettings)
        self._database = Database(settings.data and settings.data / "memory.db", [_SCHEMA, _UNREAD])
        self._read_anew()
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
            (str(uuid.uuid4()), owner, one.source, one.target, one.matched, one.translation, now) for one in corrections
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
        matched = {text: as_matched(text) for text in texts}
        found: dict[str, str] = {}
        with self._database.connection(readonly=True) as connection:
            asked = list(dict.fromkeys(matched.values()))
            for start in range(0, len(asked), _ASKED_AT_ONCE):
                some = asked[start : start + _ASKED_AT_ONCE]
                marks = ", ".join("?" * len(some))
                found |= connection.execute(query.format(marks), (owner, source, target, *some)).fetchall()
        return {text: found[one] for text, one in matched.items() if one in found}

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

    def _read_anew(self) -> None:
        """Bring entries of before to the form that is looked up; of those that become alike the newest stays.

        They are read first, so that other processes that open the database meanwhile wait for the changes alone.
        """
        query = "SELECT id, text FROM entry JOIN unread USING (id) ORDER BY changed"
        with self._database.connection(readonly=True) as connection:
            if connection.execute("SELECT 1 FROM unread LIMIT 1").fetchone() is None:
                return
            rows = ((as_matched(text), text, id) for id, text in connection.execute(query))
            changed = [(matched, id) for matched, text, id in rows if matched != text]
        with self._database.connection() as connection:
            connection.executemany(_DELETE_OLDER, changed)
            connection.executemany("UPDATE OR REPLACE entry SET text = ? WHERE id = ?", changed)
            connection.execute("DELETE FROM unread")

    def _size(self, connection: sqlite3.Connection, owner: str) -> tuple[int, int]:
        """A memory's entries, and their characters."""
        query = "SELECT count(*), total(length(text) + length(translation)) FROM entry WHERE owner = ?"
        entries, characters = connection.execute(query, (owner,)).fetchone()
        return entries, int(characters)
