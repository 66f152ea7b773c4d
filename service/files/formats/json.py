"""JSON: the strings among its values; names, numbers, layout and what reads like code come back byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from service.files.bounds import FileRefused, Segment, SourceFile
from service.files.formats.encoding import Text, read_text
from service.files.formats.passages import Part, Parts, Passage, is_prose, message, segments_of, write_text

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(?P<name>\s*:)?')
_HALF = re.compile("[\ud800-\udfff]")  # of a character: cannot be written but as an escape


def read(source: SourceFile) -> Iterator[Segment]:
    """The strings. Raises FileRefused."""
    return segments_of(_document(source)[1], source.bounds.markup_characters)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The file with its strings translated, written with escapes for what is not ASCII if it had them."""
    text, parts = _document(source)
    write_text(text, parts, source, translations, result)


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source)
    try:
        json.loads(text.characters, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileRefused.broken(f"the file is no JSON from {where} on ({error.msg}); correct it") from error
    return text, tuple(_parts(text.characters))


def _parts(characters: str) -> Iterator[Part]:
    finish = partial(json.dumps, ensure_ascii=characters.isascii() and "\\u" in characters)
    done = 0
    for string in _STRING.finditer(characters):
        value = "" if string["name"] else json.loads(string[0])
        if is_prose(value) and not _HALF.search(value):
            yield characters[done : string.start()]
            yield Passage(message(value), finish=finish, raw=string[0])
            done = string.end()
    yield characters[done:]
