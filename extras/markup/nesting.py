"""Which tags of a text belong together, and which elements end without an end tag.

HTML lets authors leave the end tags of paragraphs, list items, cells and the like out, and browsers make something of
whatever else is wrong with it. Where its elements begin and end is what turbohtml's parser says, which follows the
standard; it is shown the tags alone, without attributes and text.

A tag without its counterpart is a stray one. That is also what becomes of misnested inline elements: in
``<b>one <i>two</b> three</i>`` the end of ``b`` leaves both tags of ``i`` stray. Whoever divides the text leaves stray
tags, and elements around them, where they stand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from turbohtml import Element, Namespace, Node, parse_fragment

from tandem.extras.markup.scanning import Kind, Token
from tandem.service.text.blocks import MarkupError, MarkupOptions

_BLOCK_NAMES = """
    address area article aside base basefont bgsound blockquote body caption center col colgroup dd details dialog
    dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
    iframe legend li link listing main map math menu meta nav noembed noframes noscript ol optgroup option p param
    plaintext pre script search section select source style summary svg table tbody td template textarea tfoot th thead
    title tr track ul xmp
"""
BLOCKS = frozenset(_BLOCK_NAMES.split())
"""Elements of HTML that stand in no sentence."""
DRAWN = frozenset(("math", "svg"))
"""Drawings and formulas, in which a slash at a start tag's end makes an element without content."""
_OPTIONAL_NAMES = """
    caption colgroup dd dt li optgroup option p rb rp rt rtc tbody td tfoot th thead tr
"""
_OPTIONAL = frozenset(_OPTIONAL_NAMES.split())
_CLOSED_BY_OTHERS = _OPTIONAL - {"caption", "colgroup", "optgroup", "rb", "rp", "rt", "rtc"}  # at their next like
_MOST_LOOKED_THROUGH = 200_000_000
"""Tags times elements that may be open: the parser looks through all of these for every tag. Half a second of it."""
# The standard opens these anew after whatever closed them, so that few tags can make very many elements. Under another
# name they are inline elements like any other.
_FORMATTING_NAMES = "a b big code em font i nobr s small strike strong tt u"
_FORMATTING = frozenset(_FORMATTING_NAMES.split())
_WITHOUT_EFFECT = frozenset(("br", "img", "wbr"))  # on what is open, but in drawings and formulas: no need to show them
_TAGS = (Kind.START, Kind.EMPTY, Kind.END)


