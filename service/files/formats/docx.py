"""Word documents: the paragraphs of body, tables, text boxes, headers, footers, notes and comments.

The parts that hold paragraphs are edited in place with lxml, and every other member of the archive is copied as it is.
python-docx would write every part that it knows anew and reaches neither text boxes nor notes nor comments; what it is
good for is the proof in the tests that the result opens elsewhere. Text of charts and diagrams and the document's
properties are not translated. Documents embedded in a document are copied unopened, so there is nothing to nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

from service.files.bounds import Bounds, FileRefused, Segment
from service.files.formats.archive import open_archive, parse_xml, rewrite
from service.files.formats.paragraphs import paragraphs_of, stretches

_TYPES = "[Content_Types].xml"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml."
_MAIN = f"{_WORD}document.main+xml"
_PARTS = (_MAIN, *(f"{_WORD}{part}+xml" for part in ("header", "footer", "footnotes", "endnotes", "comments")))


def read(path: Path, bounds: Bounds) -> Iterator[Segment]:
    """The texts of a document's paragraphs. Raises FileRefused."""
    with open_archive(path, "docx", bounds) as archive:
        for _, root in _roots(archive, bounds):
            for paragraph in paragraphs_of(root):
                for stretch in stretches(paragraph):
                    yield from stretch.segments(bounds.markup_characters)


def write(path: Path, translations: Sequence[str], result: Path, bounds: Bounds) -> None:
    """The document with its paragraphs translated; formatting and everything else stays."""
    remaining = iter(translations)
    with open_archive(path, "docx", bounds) as archive:
        changed = {}
        for name, root in _roots(archive, bounds):
            if _translate(root, lambda: next(remaining), bounds):
                tree = root.getroottree()
                standalone = tree.docinfo.standalone
                changed[name] = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=standalone)
        rewrite(archive, changed, result)


def _translate(root: Any, following: Callable[[], str], bounds: Bounds) -> bool:
    """Put the translations in place. Returns whether there were any."""
    any_changed = False
    for paragraph in paragraphs_of(root):
        for stretch in stretches(paragraph):
            segments = stretch.segments(bounds.markup_characters)
            if segments:
                stretch.replace([following() for _ in segments], bounds.markup_characters)
                any_changed = True
    return any_changed


def _roots(archive: ZipFile, bounds: Bounds) -> Iterator[tuple[str, Any]]:
    """Member name and root element of each part that holds paragraphs, the body first."""
    left = bounds.markup_bytes
    for name in _names(archive):
        try:
            size = archive.getinfo(name).file_size
        except KeyError as error:
            raise FileRefused.broken("the document lacks a part that it lists; save it again") from error
        left -= size
        if left < 0:
            remedy = "split the document"
            raise FileRefused.too_large("bytes of XML", bounds.markup_bytes, bounds.markup_bytes - left, remedy)
        yield name, parse_xml(archive.read(name))


def _names(archive: ZipFile) -> list[str]:
    try:
        if archive.getinfo(_TYPES).file_size > 1 << 20:
            raise FileRefused.wrong_type("docx", "no Word document")
        types = parse_xml(archive.read(_TYPES))
    except KeyError as error:
        raise FileRefused.wrong_type("docx", "no Word document") from error
    found: dict[str, list[str]] = {kind: [] for kind in _PARTS}
    for entry in types.iter("{*}Override"):
        if entry.get("ContentType") in found:
            found[entry.get("ContentType")].append(entry.get("PartName", "").lstrip("/"))
    if not found[_MAIN]:
        raise FileRefused.wrong_type("docx", "no Word document, or one with macros")
    return list(dict.fromkeys(name for kind in _PARTS for name in sorted(found[kind])))
