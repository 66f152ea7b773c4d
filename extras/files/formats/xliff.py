"""Translation units of XLIFF 1.2 and 2: their sources are translated, into targets that are missing or not finished.

A target stays where it has text and its state is not one that asks for a translation (``new``, ``needs-...``,
``initial``); where the file is in another target language than is asked for, all are new. New targets are marked: in
1.2 ``needs-review-translation``, in 2 ``translated``; no such unit is ``approved``. Where a translation tool has cut a
source into segments (``seg-source``), each is translated by itself, into a segment of its own.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tandem.extras.files.bounds import FileRefused, SourceFile
from tandem.extras.files.formats.encoding import Text
from tandem.extras.files.formats.passages import (
    Part,
    Parts,
    Passage,
    PassagePiece,
    PieceRole,
    has_forms,
    message,
    text_format,
)
from tandem.extras.files.formats.xml import Element, XmlRules, decode_xml, escape, read_xml
from tandem.service.text.languages import base_code

_RULES = XmlRules(paragraphs=frozenset(), inline=frozenset(("g", "mrk", "pc")), spaced=True)
_SKIPPED = ("alt-trans", "note", "header", "metadata", "originalData", "matches", "glossary")
_BEGINS, _ENDS = (
    re.compile(
        rf"""<(?:\w+:)?(?:(?:{names})\b(?:[^>]*?\s{reference}|[^>]*?\sid)="(?P<pair>[^"]*)"
        |x\b[^>]*?\sid="{sign}_(?P<name>\w+?)(?:_\d+)?")""",
        re.VERBOSE,
    )
    for names, reference, sign in (("bpt|bx|sc", "rid", "START"), ("ept|ex|ec", "(?:rid|startRef)", "CLOSE"))
)
_PRIVATE = 0xE000  # first code point that Unicode gives no character
_UNFINISHED = re.compile(r"new|initial|needs-(?:adaptation|l10n|translation)")
_APPROVED = re.compile(r"""(\sapproved\s*=\s*["'])yes""")
_STATE = re.compile(r"""(\sstate\s*=\s*["'])[^"']*""")


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = decode_xml(source.path.read_bytes(), source.ending)
    document = read_xml(text.characters, "file")
    root = next(document.elements, None)
    prefix, _, name = root.name.rpartition(":") if root else ("", "", "")
    if root is None or name != "xliff":
        raise FileRefused.wrong_type(source.ending, "no XLIFF (without an element xliff)")
    if prefix:
        _leave_out(f"{prefix}:", document)
    second = root.token.attributes.get("version", "").startswith("2")
    return text, tuple(_Xliff(source.target, second, f"{prefix}:" if prefix else "").parts(document))


def _leave_out(prefix: str, document: Element) -> None:
    """The names of elements without the prefix that a file gives XLIFF's namespace; as written they stay."""
    left = [document]
    while left:
        element = left.pop()
        left += element.elements
        element.token = element.token._replace(name=element.name.removeprefix(prefix))


read, write = text_format(_document, "xmlcharrefreplace")
"""The file with its targets filled in; everything else comes back byte for byte."""


@dataclass(frozen=True, slots=True)
class _Xliff:
    """A file's dialect.

    Attributes:
        target: language that is asked for.
        second: whether it is XLIFF 2.
        prefix: of its elements' names, with the colon.
        anew: whether every target is replaced.
    """

    target: str
    second: bool
    prefix: str = ""
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
        done = None if target is None or self.anew or _UNFINISHED.match(state) else target
        segmented = unit.find("seg-source")
        segments = dict(_segments(segmented)) if segmented else {}
        kept = dict(_segments(done)) if done and segments else {}
        finished = done and done.text.strip() and all(name in kept and kept[name].text.strip() for name in segments)
        if source is None or finished or not source.children:
            yield unit.raw
            return
        if self.second:
            yield _STATE.sub(r"\g<1>translated", unit.token.raw)
        else:
            yield _APPROVED.sub(r"\g<1>no", unit.token.raw)
        inside = tuple(self._filled(done if kept else segmented, segments, kept)) if segmented and segments else ()
        ending = f"</{self.prefix}target>"
        filled = (self._opening(target), *(inside or (Passage(tuple(_pieces(source)), _escape),)), ending)
        behind = segmented or source
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
            return f"<{self.prefix}target" + (">" if self.second else ' state="needs-review-translation">')
        raw = target.token.raw
        raw = raw if target.closing else raw.rstrip("/> ") + ">"
        if self.second:
            return raw
        stated = raw if _STATE.search(raw) else f'{raw[:-1]} state="">'
        return _STATE.sub(r"\g<1>needs-review-translation", stated)

    def _filled(
        self, element: Element | None, segments: Mapping[str, Element], kept: Mapping[str, Element]
    ) -> Iterator[Part]:
        """What a target holds: the segments that are finished as they are, a translation of each other one, in order.

        Args:
            element: target or segmented source, as which the new target is laid out.
            segments: of the source, by their names.
            kept: of the target.
        """
        found: set[str] = set()

        def laid_out(element: Element) -> Iterator[Part]:
            for child in element.children:
                if not isinstance(child, Element):
                    yield child.raw
                elif child.name != "mrk" or child.token.attributes.get("mtype") != "seg":
                    yield from (child.token.raw, *laid_out(child), child.closing)
                else:
                    name = child.token.attributes.get("mid", "")
                    found.add(name)
                    yield from segment(name, child)

        def segment(name: str, written: Element) -> Iterator[Part]:
            if name not in segments or (name in kept and kept[name].text.strip()):
                yield kept.get(name, written).raw
            else:
                raw = written.token.raw if written.closing else written.token.raw.rstrip("/> ") + ">"
                yield from (raw, Passage(tuple(_pieces(segments[name])), _escape), f"</{self.prefix}mrk>")

        if element is not None:
            yield from laid_out(element)
        for name, written in segments.items():
            if name not in found:
                yield from segment(name, written)


def _escape(text: str) -> str:
    return escape(text, spaced=True)


def _segments(element: Element) -> Iterator[tuple[str, Element]]:
    """The segments that a translation tool has cut a text into, by their names."""
    for child in element.elements:
        if child.name == "mrk" and child.token.attributes.get("mtype") == "seg":
            yield child.token.attributes.get("mid", ""), child
        else:
            yield from _segments(child)


def _pieces(source: Element) -> Iterator[PassagePiece]:
    """The source's elements, and in its texts what programs fill in.

    Forms for numbers that have elements in them are read with a private character in the place of each.
    """
    if has_forms(source.text) and any(source.elements):
        raws = {chr(_PRIVATE + number): child.raw for number, child in enumerate(source.elements)}
        marks = iter(raws)
        text = "".join(next(marks) if isinstance(child, Element) else child.text for child in source.children)
        yield from message(text, lambda part: "".join(raws.get(sign) or _escape(sign) for sign in part))
        return
    pieces = list(_RULES.pieces(source.children))
    for plain, run in groupby(_paired(pieces), key=lambda piece: piece.role is PieceRole.TEXT):
        own = list(run)  # an entity is a piece of its own
        yield from message("".join(piece.text for piece in own), _raw) if plain else own


def _raw(text: str) -> str:
    return html.escape(text, quote=False)


def _paired(pieces: Sequence[PassagePiece]) -> list[PassagePiece]:
    """The pieces with elements that begin and end a mark together as such: ``bpt``, ``bx`` and ``sc`` of XLIFF 2 with
    ``ept``, ``ex`` and ``ec``, Angular's ``x``.
    """
    found = list(pieces)
    opened: list[tuple[int, str]] = []  # by their numbers; without a name what is a mark already
    for number, piece in enumerate(pieces):
        begins, ends = _BEGINS.match(piece.raw), _ENDS.match(piece.raw)
        if piece.role is PieceRole.OPEN:
            opened.append((number, ""))
        elif piece.role is PieceRole.CLOSE:
            while opened[-1][1]:
                opened.pop()
            opened.pop()
        elif piece.role is PieceRole.KEPT and begins:
            opened.append((number, begins["pair"] or begins["name"]))
        elif piece.role is PieceRole.KEPT and ends:
            name = ends["pair"] or ends["name"]
            inner = [mark for _, mark in opened]
            if name in inner and "" not in inner[len(inner) - inner[::-1].index(name) :]:
                while opened[-1][1] != name:
                    opened.pop()
                place, _ = opened.pop()
                found[place] = found[place]._replace(role=PieceRole.OPEN)
                found[number] = found[number]._replace(role=PieceRole.CLOSE)
    return found
