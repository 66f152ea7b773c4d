"""Office Open XML: Word documents, PowerPoint presentations, Excel workbooks.

Of Word the paragraphs of body, tables, text boxes, headers, footers, notes and comments; of PowerPoint those of slides,
their notes and diagrams; of Excel the texts in cells, comments and text boxes. The parts that hold them are edited in
place with lxml, and every other member of the archive is copied as it is. python-docx and its like would write every
part that they know anew and reach neither text boxes nor notes nor comments; what they are good for is the proof in the
tests that the result opens elsewhere. Text of charts, masters and layouts, formulas and their results, names of sheets
and the document's properties are not translated. Nor are the names of a table's columns, which formulas and pivot
tables refer to, nor cells whose text formulas, validations, conditional formats or filters compare with: the sheet
would show other results. Nor are Word's paragraphs in a style for code. Documents embedded in a document are copied
unopened, so there is nothing to nest.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from tandem.extras.documents.archive import Package, open_package, parse_xml, rewrite
from tandem.extras.documents.formulas import ComparedTexts, literals_of
from tandem.extras.documents.paragraphs import Stretch, paragraphs_of, stretches
from tandem.extras.documents.runs import local_name
from tandem.extras.documents.styles import TextStyle, styles_of_code
from tandem.extras.files.bounds import FileRefused, Segment, SourceFile
from tandem.extras.files.formats.proofing import in_slides, in_word

_TYPES = "[Content_Types].xml"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_MACROS = "application/vnd.ms-office.vbaproject"
_MACROS_FILE = "vbaproject.bin"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A program's documents.

    Attributes:
        program: for messages.
        main: content type of the part that every such document has.
        parts: content types of the parts with texts, in their order.
        names: content types of the parts that name columns.
    """

    program: str
    main: str
    parts: tuple[str, ...]
    names: tuple[str, ...] = ()


def _kind(program: str, format: str, main: str, parts: Sequence[str], names: Sequence[str] = ()) -> _Kind:
    of_format = (f"{_OFFICE}{format}.{part}+xml" for part in parts)
    drawn = (f"{_OFFICE}{part}+xml" for part in ("drawing", "drawingml.diagramData"))
    columns = (f"{_OFFICE}{format}.{part}+xml" for part in names)
    shown = "application/vnd.ms-office.drawingml.diagramDrawing+xml"  # a diagram as it was drawn last
    return _Kind(program, f"{_OFFICE}{format}.{main}.main+xml", (*of_format, *drawn, shown), tuple(columns))


_WORD_PARTS = ("document.main", "header", "footer", "footnotes", "endnotes", "comments")
_KINDS = {
    "docx": _kind("Word", "wordprocessingml", "document", _WORD_PARTS),
    "pptx": _kind("PowerPoint", "presentationml", "presentation", ("slide", "notesSlide")),
    "xlsx": _kind(
        "Excel", "spreadsheetml", "sheet", ("sharedStrings", "worksheet", "comments"),
        ("table", "pivotCacheDefinition"),
    ),
}  # fmt: skip
_MARKED: Mapping[str, Callable[[bytes, str], bytes]] = {"docx": in_word, "pptx": in_slides}
"""What has the language of its texts changed, and how."""
_STYLES = f"{_OFFICE}wordprocessingml.styles+xml"
_WITH_FORMULAS = tuple(f"{_OFFICE}spreadsheetml.{part}+xml" for part in ("sheet.main", "worksheet", "table"))
_FORMULA = re.compile(
    r"<(?:\w+:)?(?:f|formula|formula1|formula2|definedName|calculatedColumnFormula|totalsRowFormula)\b[^>]*>([^<]*)<"
)
_FILTER = re.compile(r'<(?:\w+:)?(?:filter|customFilter)\b[^>]*?\sval="([^"]*)"')
_COLUMNS = ("tableColumn", "cacheField")


