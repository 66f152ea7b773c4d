"""TMX 1.4: translation memories as other tools read and write them.

Read with lxml, an event at a time, and nothing of what an XML document may pull in or blow up: entities are refused.
translate-toolkit reads TMX too, whole and with a dozen other formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import BinaryIO, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from lxml import etree  # type: ignore[import-untyped]

from tandem.models.errors import TandemError
from tandem.service.text.languages import MAX_CODE_LENGTH, base_code

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ANY = "*all*"  # TMX's word for a memory without one source language
_MAX_ELEMENTS = 10_000  # of a unit, and of what stands before one: so much is in memory at a time
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut", "sub"))  # markup of some other format, which is no text


class TmxError(TandemError):
    """A file is no TMX, or not one that is read here."""


class TmxPair(NamedTuple):
    """A text and its translation; languages as the file has them."""

    source: str
    target: str
    text: str
    translation: str


def read_tmx(file: BinaryIO, source: str = "", target: str = "") -> Iterator[TmxPair]:
    """The pairs of a memory, in order; see ``read_units``."""
    return chain.from_iterable(read_units(file, source, target))


def read_units(file: BinaryIO, source: str = "", target: str = "") -> Iterator[list[TmxPair]]:
    """The pairs of each unit of a memory, in order; none of a unit that lacks one of the languages.

    Args:
        file: TMX of any version, in any encoding that XML may have.
        source: language of the texts; empty = the one that the file names as its source.
        target: language of the translations; empty = every other one.

    Raises:
        TmxError: it is no TMX, is broken, declares entities, has no body or a huge unit, or names no source language
            where none is given.
    """
    events = etree.iterparse(
        file, events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    header, seen, body, held = "", False, False, 0
    try:
        for event, element in events:
            if event == "start":
                if not seen:
                    seen = _check_root(element)
                body = body or element.tag == "body"
                held += 1
                if held > _MAX_ELEMENTS:
                    raise TmxError(f"a unit of the TMX may hold at most {_MAX_ELEMENTS} elements, and one holds more")
            elif element.tag == "header":
                header = _code(element, "srclang")
            elif element.tag == "tu":
                yield list(_pairs(element, source or _code(element, "srclang") or header, target))
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
                held = 0
    except etree.XMLSyntaxError as error:
        raise TmxError(f"the TMX cannot be read as XML: {error.msg}") from error
    if not body:
        raise TmxError("the TMX has no <body>, in which its units would stand: export it again, whole")


def write_tmx(pairs: Iterable[tuple[TmxPair, float]], version: str) -> Iterator[str]:
    """A memory as TMX 1.4, piece by piece.

    Args:
        pairs: each with the time of its last change, in seconds since 1970.
        version: of the program that writes.
    """
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="Tandem" creationtoolversion={quoteattr(version)} segtype="sentence" o-tmf="Tandem"'
        f' adminlang="en" srclang="{_ANY}" datatype="plaintext"/>\n<body>\n'
    )
    for pair, changed in pairs:
        date = datetime.fromtimestamp(changed, UTC).strftime("%Y%m%dT%H%M%SZ")
        yield (
            f'<tu srclang={quoteattr(pair.source)} changedate="{date}">'
            f"{_variant(pair.source, pair.text)}{_variant(pair.target, pair.translation)}</tu>\n"
        )
    yield "</body>\n</tmx>\n"


def _variant(language: str, text: str) -> str:
    return f"<tuv xml:lang={quoteattr(language)}><seg>{escape(text)}</seg></tuv>"


def _check_root(root: etree._Element) -> bool:
    if root.tag != "tmx":
        raise TmxError(f"the document must be TMX, but its outermost element is {str(root.tag)[:80]!r}")
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise TmxError("the TMX declares entities, which are not read here; write it without them")
    return True


def _pairs(unit: etree._Element, source: str, target: str) -> Iterator[TmxPair]:
    """The pairs of a unit; none where it lacks one of the languages."""
    if source in ("", _ANY):
        raise TmxError("the TMX names no source language: say which one is the source")
    texts: list[tuple[str, str]] = []
    for variant in unit.iterchildren("tuv"):
        segment = variant.find("seg")
        if segment is not None:
            texts.append((_code(variant, _LANGUAGE) or _code(variant, "lang"), _text(segment)))
    leading = next(((code, text) for code, text in texts if base_code(code) == base_code(source)), None)
    if leading is None:
        return
    for code, text in texts:
        wanted = not target or base_code(code) == base_code(target)
        if code and wanted and base_code(code) != base_code(source):
            yield TmxPair(leading[0], code, leading[1], text)


def _code(element: etree._Element, attribute: str) -> str:
    """A language code; what is too long to be one stays so."""
    return str(element.get(attribute, ""))[: MAX_CODE_LENGTH + 1]


def _text(segment: etree._Element) -> str:
    """A segment's text without the codes in it; what is highlighted is text."""
    parts = [segment.text or ""]
    for child in segment:
        if isinstance(child, etree._Entity):
            raise TmxError(f"the TMX uses the entity {child.text[:80]}, which is not read here; write it without them")
        if isinstance(child.tag, str) and child.tag not in _CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)
