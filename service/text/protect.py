"""What is to come back as it was: kinds (``placeholders``, ``urls``, ``emails``, ``numbers``), literals, patterns.

An entry that begins with ``regex:`` is a regular expression, one that begins with ``literal:`` is a literal whatever
follows, and anything else is one of the kinds or a literal. A client's expressions run in RE2 (google-re2): its time is
linear in the text and its memory has a bound, whatever the expression is. ``regex`` with a time limit was looked at and
not taken: until the limit it holds a thread and the interpreter's lock, and compiling has no limit. The price is that
RE2 has neither look-around nor back references. As a hundred expressions may each find a place at every character, the
processor time of all of a request's together has a bound, beyond which the request is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import re2  # type: ignore[import-untyped]

from tandem.service.errors import InvalidOption
from tandem.service.text.families import COPIED, NUMBERS, PLACEHOLDERS, CopiedForm, find_families, may_have_some
from tandem.service.text.layout import section_end
from tandem.service.text.masking import Hidden, HiddenPlace, apart
from tandem.service.text.spans import Span

KEPT = ("placeholders", "urls", "emails")
"""Kinds that come back as they are though nobody asked for it."""
KINDS = (*KEPT, "numbers")
REGEX, LITERAL = "regex:", "literal:"
MAX_MEMORY = 1 << 20
"""Bytes that one of a client's expressions may take."""
MAX_SECONDS = 0.5
"""Processor time that a request's expressions may take; hundreds of ordinary ones take some milliseconds."""
LONGEST_WORD = 200
"""Characters without a space beyond which nothing is a word: those of dictionaries have under 100, or twice as many."""

Finder = Callable[[str], Iterator[tuple[int, int]]]
_Tree: TypeAlias = dict[str, "_Tree"]
"""Texts that begin alike, by their next character; the empty one stands for the end of one."""