@dataclass
class Nesting:
    """How the tags of a text belong together.

    Attributes:
        partner: per token of a tag, where its counterpart stands, for ``<path/>`` where it stands itself; -1 = it has
            none.
        parent: of XML, per token, where the start tag of the element stands that it is in; -1 = in none.
        speaks: of XML, start tags of elements that text stands in directly; -1 for text in no element.
        unclosed: of HTML, start tags of elements without an end tag, and the last tag in each.
    """

    tokens: Sequence[Token]
    options: MarkupOptions
    partner: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    speaks: set[int] = field(default_factory=set)
    unclosed: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Match the tags. Raises MarkupError."""
        self.partner = [-1] * len(self.tokens)
        if self.options.xml:
            self._match_xml()
        else:
            self._match_html()

    def has_optional_end(self, place: int) -> bool:
        """Whether an element of HTML may be without an end tag."""
        return not self.options.xml and self.tokens[place].name in _OPTIONAL

    def end_of(self, place: int) -> int:
        """The tag that ends an element without an end tag; the number of tokens where nothing does."""
        if place not in self.unclosed:
            return len(self.tokens)
        after = bisect_right(self._tags, self.unclosed[place])
        return self._tags[after] if after < len(self._tags) else len(self.tokens)

    def stray_after(self, place: int) -> int:
        """The next end tag with the name of a start tag that closes nothing; the number of tokens where none is."""
        strays = self._strays.get(self.tokens[place].name, [])
        after = bisect_right(strays, place)
        return strays[after] if after < len(strays) else len(self.tokens)

    @cached_property
    def _tags(self) -> list[int]:
        """Those that begin or end an element."""
        return sorted([*self.unclosed, *(place for place, other in enumerate(self.partner) if other >= 0)])

    @cached_property
    def _strays(self) -> dict[str, list[int]]:
        """By name the end tags that close nothing, in order."""
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.kind is Kind.END and self.partner[place] < 0:
                found.setdefault(token.name, []).append(place)
        return found

    def is_balanced(self, first: int, last: int) -> bool:
        """Whether no tag of a range lacks its counterpart, or has it elsewhere."""
        return all(
            first <= self.partner[place] <= last
            for place in range(first, last + 1)
            if self.tokens[place].kind in (Kind.START, Kind.END)
        )

    def _match_xml(self) -> None:
        """XML is well-formed: an end tag belongs to the last start tag that has none yet."""
        within = [-1]
        for place, token in enumerate(self.tokens):
            if token.kind is Kind.END:
                start = within.pop()
                self.partner[place], self.partner[start] = start, place
            self.parent.append(within[-1])
            if token.kind is Kind.TEXT and token.text.strip():
                self.speaks.add(within[-1])
            if token.kind is Kind.START:
                self._bound_depth(len(within))
                within.append(place)

    def _match_html(self) -> None:
        places: dict[int, int] = {}  # by where a tag stands in what the parser is shown
        shown, length = [], 0
        left_out = frozenset() if any(token.name in DRAWN for token in self.tokens) else _WITHOUT_EFFECT
        for place, token in enumerate(self.tokens):
            if token.kind in _TAGS and token.name not in left_out:
                places[length] = place
                shown.append(_shown(token))
                length += len(shown[-1])
        if len(shown) ** 2 > _MOST_LOOKED_THROUGH:  # or else it cannot come to that
            unended = _most_unended(self.tokens)
            if unended * len(shown) > _MOST_LOOKED_THROUGH:
                self._bound_depth(max(unended, self.options.max_depth + 1))
        # Cells and rows may stand in a template without the table that they are a part of.
        root = parse_fragment("".join(shown), "template", source_locations=True)
        self._match_within(root, places, 0)

    def _match_within(self, parent: Node, places: Mapping[int, int], depth: int) -> int:
        """Match the tags in an element, and note of each that has no end tag the last tag in it. Returns the last."""
        last = -1
        for element in parent.children:
            location = element.source_location if isinstance(element, Element) else None
            # Without a place is what the standard puts in by itself, such as rows around cells.
            if not isinstance(element, Element) or location is None:
                last = max(last, self._match_within(element, places, depth))
                continue
            self._bound_depth(depth + 1)
            start = places[location.start_tag.start_offset]
            inside = max(start, self._match_within(element, places, depth + 1))
            if location.end_tag is not None:
                inside = places[location.end_tag.start_offset]
                self.partner[start], self.partner[inside] = inside, start
            elif self.tokens[start].slashed and element.namespace is not Namespace.HTML:
                self.partner[start] = start
            else:
                self.unclosed[start] = inside
            last = max(last, inside)
        return last

    def _bound_depth(self, depth: int) -> None:
        if depth > self.options.max_depth:
            raise MarkupError(f"may have at most {self.options.max_depth} elements within one another", depth)


def _most_unended(tokens: Sequence[Token]) -> int:
    """The most start tags, at any place, that have no end tag of their name yet; not of those that may have none."""
    unended: Counter[str] = Counter()
    most = total = 0
    for token in tokens:
        if token.kind is Kind.START and token.name not in _CLOSED_BY_OTHERS:
            unended[token.name] += 1
            total += 1
            most = max(most, total)
        elif token.kind is Kind.END and unended[token.name]:
            unended[token.name] -= 1
            total -= 1
    return most


def _shown(token: Token) -> str:
    name = f"{token.name}-" if token.name in _FORMATTING else token.name
    return f"</{name}>" if token.kind is Kind.END else f"<{name}{'/' * token.slashed}>"
