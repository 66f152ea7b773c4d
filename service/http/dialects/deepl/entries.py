"""Glossary entries as tab- or comma-separated values, the two formats in which DeepL's clients send them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Literal

from service.http.errors import InvalidFields
from service.storage.glossaries import base_language
from service.text.glossary import MAX_GLOSSARY

EntriesFormat = Literal["tsv", "csv"]


def parse_entries(text: str, kind: EntriesFormat, source: str, target: str) -> dict[str, str]:
    """Source term -> target term; space around terms is no part of them, and empty lines count for nothing.

    A line of CSV may name the two languages behind the terms, as in files that DeepL writes.

    Raises:
        InvalidFields: a line has no two terms or names other languages, a term stands twice, or there are too many.
    """
    entries: dict[str, str] = {}
    for number, row in _rows(text, kind):
        place = f"entries, line {number}"
        if len(row) not in ((2, 4) if kind == "csv" else (2,)):
            separator = "comma" if kind == "csv" else "tab"
            raise InvalidFields.of(place, f"must be a source and a target term with one {separator} between", len(row))
        for given, wanted in zip(row[2:], (source, target), strict=False):
            if base_language(given) != base_language(wanted):
                raise InvalidFields.of(place, f"must be of the dictionary's language {wanted}", given)
        term = row[0]
        if term in entries:
            raise InvalidFields.of(place, "must not name a source term that another line has", term)
        entries[term] = row[1]
        if len(entries) > MAX_GLOSSARY:
            raise InvalidFields.of("entries", f"may hold at most {MAX_GLOSSARY} terms", f"more than {MAX_GLOSSARY}")
    return entries


def format_tsv(entries: Mapping[str, str]) -> str:
    """Entries as tab-separated values."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def _rows(text: str, kind: EntriesFormat) -> Iterator[tuple[int, list[str]]]:
    """Number (from 1) and fields of each line that is not empty."""
    if kind == "tsv":
        rows: Iterator[list[str]] = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    else:
        rows = iter(csv.reader(io.StringIO(text, newline=""), strict=True))
    number = 0
    try:
        for number, row in enumerate(rows, 1):
            if any(value.strip() for value in row):
                yield number, [value.strip() for value in row]
    except csv.Error as error:
        raise InvalidFields.of("entries", "must be comma-separated values", f"line {number + 1}: {error}") from error
