"""What a paragraph of an office document holds as rows of items: texts in a format, objects, borders between rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from tandem.extras.files.formats.txt import one_line

_WORD, _DRAWING, _SHEET = (
    (f"http://schemas.openxmlformats.org/{format}/2006/main", f"http://purl.oclc.org/ooxml/{format}/main")
    for format in ("wordprocessingml", "drawingml", "spreadsheetml")
)
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CHARACTERS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
_BORDERS = frozenset(("tab", "ptab", "br", "cr"))
_FIELD = frozenset(("fldChar", "instrText", "delInstrText"))
_HINTS = frozenset(("proofErr", "lastRenderedPageBreak"))  # word processors make these anew
_WRAPPERS = frozenset(("hyperlink", "ins", "moveTo", "smartTag", "bdo", "dir"))
_RAISED = {"superscript": "sup", "subscript": "sub"}
_NOT_FORMAT = frozenset(
    ("lang", "noProof", "rPrChange", "altLang", "bmk", "dirty", "err", "kumimoji", "smtClean", "smtId")
)
_KEPT = frozenset(
    ("del", "moveFrom", "fldSimple", "bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd",
     "permStart", "permEnd", "moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart", "moveToRangeEnd",
     "oMath", "subDoc", "fld")
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Wrap:
    """What stands around runs: a link, a tracked insertion, or a field whose result the runs are.

    Attributes:
        shell: an emptied element that holds the runs; None = before and after stand beside them.
    """

    shell: Any = None
    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()

    def around(self, runs: Sequence[Any]) -> list[Any]:
        """A copy of it with other runs."""
        if self.shell is None:
            return [*map(deepcopy, self.before), *runs, *map(deepcopy, self.after)]
        shell = deepcopy(self.shell)
        shell.extend(runs)
        return [shell]


@dataclass(frozen=True, slots=True, eq=False)
class Style:
    """A format: the run that it is taken from, without its text, and what stands around."""

    run: Any
    wrap: Wrap | None
    key: tuple[int, bytes]

    @property
    def element(self) -> str:
        """The HTML element for words in it: raised and lowered ones belong to the word that they stand at."""
        for one in self.run.iter():
            value = one.get(f"{{{_WORD[0]}}}val") or one.get(f"{{{_WORD[1]}}}val") or ""
            if local_name(one) == "vertAlign" and value in _RAISED:
                return _RAISED[value]
            if local_name(one) == "rPr" and (raised := one.get("baseline", "0").rstrip("%").lstrip("+")) not in (
                "0",
                "",
            ):
                return "sub" if raised.startswith("-") else "sup"
        return "span"


@dataclass(slots=True, eq=False)
class RunItem:
    """A text in a format, or an object that stays near its word.

    Attributes:
        elements: the paragraph's children that it is made of.
        text: nothing for an object.
        style: None for an object.
    """

    elements: list[Any]
    text: str = ""
    style: Style | None = None

    @property
    def hint(self) -> bool:
        """Whether a word processor makes it anew, so that it can go."""
        return self.style is None and all(
            local_name(element) in _HINTS
            or (is_office(element, "r") and all(local_name(child) in _HINTS for child in _contents(element)))
            for element in self.elements
        )


@dataclass(slots=True, eq=False)
class RunRow:
    """Items that follow one another in one parent element, without a border between them."""

    parent: Any
    items: list[RunItem] = field(default_factory=list)


def local_name(element: Any) -> str:
    """An element's name without namespace; nothing for comments and processing instructions."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def is_office(element: Any, name: str) -> bool:
    """Whether it is an element of that name of a document, a drawing or a sheet."""
    spaces = (*_WORD, *_DRAWING, *_SHEET)
    return isinstance(element.tag, str) and any(element.tag == f"{{{space}}}{name}" for space in spaces)


