"""Books: the pages of an EPUB and its tables of contents. Fonts, pictures, styles and scripts are copied as they are.

The book's language becomes the one that it is translated into. Its title and description are translated, as its table
of contents has them, and what its pictures show; other facts about it stay.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from html.entities import html5
from typing import Any
from urllib.parse import unquote

from tandem.extras.documents.archive import Package, encrypted, package_format, parse_xml
from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.formats.encoding import Text
from tandem.extras.files.formats.passages import Part, Parts, Passage, PassagePiece, PieceRole
from tandem.extras.files.formats.xml import XmlRules, decode_xml, escape, read_xml
from tandem.extras.markup.html import READINGS
from tandem.extras.markup.nesting import BLOCKS, DRAWN

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_SKIPPED = frozenset(("iframe", "object", "pre", "script", "style", "template", "textarea"))
_PAGE = XmlRules(
    paragraphs=BLOCKS - _SKIPPED - {"html", "head"},
    inline=None,
    borders=frozenset(("br", "pre", "textarea")),
    shown=frozenset(("code", "kbd", "samp", "var")),
    skipped=_SKIPPED | DRAWN,
    readings=READINGS,
    said=True,
)
_CONTENTS = XmlRules(paragraphs=frozenset(("text",)), inline=frozenset(), skipped=frozenset(("head", "docAuthor")))
_RULES = {"application/xhtml+xml": _PAGE, "application/x-dtbncx+xml": _CONTENTS}
_REFERENCE = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31};)")
_XML_REFERENCES = ("amp;", "lt;", "gt;", "quot;", "apos;")
_LANGUAGE = re.compile(r"(<dc:language\b[^>]*>)[^<]*(</dc:language>)")
_FACT = re.compile(r"(<dc:(?:title|description)\b[^>]*(?<!/)>)([^<]*)(?=</dc:)")
_ROOT = re.compile(r"<(?:html|ncx)\b[^>]*>")
_ROOT_LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*["'])[^"']*""")


def _members(package: Package) -> Iterator[tuple[str, Text, Parts]]:
    name = _package_name(package)
    raw = package.read(name)
    pages = _pages(parse_xml(raw), posixpath.dirname(name))
    if package.has(_ENCRYPTION):
        locked = parse_xml(package.read(_ENCRYPTION)).iter("{*}CipherReference")
        if {unquote(reference.get("URI", "")) for reference in locked} & {name, *(page for page, _ in pages)}:
            raise encrypted()
    text = decode_xml(raw, "epub")
    language = html.escape(package.source.target)
    yield name, text, tuple(_facts(_LANGUAGE.sub(rf"\g<1>{language}\g<2>", text.characters, count=1)))
    for page, rules in pages:
        text = decode_xml(package.read(page), "epub")
        characters = _REFERENCE.sub(_character, text.characters)
        root = _ROOT.search(characters)
        if root:
            tag = _ROOT_LANGUAGE.sub(rf"\g<1>{language}", root[0])
            characters = characters[: root.start()] + tag + characters[root.end() :]
        yield page, text, tuple(rules.parts(read_xml(characters, f"page {page}")))


read, write = package_format(_members)
"""The book with its pages translated; everything else stays."""


def _package_name(package: Package) -> str:
    if package.has(_CONTAINER):
        for root in parse_xml(package.read(_CONTAINER)).iter("{*}rootfile"):
            return str(root.get("full-path", ""))
    raise FileRefused.wrong_type("epub", "no EPUB book")


def _facts(characters: str) -> Iterator[Part]:
    """What the book says of itself."""
    done = 0
    for fact in _FACT.finditer(characters):
        start, end = fact.span(2)
        yield characters[done:start]
        yield Passage((PassagePiece(PieceRole.TEXT, fact[2], html.unescape(fact[2])),), escape)
        done = end
    yield characters[done:]


def _pages(root: Any, folder: str) -> list[tuple[str, XmlRules]]:
    """Name of each page, in the order in which they are read, the tables of contents last."""
    items = {item.get("id"): item for item in root.iter("{*}item")}
    order = [items[reference.get("idref")] for reference in root.iter("{*}itemref") if reference.get("idref") in items]
    found: dict[str, XmlRules] = {}
    for item in (*order, *items.values()):
        if item.get("media-type") in _RULES:
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            found.setdefault(name, _RULES[item.get("media-type")])
    return list(found.items())


def _character(reference: re.Match[str]) -> str:
    """HTML's named characters, which XML knows only by a document type of long ago, as themselves."""
    return reference[0] if reference[1] in _XML_REFERENCES else html5.get(reference[1], reference[0])
