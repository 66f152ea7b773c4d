"""PDF: the text layer, paragraph by paragraph, as a Word document. Layout, pictures and tables do not come along.

A PDF says where letters stand, not what a paragraph is: lines are joined by their lengths and ends. Scanned pages have
no text layer, and are refused: recognising letters in pictures is another program's work.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from tandem.extras.documents.archive import encrypted
from tandem.extras.files.bounds import FileRefused, Segment, SourceFile
from tandem.extras.files.formats.encoding import other_type
from tandem.extras.files.formats.xml import escape
from tandem.service.text.layout import is_translatable

_END = re.compile(r"[.!?:;。！？]['\"”’»)\]]*$")
_ITEM = re.compile(r"(?:[-–•▪◦*]|\d{1,3}[.)]|\(?[a-z][.)])\s")
_FULL = 0.7  # of the page's longest line: a shorter one that ends like a sentence ends a paragraph
_MOST_PAGES = 2_000
_SCHEMA = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MEMBERS = {
    "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_SCHEMA}/package/2006/content-types">'
    f'<Default Extension="rels" ContentType="{_TYPE}-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_TYPE}-officedocument.wordprocessingml.document.main+xml"/>'
    "</Types>",
    "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_SCHEMA}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{_SCHEMA}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


def read(source: SourceFile) -> Iterator[Segment]:
    """The paragraphs of all pages. Raises FileRefused."""
    return (Segment(text) for page in _pages(source) for text in page if is_translatable(text))


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """A Word document of the translated paragraphs; each page begins on a new one."""
    remaining = iter(translations)
    written = []
    for number, page in enumerate(_pages(source)):
        for place, text in enumerate(page):
            new = escape(next(remaining)) if is_translatable(text) else escape(text)
            broken = "<w:pPr><w:pageBreakBefore/></w:pPr>" if number and not place else ""
            written.append(f'<w:p>{broken}<w:r><w:t xml:space="preserve">{new}</w:t></w:r></w:p>')
    space = f"{_SCHEMA}/wordprocessingml/2006/main"
    body = f'{_HEAD}<w:document xmlns:w="{space}"><w:body>{"".join(written)}</w:body></w:document>'
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*_MEMBERS.items(), ("word/document.xml", body)):
            archive.writestr(name, content)


def _pages(source: SourceFile) -> list[list[str]]:
    """The paragraphs of each page."""
    with source.path.open("rb") as file:
        head = file.read(1024)
    if b"%PDF-" not in head:
        raise FileRefused.wrong_type("pdf", other_type(head) or "no PDF document")
    try:
        reader = PdfReader(source.path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise encrypted()
        count = len(reader.pages)
        if count > _MOST_PAGES:
            raise FileRefused.too_large("pages", _MOST_PAGES, count, "split it")
        pages = [_paragraphs(page.extract_text()) for page in reader.pages]
    except DependencyError as error:
        raise encrypted() from error
    except NotImplementedError as error:
        message = "the PDF is encrypted or packed in a way that is not read; save it again without protection"
        raise FileRefused.broken(message) from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise FileRefused.broken("the PDF is damaged and cannot be read; save it again with its own program") from error
    if not any(is_translatable(text) for page in pages for text in page):
        raise FileRefused.broken("the PDF has no text layer, as scanned pages have none; recognise its text first")
    return pages


def _paragraphs(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    full = _FULL * max(map(len, lines), default=0)
    found: list[str] = []
    open_ = False  # whether the last paragraph goes on
    for line in lines:
        if not line:
            open_ = False
        elif not open_ or _ITEM.match(line):
            found.append(line)
        elif found[-1].endswith("-") and found[-1][-2:-1].isalpha() and line[0].islower():
            found[-1] = found[-1][:-1] + line
        else:
            found[-1] += " " + line
        open_ = bool(line) and len(line) >= full and (len(line) >= full / _FULL * 0.85 or not _END.search(line))
    return found