def rows(parent: Any) -> Iterator[RunRow]:
    """The rows of a paragraph, and of what in it holds rows of its own. Runs with several contents are split first."""
    _split_runs(parent)
    children = list(parent)
    row, number = RunRow(parent), 0
    while number < len(children):
        end = _field_end(children, number)
        unit = children[number : end + 1]
        number = end + 1
        items = _field(unit) if len(unit) > 1 else _items(unit[0])
        if items is not None:
            row.items += items
            continue
        if row.items:
            yield row
        row = RunRow(parent)
        yield from _inner_rows(unit[0])
    if row.items:
        yield row


def build(sequence: Sequence[tuple[Style, str] | RunItem]) -> list[Any]:
    """Elements for texts in formats and for objects; neighbours in one link stand in one link."""
    elements: list[Any] = []
    runs: list[Any] = []
    wrap: Wrap | None = None
    for part in sequence:
        own = None if isinstance(part, RunItem) else part[0].wrap
        if runs and (isinstance(part, RunItem) or own is not wrap):
            elements += wrap.around(runs) if wrap else runs
            runs = []
        wrap = own
        if isinstance(part, RunItem):
            elements += part.elements
        elif part[1]:
            runs.append(_run(*part))
    return elements + (wrap.around(runs) if wrap and runs else runs)


def _run(style: Style, text: str) -> Any:
    run = deepcopy(style.run)
    node = run if is_office(run, "t") else etree.SubElement(run, _named(run, "t"))
    space = etree.QName(run).namespace
    node.text = _ILLEGAL.sub("", text if space in _SHEET else one_line(text))
    if space not in _DRAWING:  # which keeps white space anyway
        node.set(_SPACE, "preserve")
    return run


def _named(relative: Any, name: str) -> str:
    return f"{{{etree.QName(relative).namespace}}}{name}"


def _split_runs(parent: Any) -> None:
    """Give each run one kind of content, so that a text and the tab behind it can be told apart."""
    for run in [child for child in parent if is_office(child, "r")]:
        contents = [child for child in run if not is_office(child, "rPr")]
        groups: list[list[Any]] = []
        for child in contents:
            if groups and _is_text(child) and _is_text(groups[-1][-1]):
                groups[-1].append(child)
            else:
                groups.append([child])
        if len(groups) < 2:
            continue
        shell = deepcopy(run)
        for child in [child for child in shell if not is_office(child, "rPr")]:
            shell.remove(child)
        place = parent.index(run)
        for offset, group in enumerate(groups[1:], 1):
            further = deepcopy(shell)
            further.extend(group)
            parent.insert(place + offset, further)


def _is_text(child: Any) -> bool:
    return is_office(child, "t") or (local_name(child) in _CHARACTERS and is_office(child, local_name(child)))


def _contents(run: Any) -> list[Any]:
    return [child for child in run if not is_office(child, "rPr")]


def _items(element: Any) -> list[RunItem] | None:
    """What a child of a paragraph adds to a row; None = a border."""
    name = local_name(element)
    if is_office(element, "t"):  # a cell's text without formats
        return [RunItem([element], _text([element]), _style(element, None))]
    if is_office(element, "r"):
        contents = _contents(element)
        names = {local_name(child) for child in contents}
        if names & (_BORDERS | _FIELD):
            return None
        if contents and all(map(_is_text, contents)):
            return [RunItem([element], _text(contents), _style(element, None))]
        return _annotated(element) or [RunItem([element])]
    if _is_wrapper(element):
        return _wrapped(element)
    return [RunItem([element])] if name in _HINTS or name in _KEPT or not name else None


def _is_wrapper(element: Any) -> bool:
    """Whether what stands in it is text of the paragraph; of fields that are links only."""
    if is_office(element, "fldSimple"):
        return _is_link(str(element.get(_named(element, "instr"), "")))
    return local_name(element) in _WRAPPERS


def _is_link(code: str) -> bool:
    return code.strip().upper().startswith("HYPERLINK")


