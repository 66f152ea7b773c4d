"""What is to come back as it was: kinds (``placeholders``, ``urls``, ``emails``, ``numbers``), literals, patterns.

An entry that begins with ``regex:`` is a regular expression, one that begins with ``literal:`` is a literal whatever
follows, and anything else is one of the kinds or a literal. A client's expressions run in RE2 (google-re2): its time is
linear in the text and its memory has a bound, whatever the expression is. ``regex`` with a time limit was looked at and
not taken: until the limit it holds a thread and the interpreter's lock, compiling has no limit, and what is found would
depend on how busy the machine is. The price is that RE2 has neither look-around nor back references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import re2  # type: ignore[import-untyped]

from models.errors import TandemError
from service.text.masking import Found, Hidden
from service.text.spans import Span

KINDS = ("placeholders", "urls", "emails", "numbers")
REGEX, LITERAL = "regex:", "literal:"
MAX_MEMORY = 1 << 20
"""Bytes that one of a client's expressions may take."""

Finder = Callable[[str], Iterator[tuple[int, int]]]

_PLACEHOLDER = re.compile(
    r"""\{\{[^{}\n]{0,200}\}\}
      | [$%\#]?\{[^{}\n]{0,200}\}
      | %(?:\d{1,2}\$|\([\w.]{1,100}\))?[-+\#0]*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?(?:hh?|ll?|[Lzjt])?
        [diouxXeEfFgGaAcsSpn@](?!\w)
      | </?[A-Za-z][\w:.-]{0,100}(?:\s[^<>]{0,500})?/?>""",
    re.VERBOSE,
)
_URL = re.compile(r"(?<![\w@])(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|mailto:|www\.(?=\w))[^\s<>\"`|\\^]+", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:/'’\u00a0\u202f-]\d+)*(?!\w)")
_CLOSING = {")": "(", "]": "[", "}": "{"}


class ProtectError(TandemError):
    """An entry that says nothing that could be protected.

    Attributes:
        number: of the entry, from 0.
        bound: what it must be.
    """

    def __init__(self, number: int, bound: str) -> None:
        self.number, self.bound = number, bound
        super().__init__(f"protect.{number}: {bound}")


@dataclass(frozen=True, slots=True)
class Protector:
    """Finds what a request protects."""

    finders: tuple[Finder, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[str]) -> Protector:
        """A protector of a request's entries.

        Raises:
            ProtectError: an expression that RE2 does not read or that is too large, or an empty literal.
        """
        exact: dict[str, None] = {}
        finders: list[Finder] = []
        for number, entry in enumerate(entries):
            if entry in _FINDERS:
                finders.append(_FINDERS[entry])
            elif entry.startswith(REGEX):
                finders.append(_expression(number, entry.removeprefix(REGEX)))
            else:
                literal = entry.removeprefix(LITERAL)
                if not literal.strip():
                    raise ProtectError(number, "must name something other than white space")
                exact[literal] = None
        if exact:
            finders.append(_matches(literals(exact)))
        return cls(tuple(dict.fromkeys(finders)))

    def find(self, text: str) -> list[Found]:
        """What is protected in a text, in order; of overlapping places the one that begins first, then the longest."""
        places = {Span(*place) for finder in self.finders for place in finder(text)}
        found: list[Found] = []
        for span in sorted(places, key=lambda one: (one.start, -one.end)):
            if span.end > span.start and (not found or span.start >= found[-1][0].end):
                part = text[span.start : span.end]
                found.append((span, Hidden.kept(part)))
        return found


def literals(texts: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of some texts, not inside a word."""
    return re.compile("|".join(map(_literal, sorted(texts, key=len, reverse=True))))


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no spaces between words."""
    return _UNSPACED.match(character) is not None


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def _matches(pattern: re.Pattern[str]) -> Finder:
    return lambda text: (match.span() for match in pattern.finditer(text))


def _urls(text: str) -> Iterator[tuple[int, int]]:
    """Addresses without the punctuation of the sentence that they stand in."""
    for match in _URL.finditer(text):
        start, end = match.span()
        end = _address_end(text, start, end)
        if text[start:end].rstrip(":/").lower() not in ("mailto", "http", "https"):
            yield start, end


def _address_end(text: str, start: int, end: int) -> int:
    while end > start:
        last = text[end - 1]
        opening = _CLOSING.get(last)
        inner = opening is not None and text.count(last, start, end) <= text.count(opening, start, end)
        if inner or last not in ".,;:!?'’”»…)]}*_。，、；：！？」』）":
            break
        end -= 1
    return end


_FINDERS: dict[str, Finder] = {
    "placeholders": _matches(_PLACEHOLDER),
    "urls": _urls,
    "emails": _matches(_EMAIL),
    "numbers": _matches(_NUMBER),
}


def _literal(literal: str) -> str:
    before = r"(?<!\w)" if _joins(literal[0]) else ""
    return before + re.escape(literal) + (r"(?!\w)" if _joins(literal[-1]) else "")


def _joins(character: str) -> bool:
    return (character.isalnum() or character == "_") and not is_unspaced(character)


def _expression(number: int, pattern: str) -> Finder:
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        raise ProtectError(number, compiled)
    return lambda text: ((match.start(), match.end()) for match in compiled.finditer(text))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re2._Regexp | str:
    """An expression, or what it must be."""
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error.args[0])
        return f"must be a regular expression in RE2's syntax of at most {MAX_MEMORY} bytes compiled ({reason[:100]})"