def read(source: SourceFile) -> Iterator[Segment]:
    """The texts of a document's paragraphs. Raises FileRefused."""
    limit = source.bounds.markup_characters
    with open_package(source) as package:
        for _, _, found in _parts(package):
            for stretch in found:
                yield from stretch.segments(limit)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The document with its paragraphs translated; formatting and everything else stays."""
    remaining = iter(translations)
    with open_package(source) as package:
        changed = {}
        for name, root, found in _parts(package):
            if _translate(found, lambda: next(remaining), source.bounds.markup_characters):
                tree = root.getroottree()
                standalone = tree.docinfo.standalone
                changed[name] = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=standalone)
        for name, raw in _marked(package):
            new = _MARKED[source.ending](changed.get(name, raw), source.target)
            if new != raw:
                changed[name] = new
        rewrite(package.archive, changed, result)


def _translate(found: Iterator[Stretch], following: Callable[[], str], limit: int) -> bool:
    """Put the translations in place. Returns whether there were any."""
    any_changed = False
    for stretch in found:
        segments = stretch.segments(limit)
        translations = [following() for _ in segments]
        if translations != [segment.text for segment in segments]:
            stretch.replace(translations, limit)
            any_changed = True
    return any_changed


def _parts(package: Package) -> Iterator[tuple[str, Any, Iterator[Stretch]]]:
    """Member name, root element and texts of each part that holds paragraphs, the body first."""
    kind = _KINDS[package.source.ending]
    names = _names(package, kind)
    columns = _columns(package, [name for type_ in kind.names for name in names.get(type_, ())])
    compared = _compared(package, names) if kind is _KINDS["xlsx"] else ComparedTexts(())
    code = _styles_of_code(package, names)
    for type_ in kind.parts:
        for name in names.get(type_, ()):
            raw = package.read(name)
            if type_.endswith(".worksheet+xml") and b"inlineStr" not in raw:
                continue
            root = parse_xml(raw)
            yield name, root, _stretches(root, columns, compared, code)


def _marked(package: Package) -> Iterator[tuple[str, bytes]]:
    """Name and content of the parts that say which language texts are in."""
    kind = _KINDS[package.source.ending]
    names = _names(package, kind)
    types = (*kind.parts, _STYLES) if package.source.ending in _MARKED else ()
    for name in (name for type_ in types for name in names.get(type_, ())):
        yield name, package.archive.read(name)


def _stretches(root: Any, columns: frozenset[str], compared: ComparedTexts, code: frozenset[str]) -> Iterator[Stretch]:
    for paragraph in paragraphs_of(root):
        text = "".join(paragraph.itertext()) if columns or compared else ""
        if text and (text in columns or text in compared):
            continue
        if not (code and _style(paragraph) in code):
            yield from stretches(paragraph)


def _style(paragraph: Any) -> str:
    """The style that a paragraph of a Word document names."""
    named = paragraph.find("{*}pPr/{*}pStyle")
    return "" if named is None else _value(named)


def _value(element: Any) -> str:
    return next((str(value) for name, value in element.items() if etree.QName(name).localname == "val"), "")


def _styles_of_code(package: Package, names: dict[str, list[str]]) -> frozenset[str]:
    """The styles of a Word document that are for code, by what paragraphs call them."""
    found: dict[str, TextStyle] = {}
    for style in (style for name in names.get(_STYLES, ()) for style in parse_xml(package.archive.read(name))):
        key = next((str(value) for name, value in style.items() if etree.QName(name).localname == "styleId"), "")
        said = {local_name(child): _value(child) for child in style}
        found[key] = TextStyle(said.get("name", ""), said.get("basedOn", ""))
    return styles_of_code(found)


def _compared(package: Package, names: dict[str, list[str]]) -> ComparedTexts:
    """Texts that a workbook's formulas and filters compare cells with."""
    holding = [name for type_ in _WITH_FORMULAS for name in names.get(type_, ())]
    found: list[str] = []
    for name in holding:
        raw = package.archive.read(name).decode("utf-8", "replace")
        for formula in _FORMULA.finditer(raw):
            found += literals_of(html.unescape(formula[1]))
        found += (html.unescape(value[1]) for value in _FILTER.finditer(raw))
    return ComparedTexts(found)


def _columns(package: Package, names: Sequence[str]) -> frozenset[str]:
    """Texts that are names of columns."""
    roots = (parse_xml(package.read(name)) for name in names)
    columns = (element for root in roots for column in _COLUMNS for element in root.iter(f"{{*}}{column}"))
    return frozenset(column.get("name", "") for column in columns)


def _names(package: Package, kind: _Kind) -> dict[str, list[str]]:
    """By content type the names of the parts of that type: their own, or that of their names' ending."""
    ending = package.source.ending
    if not package.has(_TYPES) or package.archive.getinfo(_TYPES).file_size > 1 << 20:
        raise FileRefused.wrong_type(ending, f"no {kind.program} document")
    found: dict[str, list[str]] = {}
    listed = parse_xml(package.read(_TYPES))
    endings = {entry.get("Extension", "").lower(): entry.get("ContentType", "") for entry in listed.iter("{*}Default")}
    members = [name for name in package.archive.namelist() if name != _TYPES]
    types = {name: endings.get(name.rpartition(".")[2].lower(), "") for name in members}
    for entry in listed.iter("{*}Override"):
        types[entry.get("PartName", "").lstrip("/")] = entry.get("ContentType", "")
    for name, type_ in types.items():
        found.setdefault(type_, []).append(name)
    if kind.main not in found or _has_macros(members, (*endings.values(), *found)):
        raise FileRefused.wrong_type(ending, f"no {kind.program} document, or one with macros")
    return {type_: sorted(names, key=lambda name: (len(name), name)) for type_, names in found.items()}


def _has_macros(members: Iterable[str], types: Iterable[str]) -> bool:
    """Whether there are macros, or a part is declared to be some: programs look at either, in any case."""
    named = any(name.rpartition("/")[2].lower() == _MACROS_FILE for name in members)
    return named or any(type_.strip().lower() == _MACROS for type_ in types)
