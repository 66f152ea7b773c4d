"""HTML and XML as tokens that know how they were written: joined, what they were written as is the text.

HTML is read by turbohtml's tokenizer (MIT, kept by the maintainer of tox and virtualenv, typed, no dependencies), which
follows the standard that browsers follow and says where each token stands, so that whatever is not translated comes
back byte for byte. Looked at and not taken: selectolax, lxml, html5lib (unmaintained) and justhtml parse well but write
a tree of their own making back (quotes, entities and end tags changed, ``tbody`` added) and have no public source
positions for all of it; the standard library's ``html.parser`` differs from browsers, and between Python's patch
releases, about comments, scripts and CDATA.

XML is read by the standard library's expat, which gives byte positions; documents that declare entities are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple
from xml.parsers import expat

from turbohtml import TokenType, tokenize

from tandem.service.text.blocks import MarkupError, MarkupOptions


def check_bounds(options: MarkupOptions, elements: int, ends: int = 0) -> None:
    """Raises MarkupError where there are more elements or end tags than may be."""
    for name, count in (("elements", elements), ("end tags", ends)):
        if count > options.max_elements:
            raise MarkupError(f"may have at most {options.max_elements} {name}", count)


DEFAULTS = MarkupOptions()


class Kind(Enum):
    """What a token is."""

    TEXT = "text"
    START = "start tag"
    END = "end tag"
    EMPTY = "element without content"
    OTHER = "comment, declaration, instruction"
    JUNK = "what no parser makes anything of"


class Token(NamedTuple):
    """A piece of markup.

    Attributes:
        raw: as it was written.
        text: of text, with its entities resolved.
        name: of a tag; in HTML in lower case.
        slashed: whether a start tag of HTML ends in a slash, which counts only in drawings and formulas.
    """

    kind: Kind
    raw: str
    text: str = ""
    name: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    slashed: bool = False


_VOID_NAMES = "area base br col embed hr img input keygen link meta param source track wbr basefont bgsound frame"
_VOID = frozenset(_VOID_NAMES.split())
_LINE_END = re.compile(r"\r\n?")
_XML_HEAD = re.compile(
    r"\s*(?:<\?xml\b[^>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!DOCTYPE\s[^\[\]>]*>)?", re.IGNORECASE | re.DOTALL
)
_ROOT = "tandem"

_NAMELESS = re.compile(r"(?<=>)(?:</>)+\Z")


def scan_html(text: str, options: MarkupOptions = DEFAULTS) -> list[Token]:
    """The tokens of HTML as a browser finds them. Raises MarkupError where there are too many, before any is made."""
    plain: str = text
    places: Sequence[int] = range(len(text) + 1)  # where each of its characters stands in the text
    if "\r" in text:
        plain, places = _line_ends(text)
    starts = [0, *(match.end() for match in re.finditer("\n", plain))]
    found = list(tokenize(plain, capture_source=True, resolve_references=False))
    tags = Counter(one.type for one in found)
    check_bounds(options, tags[TokenType.START_TAG], tags[TokenType.END_TAG])
    borders = [starts[one.line - 1] + one.col for one in found] + [len(plain)]
    tokens = [Token(Kind.JUNK, text[: places[borders[0]]])] if borders[0] else []
    for one, start, end in zip(found, borders, borders[1:], strict=False):
        raw = text[places[start] : places[end]]
        nameless = None if one.type in (TokenType.TEXT, TokenType.CHARACTER_REFERENCE) else _NAMELESS.search(raw)
        if nameless:  # the tokenizer says nothing of it, and it is no part of the tag before
            raw = raw[: nameless.start()]
        # Of a tag that never ends and follows another the tokenizer says nothing, either.
        whole = _WHOLE.match(raw) if end == len(plain) else None
        unended, raw = (raw[whole.end() :], whole[0]) if whole else ("", raw)
        tokens += _html_tokens(one, raw, plain[start:end])
        tokens += [Token(Kind.JUNK, junk) for junk in (unended, nameless[0] if nameless else "") if junk]
    return tokens


def _line_ends(text: str) -> tuple[str, list[int]]:
    r"""The text with line ends as the tokenizer counts them, and where each character stood before."""
    second = {match.start() for match in re.finditer(r"(?<=\r)\n", text)}
    places = [place for place in range(len(text) + 1) if place not in second]
    return _LINE_END.sub("\n", text), places


# A tag, a comment, or what a browser takes for one.
_WHOLE = re.compile(
    r"""<!--.*?-->|<(?:[!?][^>-][^>]*+|/[^A-Za-z>][^>]*+)>|</?[A-Za-z][^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+>""",
    re.DOTALL,
)


def _html_tokens(one: Any, raw: str, plain: str) -> list[Token]:
    if one.type is TokenType.START_TAG:
        # The first of two attributes of one name counts.
        attributes = dict(reversed(one.attrs or []))
        kind = Kind.EMPTY if one.tag in _VOID else Kind.START
        return [Token(kind, raw, "", one.tag, attributes, bool(one.self_closing))]
    if one.type is TokenType.END_TAG:
        return [Token(Kind.JUNK if one.tag in _VOID else Kind.END, raw, "", one.tag)]
    if one.type not in (TokenType.TEXT, TokenType.CHARACTER_REFERENCE):
        return [Token(Kind.OTHER, raw)]
    if one.type is TokenType.TEXT and len(plain) > len(one.data) and plain.startswith(one.data):
        cut = len(raw) - (len(plain) - len(one.data))  # a tag that never ends follows
        return [Token(Kind.TEXT, raw[:cut], one.data), Token(Kind.JUNK, raw[cut:])]
    return [Token(Kind.TEXT, raw, one.data)]


def scan_xml(text: str, options: MarkupOptions = DEFAULTS) -> list[Token]:
    """The tokens of XML, a document or a part of one.

    Raises:
        MarkupError: it is not well-formed, declares entities, or has too many elements.
    """
    head = _XML_HEAD.match(text)
    start = head.end() if head else 0
    try:
        body = _Xml(f"<{_ROOT}>{text[start:]}</{_ROOT}>").tokens()
    except (expat.ExpatError, UnicodeEncodeError, _Unbalanced) as error:
        raise MarkupError(f"must be well-formed XML: {_fault(error, text[:start])}") from error
    check_bounds(options, sum(token.kind in (Kind.START, Kind.EMPTY) for token in body))
    return [Token(Kind.OTHER, text[:start]), *body] if start else body


def _fault(error: Exception, head: str) -> str:
    if not isinstance(error, expat.ExpatError):
        return "an end tag without a start tag" if isinstance(error, _Unbalanced) else "half a character"
    line = error.lineno + head.count("\n")
    return f"{expat.ErrorString(error.code)} in line {line}"


class _Unbalanced(Exception):
    """The text closes an element that it did not open."""


class _Xml:
    """Collects expat's events with the bytes that they stand for."""

    def __init__(self, text: str) -> None:
        self._source = text.encode("utf-8")
        self._events: list[tuple[int, Kind | None, str, str, dict[str, str]]] = []
        self._depth = 0
        parser = self._parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = lambda data: self._note(Kind.TEXT, text=data)
        parser.CommentHandler = lambda _: self._note(Kind.OTHER)
        parser.ProcessingInstructionHandler = lambda *_: self._note(Kind.OTHER)
        parser.StartCdataSectionHandler = lambda: self._note(None)
        parser.EndCdataSectionHandler = lambda: self._note(None)

    def tokens(self) -> list[Token]:
        """Those between the root's tags. Raises ExpatError or _Unbalanced."""
        self._parser.Parse(self._source, True)
        ends = [event[0] for event in self._events[1:]] + [len(self._source)]
        found: list[Token] = []
        section, raw, text = False, b"", ""  # a section of CDATA is one token, whatever events it is made of
        for (start, kind, name, data, attributes), end in zip(self._events, ends, strict=True):
            raw, text = raw + self._source[start:end], text + data
            section ^= kind is None
            if not section:
                token = Token(kind or Kind.TEXT, raw.decode("utf-8"), text, name, attributes)
                if token.kind is Kind.END and not token.raw:  # <x/>
                    token = found.pop()._replace(kind=Kind.EMPTY)
                found.append(token)
                raw, text = b"", ""
        return found[1:-1]

    def _note(self, kind: Kind | None, name: str = "", text: str = "", attributes: Any = None) -> None:
        self._events.append((self._parser.CurrentByteIndex, kind, name, text, attributes or {}))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._events and not self._depth:
            raise _Unbalanced
        self._depth += 1
        self._note(Kind.START, name, attributes=attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._note(Kind.END, name)