_URL = re.compile(r"(?<![\w@])(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|mailto:|www\.(?=\w))[^\s<>\"`|\\^]+", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
# Code points of scripts that put spaces between words: a run of others is a sentence, and no word.
_SPACED = r"[^\s\u0e00-\u1dff\u2c00-\uabff\ud7b0-\U0010ffff]"
_ENDLESS = re.compile(rf"(?<!{_SPACED}){_SPACED}{{{LONGEST_WORD + 1},}}+")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:/'’\u00a0\u202f-]\d+)*(?!\w)")
_INDENTED = 100  # characters before a section's number that are looked at
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Protector:
    """Finds what a request protects."""

    finders: tuple[Finder, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[str]) -> Protector:
        """A protector of a request's entries.

        Raises:
            InvalidOption: an expression that RE2 does not read or that is too large, or an empty literal.
        """
        exact: dict[str, None] = {}
        finders: list[Finder] = []
        allowance = _Allowance(MAX_SECONDS)
        for number, entry in enumerate(entries):
            if entry in _FINDERS:
                finders.append(_FINDERS[entry])
            elif entry.startswith(REGEX):
                finders.append(_expression(number, entry, allowance))
            else:
                literal = entry.removeprefix(LITERAL)
                if not literal.strip():
                    raise _bad_entry(number, entry, "must name something other than white space")
                exact[literal] = None
        if exact:
            finders.append(_matches(literals(exact)))
        return cls(tuple(dict.fromkeys(finders)))

    def find(self, text: str) -> list[HiddenPlace]:
        """What is protected in a text, in order; of overlapping places the one that begins first, then the longest.

        Raises:
            InvalidOption: the expressions have taken too long, in this text and those before it.
        """
        places = {Span(*place) for finder in self.finders for place in finder(text)}
        return apart((span, Hidden.kept(text[span.start : span.end])) for span in places)


def always_kept(text: str, *, names: bool, code: Iterable[Span] = ()) -> list[HiddenPlace]:
    """What comes back as it is though nobody asked for it, in order.

    Endless words, for no model translates encoded data and hostile text: one of 19,000 letters "a" took a worker 36 s,
    and came back as nonsense. Lines that are code. Web and e-mail addresses, and the families of
    ``service.text.families``, which small models garble or leave out: "max_filesize" and "countryCode" came back one
    time in four. Some of those are read as they are first, like terms: models know many, and write what is around them
    better so.

    Args:
        text: any.
        names: whether addresses and families are kept, too.
        code: lines that are code.
    """
    found = [_place(text, Span(*match.span())) for match in _ENDLESS.finditer(text)]
    found += [_place(text, span) for span in code]
    if names and may_have_some(text):
        found += [_place(text, Span(*place)) for find in (_urls, _matches(_EMAIL)) for place in find(text)]
        for table in (NUMBERS, PLACEHOLDERS, COPIED):  # of equal places the first counts
            places = ((span, family) for span, family in find_families(text, table) if not _is_section(text, span))
            found += [_place(text, span, family.read_first) for span, family in places]
    return apart(found)


def _is_section(text: str, place: Span) -> bool:
    """Whether it is the number of a section, which is layout: at a line's beginning, before a capital."""
    if not text[place.start].isdigit() or not section_end(text, place.start):
        return False
    before = text[max(0, place.start - _INDENTED) : place.start].rstrip(" \t\u00a0")
    return not before or before[-1] in "\r\n"


def _place(text: str, span: Span, read_first: bool = False) -> HiddenPlace:
    part = text[span.start : span.end]
    return span, Hidden(part, part, part if read_first else None, asked=False)


def _bad_entry(number: int, entry: str, bound: str) -> InvalidOption:
    return InvalidOption(f"protect.{number}", bound, entry)


def literals(texts: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of some texts, not inside a word.

    Written as a tree of what they have in common, so that no character is compared once for each of them.
    """
    root: _Tree = {}
    for text in texts:
        node = root
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    ways: dict[bool, list[str]] = {True: [], False: []}
    for character, node in root.items():
        ways[_joins(character)].append(re.escape(character) + _following(node, character))
    inside = [rf"(?<!\w)(?:{'|'.join(ways[True])})"] if ways[True] else []
    return re.compile("|".join(inside + ways[False]))


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no spaces between words."""
    return _UNSPACED.match(character) is not None


def has_unspaced(text: str) -> bool:
    """Whether some character of it does."""
    return _UNSPACED.search(text) is not None


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def _matches(pattern: re.Pattern[str]) -> Finder:
    return lambda text: (match.span() for match in pattern.finditer(text))


def _family_finder(table: Mapping[str, CopiedForm]) -> Finder:
    return lambda text: ((span.start, span.end) for span, _ in find_families(text, table))


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
    "placeholders": _family_finder(PLACEHOLDERS),
    "urls": _urls,
    "emails": _matches(_EMAIL),
    "numbers": lambda text: chain(_family_finder(NUMBERS)(text), _matches(_NUMBER)(text)),
}


def _following(node: _Tree, last: str) -> str:
    """What may follow a beginning that ends in a character; longer texts first, as only one way to go on can match."""
    common = ""
    while len(node) == 1 and "" not in node:
        ((last, node),) = node.items()
        common += re.escape(last)
    ways = [re.escape(character) + _following(after, character) for character, after in node.items() if character]
    if "" in node:
        ways.append(r"(?!\w)" if _joins(last) else "")
    return common + (ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})")


def _joins(character: str) -> bool:
    return (character.isalnum() or character == "_") and not is_unspaced(character)


@dataclass(slots=True)
class _Allowance:
    """Processor time that is left to a request's expressions."""

    seconds: float

    def spend(self, matches: Iterator[Any]) -> Iterator[tuple[int, int]]:
        """The places of matches. Raises TimeoutError once finding them and using them has taken too long."""
        started = time.thread_time()
        for match in chain(matches, [None]):
            now = time.thread_time()
            self.seconds, started = self.seconds - (now - started), now
            if self.seconds <= 0:
                raise TimeoutError
            if match is not None:
                yield match.start(), match.end()


def _expression(number: int, entry: str, allowance: _Allowance) -> Finder:
    compiled = _compiled(entry.removeprefix(REGEX))
    if isinstance(compiled, str):
        raise _bad_entry(number, entry, compiled)

    def find(text: str) -> Iterator[tuple[int, int]]:
        try:
            yield from allowance.spend(compiled.finditer(text))
        except TimeoutError as error:
            bound = f"must take, with the other expressions, at most {MAX_SECONDS:g} s to be looked for"
            raise _bad_entry(number, entry, bound) from error

    return find


@lru_cache(maxsize=64)
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
