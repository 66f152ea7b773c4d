"""JSON: the strings among its values; names, numbers, layout and what reads like code come back byte for byte.

Of Flutter's resources (ARB) what is said about messages, under names that begin with ``@``, stays, and the file's
locale is the target; of browser extensions' messages all but ``message`` stays, of FormatJS's ``id`` and
``description``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from tandem.extras.files.bounds import FileRefused, SourceFile
from tandem.extras.files.formats.encoding import Text, read_text
from tandem.extras.files.formats.passages import Part, Parts, Passage, is_prose, message, text_format
from tandem.service.text.languages import base_code

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')
_LOCALE = "@@locale"
_DEFAULT = "defaultMessage"
_NAMING = ("class", "className", "css", "icon", "id", "slug")  # of what programs look up
_LOOKED_UP = re.compile(r"(?=[^-]*-)[a-z][a-z\d-]*(?: [a-z][a-z\d-]*)*")  # "fa fa-home", and no word alone
_TELLING = (
    "align", "dir", "direction", "kind", "lang", "layout", "locale", "nodeType", "role", "style", "textAlign", "type"
)  # fmt: skip
_WORD_OR_CSS = re.compile(r"[a-z][\w-]*|(?:\s*[a-z-]+:[^;{}]+(?:;\s*|\Z))+")
_NAMES = dict.fromkeys(_NAMING, _LOOKED_UP) | dict.fromkeys(_TELLING, _WORD_OR_CSS)
_HALF = re.compile("[\ud800-\udfff]")  # of a character: cannot be written but as an escape


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source)
    try:
        content = json.loads(text.characters, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileRefused.broken(f"the file is no JSON from {where} on ({error.msg}); correct it") from error
    return text, tuple(_parts(text.characters, _rule_of(content, source.ending), source.target))


Rule: TypeAlias = Callable[[Sequence[str]], bool]
read, write = text_format(_document)
"""The file with its strings translated, written with escapes for what is not ASCII if it had them."""


def _rule_of(content: Any, ending: str) -> Rule:
    """Which values are texts, by the names that lead to them."""
    if isinstance(content, dict) and (ending == "arb" or _LOCALE in content):
        return lambda names: not any(name.startswith("@") for name in names)
    if any(isinstance(entry, dict) and _DEFAULT in entry for entry in _entries(content)):
        return lambda names: names[-1:] not in (["id"], ["description"])
    entries = _entries(content) if isinstance(content, dict) else []
    if entries and all(isinstance(entry, dict) and isinstance(entry.get("message"), str) for entry in entries):
        return lambda names: len(names) == 2 and names[1] == "message"
    return lambda names: True


def _entries(content: Any) -> list[Any]:
    """What a file holds one below another."""
    return list(content.values()) if isinstance(content, dict) else content if isinstance(content, list) else []


def _values(characters: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """The strings among the values, and the names that lead to each."""
    names: list[str | None] = []  # of what is open: of an object's value, None where a name comes next; of a list ""
    for token in _TOKEN.finditer(characters):
        sign = token[0]
        if sign in "{[":
            names.append(None if sign == "{" else "")
        elif sign in "}]":
            names.pop()
        elif sign == ",":
            names[-1] = "" if names[-1] == "" else None
        elif names and names[-1] is None:
            names[-1] = json.loads(sign) or "\0"
        else:
            yield token, [name for name in names if name]


def _parts(characters: str, rule: Rule, target: str) -> Iterator[Part]:
    finish = partial(json.dumps, ensure_ascii=characters.isascii() and "\\u" in characters)
    done = 0
    for string, names in _values(characters):
        value = json.loads(string[0])
        if names == [_LOCALE] and base_code(value.replace("_", "-")) != base_code(target):
            yield characters[done : string.start()] + json.dumps(target.replace("-", "_"))
            done = string.end()
        elif names and names[-1] in _NAMES and value != names[-1] and _NAMES[names[-1]].fullmatch(value):
            continue
        elif rule(names) and is_prose(value) and not _HALF.search(value):
            yield characters[done : string.start()]
            yield Passage(message(value), finish=finish, raw=string[0])
            done = string.end()
    yield characters[done:]
