"""Web pages: each block of text is a segment, with the markup within it; everything else comes back byte for byte.

The page's own word about its encoding counts, as it does for browsers. What that encoding cannot write, a translation
writes as character references.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tandem.extras.files.bounds import Bounds, FileRefused, Segment, SourceFile
from tandem.extras.files.formats.encoding import ENCODINGS, Text, read_text
from tandem.extras.files.formats.proofing import in_page
from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.inline import MarkupBlock
from tandem.service.text.blocks import MarkupError, MarkupOptions

_DECLARED = re.compile(rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_HEAD = 4096  # bytes in which a page may name its encoding; browsers look at 1024
_OPTIONS = MarkupOptions(max_elements=200_000)


def read(source: SourceFile) -> Iterator[Segment]:
    """The blocks of a page. Raises FileRefused."""
    for block in _document(_text(source)).blocks:
        if _as_markup(block, source.bounds):
            yield Segment(block.raw, markup=True)
        else:
            yield Segment(block.text)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The page with its blocks translated, in its encoding."""
    text = _text(source)
    document = _document(text)
    pairs = zip(document.blocks, translations, strict=True)
    blocks = [new if _as_markup(block, source.bounds) else block.render(new) for block, new in pairs]
    page = in_page(document.render(blocks), source.target)
    result.write_bytes(text.bytes_of(page, "xmlcharrefreplace"))


def _as_markup(block: MarkupBlock, bounds: Bounds) -> bool:
    """Whether its markup is carried over word by word; a block that is too long for that is cut as plain text."""
    return block.has_markup and len(block.raw) <= bounds.markup_characters


def _document(text: Text) -> HtmlDocument:
    try:
        return HtmlDocument.parse(text.characters, _OPTIONS)
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
