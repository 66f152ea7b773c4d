"""XML divided into parts by a table of elements. What is not translated comes back byte for byte."""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.formats.encoding import Text, text_of
from tandem.extras.files.formats.passages import Part, Passage, PassagePiece, PieceRole
from tandem.extras.files.formats.txt import one_line
from tandem.extras.markup import attributes
from tandem.extras.markup.scanning import Kind, Token, scan_xml
from tandem.service.text.blocks import MarkupError, MarkupOptions

_DECLARED = re.compile(rb"""^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.-]{1,40})""")
_ENCODINGS = {"utf-8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "iso-8859-1", "windows-1252": "cp1252"}
_ENTITIES = re.compile(r"<!DOCTYPE[^>\[]{0,1000}\[|<!ENTITY")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_OPTIONS = MarkupOptions(xml=True, max_elements=1_000_000)
_SPACES = re.compile(r"[ \t\r\n]+")
_REMEDY = "save it again with its own program"
_MOST_SHOWN = 200  # characters of what is kept in a sentence


@dataclass(slots=True)
class Element:
    """An element, or with an empty name the whole document."""

    token: Token
    children: list[Element | Token] = field(default_factory=list)
    closing: str = ""

    @property
    def name(self) -> str:
        """As it is written, with its prefix."""
        return self.token.name

    @property
    def raw(self) -> str:
        """As it was written."""
        return self.token.raw + "".join(child.raw for child in self.children) + self.closing

    @property
    def text(self) -> str:
        """Its text, without marks."""
        return "".join(child.text for child in self.children)

    def find(self, name: str) -> Element | None:
        """Its first child of that name."""
        return next((child for child in self.elements if child.name == name), None)

    @property
    def elements(self) -> Iterator[Element]:
        """Its children that are elements."""
        return (child for child in self.children if isinstance(child, Element))


@dataclass(frozen=True, slots=True)
class XmlRules:
    """Which elements are what; all others are passed through, and in a paragraph are kept as one thing.

    Attributes:
        paragraphs: whose text is translated, each by itself.
        inline: that stand around words of a sentence; None = all that are nothing else.
        borders: that end a text: tabs, line breaks.
        shown: kept, but their words are part of the sentence.
        skipped: in which nothing is translated.
        readings: that say how a text is read (ruby); of a translation they would be wrong, and are emptied.
        spaced: whether white space is kept as it is; else a run of it is a space.
        fixed: texts of paragraphs that stay.
        style: the attribute that names an element's style.
        raised: styles of text above or below the line, with the HTML element for it.
        verbatim: styles of elements that stay.
        computed: the attribute of elements whose text programs work out, so that it stays; none where it is empty.
        said: whether attributes for readers are translated too.
    """

    paragraphs: frozenset[str]
    inline: frozenset[str] | None
    borders: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    readings: frozenset[str] = frozenset()
    spaced: bool = False
    fixed: Container[str] = ()
    style: str = ""
    raised: Mapping[str, str] = field(default_factory=dict)
    verbatim: Container[str] = ()
    computed: str = ""
    said: bool = False

    def parts(self, element: Element) -> Iterator[Part]:
        """An element's parts. Raises RecursionError where it is nested too deeply."""
        yield from self._tag(element)
        if self._stays(element) or (element.name in self.paragraphs and element.text in self.fixed):
            yield "".join(child.raw for child in element.children)
        elif element.name in self.paragraphs:
            yield from self._stretches(element)
        else:
            for child in element.children:
                yield from self.parts(child) if isinstance(child, Element) else (child.raw,)
        yield element.closing

    def _tag(self, element: Element) -> Iterator[Part]:
        """Its start tag."""
        if not self.said or element.token.attributes.get("translate") == "no":
            yield element.token.raw
            return
        for raw, said in attributes.parts_of(element.token):
            text = PassagePiece(PieceRole.TEXT, raw, said or "")
            yield raw if said is None else Passage((text,), attributes.escape)

    def _stays(self, element: Element) -> bool:
        given = element.token.attributes
        if element.name in self.skipped or given.get("translate") == "no" or given.get("mtype") == "protected":
            return True
        if self.computed and self.computed in given:
            return True
        return element.name in self.paragraphs and given.get(self.style) in self.verbatim

    def _is_inline(self, element: Element) -> bool:
        if self.inline is not None or self._stays(element):
            return element.name in (self.inline or ()) and not self._stays(element)
        return element.name not in self.borders | self.shown | self.paragraphs | self.readings

    def _stretches(self, element: Element) -> Iterator[Part]:
        """What is in a paragraph, between its borders."""
        run: list[Element | Token] = []
        for child in element.children:
            if not self._is_border(child):
                run.append(child)
                continue
            yield from self._passage(run)
            run = []
            if isinstance(child, Element) and self._is_inline(child):
                yield child.token.raw
                yield from self._stretches(child)
                yield child.closing
            elif isinstance(child, Element):
                yield from self.parts(child)
        yield from self._passage(run)

    def _is_border(self, child: Element | Token) -> bool:
        if not isinstance(child, Element):
            return False
        if child.name in self.borders or child.name in self.paragraphs:
            return True
        return self._is_inline(child) and any(map(self._is_border, child.children))

    def _passage(self, run: Sequence[Element | Token]) -> Iterator[Part]:
        if run:
            yield Passage(tuple(self.pieces(run)), escape)

    def pieces(self, nodes: Sequence[Element | Token]) -> Iterator[PassagePiece]:
        """Some of a paragraph."""
        for node in nodes:
            if not isinstance(node, Element):
                role = PieceRole.TEXT if node.kind is Kind.TEXT else PieceRole.KEPT
                yield PassagePiece(role, node.raw, self._shown(node.text))
            elif self._is_inline(node) and node.closing:
                element = self.raised.get(node.token.attributes.get(self.style, ""), "")
                yield PassagePiece(PieceRole.OPEN, node.token.raw, element=element)
                yield from self.pieces(node.children)
                yield PassagePiece(PieceRole.CLOSE, node.closing)
            elif node.name in self.readings:
                yield PassagePiece(PieceRole.KEPT, node.token.raw + node.closing)
            elif node.name in self.shown or (self._stays(node) and node.name not in self.skipped):
                shown = self._shown(node.text).strip()
                yield PassagePiece(PieceRole.KEPT, node.raw, shown if len(shown) <= _MOST_SHOWN else "")
            else:
                yield PassagePiece(PieceRole.KEPT, node.raw, inner=tuple(self.parts(node)))

    def _shown(self, text: str) -> str:
        return text if self.spaced else _SPACES.sub(" ", text)


def escape(text: str, *, spaced: bool = False) -> str:
    """A translation as XML; ``spaced``: with its line ends."""
    return html.escape(_ILLEGAL.sub("", text if spaced else one_line(text)), quote=False)


def decode_xml(raw: bytes, name: str) -> Text:
    """A document's characters, by its mark or by its own word. Raises FileRefused."""
    declared = _DECLARED.match(raw[:400])
    label = declared[1].decode("ascii").lower() if declared else "utf-8"
    if label not in _ENCODINGS and not label.startswith("utf-16"):
        raise FileRefused.broken(f"the XML says that it is written in {label}, which is not read; save it as UTF-8")
    return text_of(raw, name, _ENCODINGS.get(label, "utf-8"))


def read_xml(characters: str, what: str = "document") -> Element:
    """A document as elements. Its declaration is kept; what it declares as entities is refused.

    Raises:
        FileRefused: it is not well-formed, declares entities, or has too many elements, or elements within one another.
    """
    if _ENTITIES.search(characters):
        raise FileRefused.broken(f"the {what} declares entities, which could pull in other files; remove them")
    try:
        tokens = scan_xml(characters, _OPTIONS)
    except MarkupError as error:
        code = "broken_file" if error.value is None else "file_too_complex"
        raise FileRefused(code, f"the {what} {error}; {_REMEDY}") from error
    root = Element(Token(Kind.OTHER, ""))
    stack = [root]
    for token in tokens:
        if token.kind is Kind.START:
            if len(stack) > _OPTIONS.max_depth:
                bound = f"the {what} may have at most {_OPTIONS.max_depth} elements within one another, and has more"
                raise FileRefused("file_too_complex", f"{bound}; {_REMEDY}")
            element = Element(token)
            stack[-1].children.append(element)
            stack.append(element)
        elif token.kind is Kind.END:
            stack.pop().closing = token.raw
        else:
            stack[-1].children.append(Element(token) if token.kind is Kind.EMPTY else token)
    return root
