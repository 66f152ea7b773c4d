"""JSON: the strings among its values; names, numbers, layout and what reads like code come back byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial

from extras.files.bounds import FileRefused, SourceFile
from extras.files.formats.encoding import Text, read_text
from extras.files.formats.passages import Part, Parts, Passage, is_prose, message, text_format

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(?P<name>\s*:)?')
_HALF = re.compile("[\ud800-\udfff]")  # of a character: cannot be written but as an escape


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source)
    try:
        json.loads(text.characters, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileRefused.broken(f"the file is no JSON from {where} on ({error.msg}); correct it") from error
    return text, tuple(_parts(text.characters))


read, write = text_format(_document)
"""The file with its strings translated, written with escapes for what is not ASCII if it had them."""


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
