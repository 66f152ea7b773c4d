"""Glossaries that callers store and name in later requests, in SQLite.

A glossary holds one dictionary per language pair, as DeepL's does. Each caller sees only its own; where keys are off,
all callers are one and the same.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from tandem.extras.accounts.errors import GlossaryLimit
from tandem.extras.accounts.settings import AccountSettings
from tandem.extras.shared.database import Database
from tandem.service.errors import GlossaryNotFound, InvalidOption
from tandem.service.settings import Settings
from tandem.service.text.glossary import MAX_STORED_GLOSSARY, MAX_TERM, Glossary
from tandem.service.text.languages import base_language

MAX_NAME = 200
MAX_DICTIONARIES = 50
_BREAKS_LINES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SCHEMA = """
CREATE TABLE glossary (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created REAL NOT NULL
) STRICT;
CREATE INDEX glossary_of_owner ON glossary (owner, created);
CREATE TABLE dictionary (
    glossary TEXT NOT NULL REFERENCES glossary (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    entries TEXT NOT NULL,
    count INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    PRIMARY KEY (glossary, source, target)
) STRICT;
"""
_VERSIONS = "ALTER TABLE dictionary ADD COLUMN version TEXT NOT NULL DEFAULT ''"  # another one with every change
_READY = 4  # that were asked for last: one of 100,000 terms takes some 50 MB
_SIZES = "SELECT source, target, count FROM dictionary WHERE glossary = ? ORDER BY rowid"

Key = tuple[tuple[tuple[str, str], ...], str, str]
"""Ids of glossaries, each with the version of its dictionary, and a language pair."""


@dataclass(frozen=True, slots=True)
class GlossaryDictionary:
    """The terms of one language pair.

    Attributes:
        source, target: languages without region, in lower case: a glossary holds for every variety of a language.
        entries: source term -> target term.
    """

    source: str
    target: str
    entries: Mapping[str, str]

    @classmethod
    def of(cls, source: str, target: str, entries: Mapping[str, str]) -> GlossaryDictionary:
        """Checks terms and bounds, and takes the region off the codes. Raises InvalidOption."""
        if not entries:
            raise InvalidOption("entries", "must hold at least one term", "")
        if len(entries) > MAX_STORED_GLOSSARY:
            raise InvalidOption("entries", f"may hold at most {MAX_STORED_GLOSSARY} terms", len(entries))
        for number, (term, translation) in enumerate(entries.items(), 1):
            _check_term(number, "source", term)
            _check_term(number, "target", translation)
        return cls(base_language(source), base_language(target), dict(entries))


@dataclass(frozen=True, slots=True)
class DictionarySize:
    """What is said about a dictionary without its entries."""

    source: str
    target: str
    count: int


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """A glossary without its entries; ``created`` in seconds since 1970."""

    id: str
    name: str
    created: float
    dictionaries: Sequence[DictionarySize] = field(default=())


class Glossaries:
    """The stored glossaries of all callers. Calls block: they belong in threads.

    Every method but ``close`` raises StorageError where the database cannot be used now.
    """

    def __init__(self, settings: Settings) -> None:
        """In ``glossaries.db`` of the data folder, or in memory where there is none. Raises ConfigError."""
        self._own = settings.part(AccountSettings)
        self._database = Database(settings.data and settings.data / "glossaries.db", [_SCHEMA, _VERSIONS])
        self._ready: OrderedDict[Key, Future[Glossary]] = OrderedDict()  # those that were asked for last, at the end
        self._lock = threading.Lock()

    def close(self) -> None:
        self._database.close()

    def create(self, owner: str, name: str, dictionaries: Sequence[GlossaryDictionary]) -> StoredGlossary:
        """Store a new glossary. Raises InvalidOption, GlossaryLimit."""
        _check_name(name)
        _check_dictionaries(dictionaries)
        identifier = str(uuid.uuid4())
        with self._database.connection() as connection:
            found = connection.execute("SELECT count(*) FROM glossary WHERE owner = ?", (owner,)).fetchone()[0]
            if found >= self._own.max_glossaries:
                raise GlossaryLimit("glossaries", self._own.max_glossaries, found + 1)
            values = (identifier, owner, name, time.time())
            connection.execute("INSERT INTO glossary (id, owner, name, created) VALUES (?, ?, ?, ?)", values)
            for dictionary in dictionaries:
                _write(connection, identifier, dictionary)
            self._check_characters(connection, owner)
            return _read(connection, owner, identifier)

    def of_owner(self, owner: str) -> list[StoredGlossary]:
        """A caller's glossaries, oldest first."""
        with self._database.connection(readonly=True) as connection:
            rows = connection.execute("SELECT id FROM glossary WHERE owner = ? ORDER BY created, rowid", (owner,))
            return [_read(connection, owner, row["id"]) for row in rows.fetchall()]

    def get(self, owner: str, identifier: str) -> StoredGlossary:
        """One glossary. Raises GlossaryNotFound."""
        with self._database.connection(readonly=True) as connection:
            return _read(connection, owner, identifier)

    def entries(self, owner: str, identifier: str, source: str, target: str) -> dict[str, str]:
        """The terms of a language pair, in the order in which they came. Raises GlossaryNotFound."""
        with self._database.connection(readonly=True) as connection:
            _read(connection, owner, identifier)
            return _entries(connection, identifier, base_language(source), base_language(target))

    def terms(self, owner: str, identifiers: Sequence[str], source: str, target: str) -> Glossary:
        """The terms of a language pair in several glossaries, ready to be found; of a term in several, the first one's.

        Raises:
            GlossaryNotFound: one of them is not there, or has no dictionary of that pair.
            InvalidOption: they have too many different words.
        """
        pair = base_language(source), base_language(target)
        with self._database.connection(readonly=True) as connection:
            versions = []
            for identifier in identifiers:
                _read(connection, owner, identifier)
                versions.append((identifier, _dictionary(connection, identifier, *pair)))
        return self._made_ready((tuple(versions), *pair))

    def _made_ready(self, key: Key) -> Glossary:
        """Made once, however many ask meanwhile: a client that waited too long asks again."""
        with self._lock:
            known = self._ready.get(key)
            ready = self._ready.setdefault(key, Future())
            self._ready.move_to_end(key)
            if len(self._ready) > _READY:
                self._ready.popitem(last=False)
        if known is None:
            try:
                ready.set_result(self._make_ready(*key))
            except Exception as error:
                with self._lock:
                    self._ready.pop(key, None)
                ready.set_exception(error)
        return ready.result()

    def _make_ready(self, versions: tuple[tuple[str, str], ...], source: str, target: str) -> Glossary:
        found: dict[str, str] = {}
        with self._database.connection(readonly=True) as connection:
            for identifier, _ in versions:
                found = _entries(connection, identifier, source, target) | found
        return Glossary.of(found)

    def change(
        self, owner: str, identifier: str, name: str | None, dictionaries: Sequence[GlossaryDictionary]
    ) -> StoredGlossary:
        """Rename where a name is given, and add terms: new ones of a known pair take the place of equal source terms.

        Raises:
            GlossaryNotFound, InvalidOption, GlossaryLimit: nothing was changed.
        """
        if name is not None:
            _check_name(name)
        with self._database.connection() as connection:
            stored = _read(connection, owner, identifier)
            if name is not None:
                connection.execute("UPDATE glossary SET name = ? WHERE id = ?", (name, identifier))
            known = {(one.source, one.target) for one in stored.dictionaries}
            for one in dictionaries:
                if (one.source, one.target) in known:
                    before = _entries(connection, identifier, one.source, one.target)
                    one = GlossaryDictionary.of(one.source, one.target, before | dict(one.entries))
                _write(connection, identifier, one)
            self._check_size(connection, owner, identifier)
            return _read(connection, owner, identifier)

    def replace(self, owner: str, identifier: str, dictionary: GlossaryDictionary) -> DictionarySize:
        """Store a dictionary in place of the one of its language pair. Raises GlossaryNotFound, GlossaryLimit."""
        with self._database.connection() as connection:
            _read(connection, owner, identifier)
            _write(connection, identifier, dictionary)
            self._check_size(connection, owner, identifier)
        return DictionarySize(dictionary.source, dictionary.target, len(dictionary.entries))

    def delete_dictionary(self, owner: str, identifier: str, source: str, target: str) -> None:
        """Delete the terms of a language pair. Raises GlossaryNotFound."""
        with self._database.connection() as connection:
            _read(connection, owner, identifier)
            values = (identifier, base_language(source), base_language(target))
            query = "DELETE FROM dictionary WHERE glossary = ? AND source = ? AND target = ?"
            if connection.execute(query, values).rowcount == 0:
                raise _no_such_pair(*values[1:])

    def delete(self, owner: str, identifier: str) -> None:
        """Delete a glossary. Raises GlossaryNotFound."""
        with self._database.connection() as connection:
            query = "DELETE FROM glossary WHERE id = ? AND owner = ?"
            if connection.execute(query, (identifier, owner)).rowcount == 0:
                raise _no_such_glossary()

    def _check_size(self, connection: sqlite3.Connection, owner: str, identifier: str) -> None:
        found = len(connection.execute(_SIZES, (identifier,)).fetchall())
        if found > MAX_DICTIONARIES:
            raise GlossaryLimit("dictionaries in a glossary", MAX_DICTIONARIES, found)
        self._check_characters(connection, owner)

    def _check_characters(self, connection: sqlite3.Connection, owner: str) -> None:
        query = "SELECT total(characters) FROM dictionary JOIN glossary ON glossary = id WHERE owner = ?"
        found = int(connection.execute(query, (owner,)).fetchone()[0])
        if found > self._own.max_glossary_characters:
            raise GlossaryLimit("characters in all glossaries", self._own.max_glossary_characters, found)


def _read(connection: sqlite3.Connection, owner: str, identifier: str) -> StoredGlossary:
    query = "SELECT id, name, created FROM glossary WHERE id = ? AND owner = ?"
    row = connection.execute(query, (identifier, owner)).fetchone()
    if row is None:
        raise _no_such_glossary()
    sizes = tuple(DictionarySize(*found) for found in connection.execute(_SIZES, (identifier,)))
    return StoredGlossary(row["id"], row["name"], row["created"], sizes)


def _dictionary(
    connection: sqlite3.Connection, identifier: str, source: str, target: str, column: str = "version"
) -> str:
    query = f"SELECT {column} FROM dictionary WHERE glossary = ? AND source = ? AND target = ?"
    row = connection.execute(query, (identifier, source, target)).fetchone()
    if row is None:
        raise _no_such_pair(source, target)
    return str(row[column])


def _entries(connection: sqlite3.Connection, identifier: str, source: str, target: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(_dictionary(connection, identifier, source, target, "entries"))
    return found


def _write(connection: sqlite3.Connection, identifier: str, dictionary: GlossaryDictionary) -> None:
    characters = sum(len(source) + len(target) for source, target in dictionary.entries.items())
    text = json.dumps(dict(dictionary.entries), ensure_ascii=False)
    values = (identifier, dictionary.source, dictionary.target, text, len(dictionary.entries), characters)
    query = """
        INSERT INTO dictionary (glossary, source, target, entries, count, characters, version)
        VALUES (?, ?, ?, ?, ?, ?, hex(randomblob(16)))
        ON CONFLICT DO UPDATE SET entries = excluded.entries, count = excluded.count, characters = excluded.characters,
        version = excluded.version
    """
    connection.execute(query, values)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidOption("name", f"must have 1 to {MAX_NAME} characters", name)


def _check_dictionaries(dictionaries: Sequence[GlossaryDictionary]) -> None:
    if not 1 <= len(dictionaries) <= MAX_DICTIONARIES:
        raise InvalidOption("dictionaries", f"must be 1 to {MAX_DICTIONARIES}", len(dictionaries))
    pairs = [(one.source, one.target) for one in dictionaries]
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise InvalidOption("dictionaries", "may hold one dictionary per language pair", "-".join(pair))


def _check_term(number: int, side: str, term: str) -> None:
    place = f"entries.{number}.{side}"
    if not term.strip():
        raise InvalidOption(place, "must not be empty", term)
    if len(term) > MAX_TERM:
        raise InvalidOption(place, f"may have at most {MAX_TERM} characters", len(term))
    if _BREAKS_LINES.search(term):
        raise InvalidOption(place, "must not hold control characters or line breaks", term)


def _no_such_glossary() -> GlossaryNotFound:
    return GlossaryNotFound("there is no such glossary; GET /v2/glossaries and GET /v3/glossaries list yours")


def _no_such_pair(source: str, target: str) -> GlossaryNotFound:
    return GlossaryNotFound(f"the glossary has no dictionary for {source}-{target}")
