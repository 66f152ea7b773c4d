"""A block of markup: its text, and the inline elements, breaks and kept parts that stand in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

from tandem.extras.markup.placing import Node, Placing, Role, flat
from tandem.models.text import as_read
from tandem.service.text.blocks import Pairs
from tandem.service.text.spans import Span, trim

WHITE_SPACE = " \t\n\f\r"
"""What HTML counts as white space: a run of it is shown as one space."""
_RUNS = re.compile(f"[{WHITE_SPACE}]+")
_SCRIPTS = re.compile("<su(?:b|p)(?:erscript|script)?\\b", re.IGNORECASE)
_TEMPLATE = re.compile("&lt;%.*?%&gt;")
_NOTE = re.compile(r"[^\W\d_A-Z]{3,}\Z")  # a word that no number belongs to: neither "km" nor "CO"
_SCRIPTED = 3  # letters of an index or ordinal that belong to what stands before
_WITHIN_WORDS = ("<wbr", "<!", "<?", "<span", "<a")  # what may stand within a word without parting it


@dataclass(frozen=True, slots=True)
class MarkupBlock:
    r"""Text with inline markup in it.

    Attributes:
        text: with entities resolved; in HTML white space is one space, and ``\n`` stands for each line break.
        raw: as it was written.
        nodes: the markup within, outermost.
        breaks: what each line break was written as.
        xml: whether it is XML, in which a line end is one.
        plain: whether it is text with tags in it, of which nothing is escaped.
    """

    text: str
    raw: str
    nodes: tuple[Node, ...] = ()
    breaks: tuple[str, ...] = ()
    xml: bool = False
    plain: bool = False

    @property
    def has_markup(self) -> bool:
        """Whether it matters which words belong together: not where all of them are wrapped."""
        nodes, words = self.nodes, trim(self.text, 0, len(self.text))
        while len(nodes) == 1 and nodes[0].role is Role.ELEMENT and Span(nodes[0].start, nodes[0].end) == words:
            nodes = nodes[0].children
        return bool(nodes)

    @property
    def kept(self) -> tuple[Span, ...]:
        """Parts of the text that are to come back as they are, in order."""
        return tuple(Span(node.start, node.end) for node in flat(self.nodes) if node.role is Role.KEPT)

    def render(self, translation: str, pairs: Pairs = ()) -> str:
        """The block's markup with its translation; as it was written where the text is the same.

        Every tag of the block comes back once, and they nest as before. An element is put around the words that are
        aligned with its own; where nothing is known of those, around the words at the same place. What is kept comes
        back as it was written: in the place of its text where the translation has it, else after the word before it.

        Args:
            translation: of ``text``, with its line ends.
            pairs: aligned words: characters (start, end) of ``text`` and of the translation.
        """
        if as_read(translation) == as_read(self.text):
            return self.raw
        placing = Placing(self.text, translation, self.nodes, pairs)
        return _Writing(self, translation, placing, iter(self.breaks)).markup()


class BlockBuilder:
    """Puts a block together from its tokens; every element that is opened must be closed."""

    def __init__(self, xml: bool) -> None:
        self._xml = xml
        self._parts: list[str] = []
        self._length = 0
        self._last = "\n"  # the last character written
        self._own: list[str] = []
        self._levels: list[list[Node]] = [[]]
        self._open: list[Node] = []
        self._breaks: list[str] = []
        self._count = 0
        self._dividing: Node | None = None
        self._point: Node | None = None  # what has no text, directly in front
        self._touching: Node | None = None  # the element that was opened last directly behind another one
        self._put: set[int] = set()  # places at which a space was put between two words
        self._dropped: dict[int, int] = {}  # places at which a space is left out, with the number of nodes before

    @property
    def own_text(self) -> str:
        """What there is to translate."""
        return "".join(self._own)

    def write(self, text: str) -> None:
        """Text between tags."""
        self._point = None if text else self._point
        self._own.append(text)
        self._append(text if self._xml else _RUNS.sub(" ", text))

    def open(self, tag: str) -> None:
        """The start tag of an element that has an end tag."""
        self._point = None
        node = self._node(Role.ELEMENT, tag)
        worded = (one for one in reversed(self._levels[-1]) if one.start < one.end or one.role is not Role.ELEMENT)
        before = next(worded, None)  # empty ones part no words
        touches = not self._xml and before is not None and before.role is Role.ELEMENT and before.end == self._length
        if before and touches and self._length - before.start > 1 and self._last.isalnum():
            self._touching = node
        self._open.append(node)
        self._levels.append([])

    def close(self, tag: str) -> None:
        """The end tag of the element opened last."""
        self._point = None
        children = tuple(self._levels.pop())
        if self._touching is not None and self._touching.order == self._open[-1].order:
            self._touching = None  # there is nothing in it
        node = self._open.pop()._replace(closing=tag, end=self._length, children=children)
        self._levels[-1].append(self._object(node) or node)

    def _object(self, node: Node) -> Node | None:
        """An element as one thing that is kept, where it has signs alone, or is a raised or lowered number."""
        text = "".join(self._parts)[node.start : node.end]
        scripted = bool(_SCRIPTS.match(node.opening))
        if text != text.strip() or not text:
            return None
        attached = scripted and len(text) <= _SCRIPTED and "".join(self._parts)[: node.start][-1:].isalnum()
        if not attached and any(one.isalpha() or (one.isdigit() and not scripted) for one in text):
            return None
        inner = escape(text, quote=False)
        if node.children:
            child = node.children[0]
            if len(node.children) > 1 or (child.start, child.end) != (node.start, node.end):
                return None
            inner = child.opening if child.role is Role.KEPT else f"{child.opening}{inner}{child.closing}"
            if child.children:
                return None
        kept = node._replace(role=Role.KEPT, opening=node.opening + inner + node.closing, closing="", children=())
        before = "".join(self._parts)[: node.start]
        if not scripted or any(map(str.isalpha, text)) or not _NOTE.search(before):
            return kept
        self._parts, self._length, self._last = [before], node.start, before[-1]  # it is no part of the word
        return kept._replace(role=Role.POINT, end=node.start)

    def keep(self, raw: str, text: str) -> None:
        """What comes back as it was written, and its text: empty for what has none to be read."""
        node = self._node(Role.POINT, raw)
        shown = _RUNS.sub(" ", text).strip()
        if shown:
            self._append(shown)
            self._point = None
            self._levels[-1].append(node._replace(role=Role.KEPT, start=self._length - len(shown), end=self._length))
            return
        node = node._replace(divides=self._last.isalnum() and not raw.startswith(_WITHIN_WORDS))
        if self._point and self._point.divides == node.divides:
            node = self._levels[-1].pop()._replace(opening=self._point.opening + raw)  # they stand side by side
        self._point, self._dividing = node, node if node.divides else self._dividing
        self._levels[-1].append(node)

    def end_line(self, raw: str) -> None:
        """A line break."""
        self._point = None
        self._append("\n")
        self._breaks.append(raw)

    def block(self, raw: str) -> MarkupBlock:
        """The block that was written so."""
        whole = "".join(self._parts)
        text = whole if self._xml else whole.rstrip(" ")
        nodes = tuple(self._settled(node, text, whole) for node in self._levels[0])
        return MarkupBlock(text, raw, nodes, tuple(self._breaks), self._xml)

    def _node(self, role: Role, raw: str) -> Node:
        self._count += 1
        return Node(role, raw, self._length, self._length, self._count)

    def _append(self, text: str) -> None:
        if self._dividing is not None and self._dividing.start == self._length and text[:1].isalnum():
            self._put.add(self._length)
            text = f" {text}"  # what stands between words parts them
        self._dividing = None if text else self._dividing
        if self._touching is not None and text:
            text = self._part(self._touching, text)
            self._touching = None
        if not self._xml and self._last in " \n":
            if text.startswith(" "):
                self._dropped[self._length] = self._count
            text = text.removeprefix(" ")
        if text:
            self._parts.append(text)
            self._length += len(text)
            self._last = text[-1]

    def _part(self, node: Node, text: str) -> str:
        """The first text of an element behind another: with a space between their words, which are two."""
        words = node.start == self._length and text[:2].isalnum() and len(text) > 1
        if not words or not (text[0].isupper() or not node.opening.startswith(_WITHIN_WORDS)):
            return text
        self._open = [one._replace(divides=one.divides or one.order == node.order) for one in self._open]
        return f" {text}"

    def _settled(self, node: Node, text: str, whole: str) -> Node:
        """A node with its span cut to the words in it; an element without words is a point. ``whole``: the text before
        white space was cut off its end."""
        start, end = min(node.start, len(text)), min(node.end, len(text))
        before = whole[node.start - 1].isspace() if start else not text[:1].isspace()
        after = end == len(text) or text[end].isspace() or self._dropped.get(end, -1) >= node.order
        span = trim(text, start, end)
        if node.role is Role.ELEMENT and span.start < span.end:
            children = tuple(self._settled(child, text, whole) for child in node.children)
            around = text[span.start - 1 : span.start] == "\xa0", text[span.end : span.end + 1] == "\xa0"
            within = start < span.start and around[0], span.end < end and around[1]
            return node._replace(start=span.start, end=span.end, children=children, spaced=within)
        if node.role is Role.KEPT:
            return node._replace(spaced=(before, after))
        point = Node(Role.POINT, _hollow(node), start, start, node.order, spaced=(before, after))
        return point._replace(spaced=(False, False), divides=True) if node.divides and start in self._put else point


def _hollow(node: Node, elsewhere: Collection[int] = ()) -> str:
    """A node without the text in it, and without the nodes (by their order) that are written elsewhere."""
    inside = "".join(_hollow(child, elsewhere) for child in node.children if child.order not in elsewhere)
    return node.opening + inside + node.closing


@dataclass(slots=True)
class _Writing:
    """One translation of a block, being written."""

    block: MarkupBlock
    text: str
    placing: Placing
    breaks: Iterator[str]

    def markup(self) -> str:
        """All of it; line breaks that the translation has no place for stand at its end."""
        return self._inside(self.block.nodes, Span(0, len(self.text))) + "".join(self.breaks)

    def _inside(self, nodes: Sequence[Node], span: Span) -> str:
        """Some of the translation with the markup of those nodes in it."""
        found = {node.order for node in self.placing.kept}
        placed = [(self.placing.spans[node.order], node) for node in nodes if node.order not in found]
        parts: list[str] = []
        done, closed = span.start, -1  # where the last element with words ends
        last: Node | None = None  # that one
        for place, node in sorted(placed, key=lambda one: (one[0].start, one[1].order)):
            if place.end > place.start:
                place = self._with_spaces(node, place, Span(done, span.end))
                glued = node.divides and done == closed and self.text[done : place.start] == " "  # it was put there
                between = "" if glued else self._words(done, place.start)
                if between == " " and last and self.block.text[last.end : node.start] == "\xa0":
                    between = self._lines("\xa0")
                parts += [between, node.opening]
                parts.append(self._inside(node.children, place))
                parts.append(node.closing)
                done = closed = place.end
                last = node
            else:
                if node.role is Role.ELEMENT:  # whose words are gone
                    node = node._replace(spaced=(False, False))
                start = self._after_space(max(place.start, done), span) if node.spaced[0] else max(place.start, done)
                parts += [self._words(done, start), self._point(node, start)]
                spaced = node.role is Role.POINT and node.divides  # a space was put there for it
                done = start + (spaced and self.text[start : start + 1] == " ")
        return "".join([*parts, self._words(done, span.end)])

    def _with_spaces(self, node: Node, place: Span, within: Span) -> Span:
        """An element's place with the no-break spaces beside it that it has itself, as between an icon and a label."""
        before, after = self.text[within.start : place.start], self.text[place.end : within.end]
        start = place.start - node.spaced[0] * (len(before) - len(before.rstrip("\xa0")))
        return Span(start, place.end + node.spaced[1] * (len(after) - len(after.lstrip("\xa0"))))

    def _after_space(self, place: int, span: Span) -> int:
        return place + 1 if place < span.end and self.text[place] == " " else place

    def _point(self, node: Node, place: int) -> str:
        """Markup without text, with white space on those sides where it had some."""
        before = node.spaced[0] and place > 0 and not self.text[place - 1].isspace()
        after = node.spaced[1] and place < len(self.text) and not self.text[place].isspace()
        kept = {other.order for other in self.placing.kept}  # stand where their text does
        return (" " if before else "") + _hollow(node, kept) + (" " if after else "")

    def _words(self, start: int, end: int) -> str:
        """Some of the translation, escaped, with line breaks and what is kept as they were written."""
        parts: list[str] = []
        for node in self.placing.kept:
            place = self.placing.spans[node.order]
            if start <= place.start and place.end <= end:
                parts += [self._lines(self.text[start : place.start]), node.opening]
                start = place.end
        return "".join([*parts, self._lines(self.text[start:end])])

    def _lines(self, text: str) -> str:
        if self.block.plain:
            return text
        escaped = escape(text, quote=False)
        if "<%" in self.block.raw:  # of a template; no element begins so
            escaped = _TEMPLATE.sub(lambda match: unescape(match[0]), escaped)
        if self.block.xml:
            return escaped
        first, *others = escaped.replace("\xa0", "&nbsp;").split("\n")
        return first + "".join(next(self.breaks, " ") + line for line in others)
