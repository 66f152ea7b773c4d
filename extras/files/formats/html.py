"""Web pages: each block of text is a segment, with the markup within it, and so is each text of attributes that readers
see or hear; everything else comes back byte for byte.

The page's own word about its encoding counts, as it does for browsers. What that encoding cannot write, a translation
writes as character references.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.extras.files.bounds import FileRefused, Segment, SourceFile
from tandem.extras.files.formats.encoding import ENCODINGS, Text, read_text
from tandem.extras.files.formats.passages import Following, Part, Parts, rendered, segments_of
from tandem.extras.files.formats.proofing import in_page
from tandem.extras.markup.attributes import said_in, with_said
from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.inline import MarkupBlock
from tandem.service.text.blocks import MarkupError, MarkupOptions

_DECLARED = re.compile(rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_HEAD = 4096  # bytes in which a page may name its encoding; browsers look at 1024
_OPTIONS = MarkupOptions(max_elements=200_000)


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of HTML as a part of a file. One that is too long for its markup to be carried over is cut as text."""

    block: MarkupBlock

    @property
    def raw(self) -> str:
        """It as it was written."""
        return self.block.raw

    def segments(self, limit: int) -> Iterator[Segment]:
        """Its markup, or its text."""
        yield Segment(self.block.raw, markup=True) if self._is_markup(limit) else Segment(self.block.text)

    def render(self, following: Following, limit: int) -> str:
        """It, translated."""
        new = following()
        return new if self._is_markup(limit) else self.block.render(new)

    def _is_markup(self, limit: int) -> bool:
        return self.block.has_markup and len(self.block.raw) <= limit


def page_parts(page: str) -> Iterator[Part]:
    """The parts of HTML. Raises MarkupError."""
    parts = HtmlDocument.parse(page, _OPTIONS).parts
    return (part if isinstance(part, str) else PageBlock(part) for part in parts)


def read(source: SourceFile) -> Iterator[Segment]:
    """The blocks of a page, and what it says in attributes. Raises FileRefused."""
    parts, said = _read(_text(source).characters)
    yield from segments_of(parts, source.bounds.markup_characters)
    yield from map(Segment, said)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The page with them translated, in its encoding."""
    text = _text(source)
    parts, said = _read(text.characters)
    remaining = iter(translations)
    page = rendered(parts, lambda: next(remaining), source.bounds.markup_characters)
    page = in_page(with_said(page, dict(zip(said, remaining, strict=True)), _OPTIONS), source.target)
    result.write_bytes(text.bytes_of(page, "xmlcharrefreplace"))


def _read(page: str) -> tuple[Parts, list[str]]:
    """A page's parts, and what it says in attributes."""
    try:
        return tuple(page_parts(page)), said_in(page, _OPTIONS)
    except MarkupError as error:
        message = f"the page {error}, and has {error.value} or more; split it, or save it again with less markup"
        raise FileRefused("file_too_complex", message) from error


def _text(source: SourceFile) -> Text:
    with source.path.open("rb") as file:
        head = file.read(_HEAD)
    declared = _DECLARED.search(head)
    marked = head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE))
    if declared is None or marked:
        return read_text(source)
    label = declared[1].decode("ascii")
    try:
        encoding = ENCODINGS[codecs.lookup(label).name]
    except (LookupError, ValueError) as error:
        message = f"the page says that it is written in {label}, which is not read; save it as UTF-8"
        raise FileRefused.broken(message) from error
    return read_text(source, encoding)
