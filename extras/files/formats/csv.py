"""Tables: the cells that hold words, the first row too; numbers, formulas, delimiter, quotes and line ends stay.

So do the cells of columns of keys (``home.title``), and headings of the others that are codes of languages.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from tandem.extras.files.bounds import FileRefused, SourceFile
from tandem.extras.files.formats.encoding import Text, read_text
from tandem.extras.files.formats.passages import Part, Parts, Passage, is_prose, message, text_format
from tandem.service.text.languages import NAMES, base_code

_DELIMITERS = {"csv": ",;\t|", "tsv": "\t"}
_NAMED = re.compile(r"sep=(.)\r?\n")  # a first line for Excel
_OPEN = re.compile(r'"[^"]*\Z')  # begins a cell in quotes; with another quote behind it they are letters of the text
_SAMPLE = 1 << 16  # characters by which the delimiter and columns of keys are told
_KEYS = {"handle", "id", "identifier", "identifiers", "ids", "key", "keys", "lang", "locale", "msgid", "slug"}


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source)
    named = _NAMED.match(text.characters)
    start = named.end() if named else 0
    delimiter = named[1] if named else _delimiter(text.characters, _DELIMITERS[source.ending])
    return text, (text.characters[:start], *_parts(text.characters, start, delimiter))


read, write = text_format(_document)
"""The table with its cells translated; a cell gets quotes where it did not need them before."""


def _delimiter(characters: str, candidates: str) -> str:
    """Of some delimiters the one that cuts the most rows into one number of cells; the first where none cuts any."""

    def regular(delimiter: str) -> int:
        rows = Counter(len(row) for row in _sample(characters, delimiter))
        return max((count for cells, count in rows.items() if cells > 1), default=0)

    return max(candidates, key=regular)


def _sample(characters: str, delimiter: str) -> list[list[str]]:
    """The first rows that have cells."""
    return [row for row in csv.reader(characters[:_SAMPLE].splitlines(), delimiter=delimiter) if row]


def _kept_cells(rows: Sequence[Sequence[str]]) -> tuple[frozenset[int], frozenset[int]]:
    """Columns of which the cells below the first row stay, and those of which the first row's cell does.

    Beside columns of text, one is of keys that is headed so, or if most of its cells read like code and none has words.
    In a first row with such a heading codes of languages stay too, and where it has nothing else.
    """
    first = [cell.strip().lower() for cell in rows[0]] if rows and len(rows[0]) > 1 else []
    headed = {column for column, heading in enumerate(first) if heading in _KEYS}
    languages = {column for column, heading in enumerate(first) if base_code(heading) in NAMES}
    coded = {
        column for column in range(len(first)) if _reads_like_code([row[column] for row in rows if column < len(row)])
    }
    named = headed or len(languages) == len(first)
    return frozenset(headed | coded), frozenset(headed | languages if named else ())


def _reads_like_code(cells: Sequence[str]) -> bool:
    words = [cell.strip() for cell in cells[1:] if any(map(str.isalpha, cell))]
    return not any(" " in word for word in words) and 2 * sum(not is_prose(word) for word in words) > len(words)


def _parts(characters: str, start: int, delimiter: str) -> Iterator[Part]:
    mark = re.escape(delimiter)
    quoted, plain = rf'"(?P<quoted>(?:[^"]|"")*)"(?={mark}|[\r\n]|\Z)', rf"(?P<plain>[^{mark}\r\n]*)"
    cell = re.compile(rf"(?:{quoted}|{plain})(?P<end>{mark}|[\r\n]+|\Z)")
    below, kept = _kept_cells(_sample(characters[start:], delimiter))
    place, column = start, 0
    while place < len(characters):
        found = cell.match(characters, place)
        if found is None or _OPEN.match(found["plain"] or ""):
            line = characters.count("\n", 0, place) + 1
            raise FileRefused.broken(f"the cell that begins in line {line} has a quote that does not end; correct it")
        in_quotes = found["plain"] is None
        value = found["quoted"].replace('""', '"') if in_quotes else found["plain"]
        if is_prose(value) and not value.startswith("=") and column not in kept:
            end = found.end("quoted") + 1 if in_quotes else found.end("plain")
            needing = (delimiter, "\n", "\r", *(() if '"' in found[0] else '"'))  # a cell may have quotes as letters
            finish = partial(_cell, needing=needing, in_quotes=in_quotes, windows="\r\n" in value)
            yield Passage(message(value.replace("\r\n", "\n")), finish=finish, raw=characters[place:end])
            yield characters[end : found.end()]
        else:
            yield found[0]
        place, column = found.end(), column + 1
        if found["end"] != delimiter:
            column, kept = 0, below


def _cell(value: str, needing: Sequence[str], in_quotes: bool, windows: bool) -> str:
    value = value.replace("\n", "\r\n") if windows else value
    if in_quotes or any(character in value for character in needing) or _OPEN.match(value):
        return '"' + value.replace('"', '""') + '"'
    return value