def _annotated(run: Any) -> list[RunItem]:
    """The text of a run that says above it how to read that, which is no part of a translation; nothing of others."""
    base = [text for child in run if is_office(child, "ruby") for text in child if is_office(text, "rubyBase")]
    items = [item for text in base for inner in text for item in _items(inner) or [RunItem([inner])]]
    if not items or not all(item.style for item in items):
        return []
    return [RunItem([run], "".join(item.text for item in items), items[0].style)]


def _text(contents: Sequence[Any]) -> str:
    """A run's text; line ends count in the cells of a sheet only."""
    text = "".join(_CHARACTERS.get(local_name(child)) or child.text or "" for child in contents)
    return text if etree.QName(contents[0]).namespace in _SHEET else one_line(text)


def _style(run: Any, wrap: Wrap | None) -> Style:
    """A run's format; the language that it was checked in and marks of the spelling checker are no part of that."""
    shell = deepcopy(run)
    for child in _contents(shell):
        shell.remove(child)
    shell.text = None
    attributes = sorted(item for properties in shell for item in properties.items() if item[0] not in _NOT_FORMAT)
    children = (child for properties in shell for child in properties if local_name(child) not in _NOT_FORMAT)
    key = b"".join(etree.tostring(child, method="c14n") for child in children) + repr(attributes).encode()
    return Style(shell, wrap, (id(wrap) if wrap else 0, key))


def _wrapped(element: Any) -> list[RunItem] | None:
    """The texts in a link or insertion, where it holds nothing else; None = it has rows of its own."""
    _split_runs(element)
    items = [
        item for child in element for item in (_items(child) if is_office(child, "r") else None) or [RunItem([child])]
    ]
    texts = [item for item in items if item.style]
    if not texts or not all(item.style or item.hint for item in items):
        return None
    shell = deepcopy(element)
    for child in list(shell):
        shell.remove(child)
    return _in_wrap(texts, Wrap(shell), [element])


def _in_wrap(items: Sequence[RunItem], wrap: Wrap, elements: list[Any]) -> list[RunItem]:
    """Texts of one wrap; the first one answers for the elements."""
    found = []
    for number, item in enumerate(items):
        found.append(RunItem(elements if number == 0 else [], item.text, _style(item.elements[0], wrap)))
    return found


def _field_kind(element: Any) -> str:
    for child in element if is_office(element, "r") else ():
        if is_office(child, "fldChar"):
            return str(child.get(_named(child, "fldCharType"), ""))
    return ""


def _field_end(children: Sequence[Any], start: int) -> int:
    """The last child of the field that begins at ``start``; ``start`` where none begins, or it ends elsewhere."""
    depth = 0
    for number in range(start, len(children)):
        kind = _field_kind(children[number])
        depth += (kind == "begin") - (kind == "end")
        if depth == 0:
            return number
    return start


def _field(unit: Sequence[Any]) -> list[RunItem]:
    """The text of a link; any other field is one object: page numbers and references come from the word processor."""
    kinds = [_field_kind(child) for child in unit]
    if "separate" in kinds and kinds.count("begin") == 1:
        border = kinds.index("separate") + 1
        code = "".join(text for child in unit[:border] for text in child.itertext())
        items = [item for child in unit[border:-1] for item in _items(child) or [RunItem([child])]]
        texts = [item for item in items if item.style]
        if _is_link(code) and texts and all(item.style or item.hint for item in items):
            return _in_wrap(texts, Wrap(before=tuple(unit[:border]), after=(unit[-1],)), list(unit))
    return [RunItem(list(unit))]


def _inner_rows(border: Any) -> Iterator[RunRow]:
    """Rows inside of a border: a link with pictures in it, a content control in the line."""
    if _is_wrapper(border):
        yield from rows(border)
    elif is_office(border, "sdt"):
        for content in border:
            if is_office(content, "sdtContent"):
                yield from rows(content)
