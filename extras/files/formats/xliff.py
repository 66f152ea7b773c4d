"""Translation units of XLIFF 1.2 and 2: their sources are translated, into targets that are missing or not finished.

A target stays where it has text and its state is not one that asks for a translation (``new``, ``needs-...``,
``initial``); where the file is in another target language than is asked for, all are new. New targets are marked: in
1.2 ``needs-review-translation``, in 2 ``translated``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from extras.files.bounds import FileRefused, SourceFile
from extras.files.formats.encoding import Text
from extras.files.formats.passages import (
    Part,
    Parts,
    Passage,
    PassagePiece,
    PieceRole,
    message,
    text_format,
)
from extras.files.formats.xml import Element, XmlRules, decode_xml, escape, read_xml
from service.text.languages import base_code

_RULES = XmlRules(paragraphs=frozenset(), inline=frozenset(("g", "mrk", "pc")), spaced=True)
_SKIPPED = ("alt-trans", "note", "header", "metadata", "originalData", "matches", "glossary")
_UNFINISHED = re.compile(r"new|initial|needs-(?:adaptation|l10n|translation)")
_STATE = re.compile(r"""(\sstate\s*=\s*["'])[^"']*""")


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = decode_xml(source.path.read_bytes(), source.ending)
    document = read_xml(text.characters, "file")
    root = document.find("xliff")
    if root is None:
        raise FileRefused.wrong_type(source.ending, "no XLIFF (without an element xliff)")
    second = root.token.attributes.get("version", "").startswith("2")
    return text, tuple(_Xliff(source.target, second).parts(document))


read, write = text_format(_document, "xmlcharrefreplace")
"""The file with its targets filled in; everything else comes back byte for byte."""


@dataclass(frozen=True, slots=True)
class _Xliff:
    """A file's dialect.

    Attributes:
        target: language that is asked for.
        second: whether it is XLIFF 2.
        anew: whether every target is replaced.
    """

    target: str
    second: bool
    anew: bool = False

    def parts(self, element: Element) -> Iterator[Part]:
        stays = element.token.attributes.get("translate") == "no" or element.name in _SKIPPED
        if element.name == ("segment" if self.second else "trans-unit") and not stays:
            yield from self._unit(element)
            return
        name = "trgLang" if self.second else "target-language"
        language = element.token.attributes.get(name)
        inner = self if not language else replace(self, anew=base_code(language) != base_code(self.target))
        yield inner._named(element.token.raw, name, language, element.name)
        for child in element.children:
            yield from inner.parts(child) if isinstance(child, Element) and not stays else (child.raw,)
        yield element.closing

    def _named(self, raw: str, name: str, language: str | None, element: str) -> str:
        """A tag; that of the file names the language that it is translated into."""
        value = f'{name}="{html.escape(self.target)}"'
        if language is None and element == ("xliff" if self.second else "file"):
            return f"{raw[:-1]} {value}>"
        return re.sub(rf"""\b{name}\s*=\s*["'][^"']*["']""", value, raw) if self.anew else raw

    def _unit(self, unit: Element) -> Iterator[Part]:
        source, target = unit.find("source"), unit.find("target")
        state = (unit if self.second else target or unit).token.attributes.get("state", "")
        finished = target and target.text.strip() and not _UNFINISHED.match(state)
        if source is None or (finished and not self.anew):
            yield unit.raw
            return
        yield _STATE.sub(r"\g<1>translated", unit.token.raw) if self.second else unit.token.raw
        filled = (self._opening(target), Passage(tuple(_pieces(source)), _escape), "</target>")
        behind = unit.find("seg-source") or source
        for child in unit.children:
            if child is target:
                yield from filled
                continue
            yield child.raw
            if child is behind and target is None:
                yield from filled
        yield unit.closing

    def _opening(self, target: Element | None) -> str:
        if target is None:
            return "<target>" if self.second else '<target state="needs-review-translation">'
        raw = target.token.raw
        raw = raw if target.closing else raw.rstrip("/> ") + ">"
        return raw if self.second else _STATE.sub(r"\g<1>needs-review-translation", raw)


def _escape(text: str) -> str:
    return escape(text, spaced=True)


def _pieces(source: Element) -> Iterator[PassagePiece]:
    """The source's elements, and in its texts what programs fill in."""
    for piece in _RULES.pieces(source.children):
        if piece.role is not PieceRole.TEXT:
            yield piece
            continue
        for inner in message(piece.text):
            yield inner._replace(raw=html.escape(inner.raw, quote=False))
