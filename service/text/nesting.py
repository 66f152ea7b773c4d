"""Which tags of a text belong together, and which elements end without an end tag.

HTML lets authors leave the end tags of paragraphs, list items, cells and the like out. Such an element ends where the
standard's parser ends it: before what cannot stand in it, and with the element that it is in. An end tag closes no
element beyond the walls that the standard puts around cells, captions, templates and the like, and that of an inline
element none beyond the block that it stands in.

A tag without its counterpart by these rules is a stray one. That is also what becomes of misnested inline elements: in
``<b>one <i>two</b> three</i>`` the end of ``b`` leaves both tags of ``i`` stray. Whoever divides the text leaves stray
tags, and elements around them, where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.text.markup import Kind, MarkupError, MarkupOptions, Token

_BLOCK_NAMES = """
    address area article aside base basefont bgsound blockquote body caption center col colgroup dd details dialog
    dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
    iframe legend li link listing main map math menu meta nav noembed noframes noscript ol optgroup option p param
    plaintext pre script search section select source style summary svg table tbody td template textarea tfoot th thead
    title tr track ul xmp
"""
BLOCKS = frozenset(_BLOCK_NAMES.split())
"""Elements of HTML that stand in no sentence."""
_P_ENDERS = """
    address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp
"""
DRAWN = frozenset(("math", "svg"))
"""Drawings and formulas, in which a slash at a start tag's end makes an element without content."""
_BOXES = frozenset(("applet", "button", "marquee", "object"))  # inline, but what is in them is apart
_WALLS = frozenset(("applet", "caption", "marquee", "object", "table", "td", "template", "th"))
_STARTED = _WALLS | frozenset(("button", "math", "select", "svg"))  # beyond which a start tag ends nothing
_GRID = frozenset(("math", "svg", "table", "template"))
_RUBY = frozenset(("rb", "rp", "rt", "rtc"))
_CELLS = frozenset(("caption", "colgroup", "td", "th"))
_GROUPS = frozenset(("tbody", "tfoot", "thead"))
_ROWS = _CELLS | {"tr"}
_PARTS = _ROWS | _GROUPS
_OPTIONAL = _PARTS | _RUBY | {"dd", "dt", "li", "optgroup", "option", "p"}


@dataclass(frozen=True, slots=True)
class _Ending:
    """Elements that a start tag ends, and those beyond which it does not look for them."""

    ends: frozenset[str]
    walls: frozenset[str]


def _ending(ends: frozenset[str], walls: frozenset[str], through: str = "") -> _Ending:
    return _Ending(ends, walls - ends - frozenset(through.split()))


def _endings() -> dict[str, list[_Ending]]:
    """Per name what such a start tag ends."""
    apart = BLOCKS | _STARTED
    choices = _ending(frozenset(("optgroup", "option")), apart)
    found = {
        "li": [_ending(frozenset(("li",)), apart, "address div p")],
        "dd": [_ending(frozenset(("dd", "dt")), apart, "address div p")],
        "option": [_ending(frozenset(("option",)), apart)],
        "optgroup": [choices],
        "hr": [choices],
        "rt": [_ending(_RUBY - {"rtc"}, apart | {"ruby", "rtc"})],
        "rb": [_ending(_RUBY, apart | {"ruby"})],
        "td": [_ending(_CELLS, _GRID)],
        "tr": [_ending(_ROWS, _GRID)],
        "tbody": [_ending(_PARTS, _GRID)],
        "col": [_ending(_PARTS - {"colgroup"}, _GRID)],
    }
    alike = {"dt": "dd", "rp": "rt", "rtc": "rb", "th": "td", "thead": "tbody", "tfoot": "tbody"}
    alike |= {"caption": "tbody", "colgroup": "tbody"}
    found |= {name: found[other] for name, other in alike.items()}
    paragraph = _ending(frozenset(("p",)), _STARTED)
    return found | {name: [*found.get(name, ()), paragraph] for name in _P_ENDERS.split()}


_ENDINGS = _endings()


@dataclass(slots=True)
class Nesting:
    """How the tags of a text belong together.

    Attributes:
        partner: per token of a tag, where its counterpart stands, for ``<path/>`` where it stands itself; -1 = it has
            none.
        parent: per token, where the start tag of the element stands that it is in; -1 = in none.
        speaks: start tags of elements that text stands in directly; -1 for text in no element.
        ended: of start tags without an end tag the token that ends their element; none for those that nothing ends.
        strays: by name the end tags that close nothing, in order.
    """

    tokens: Sequence[Token]
    options: MarkupOptions
    partner: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    speaks: set[int] = field(default_factory=set)
    ended: dict[int, int] = field(default_factory=dict)
    strays: dict[str, list[int]] = field(default_factory=dict)
    _stack: list[int] = field(default_factory=list)
    _open: dict[str, int] = field(default_factory=dict)  # by name how many are in the stack

    def __post_init__(self) -> None:
        """Match the tags. Raises MarkupError."""
        self.partner = [-1] * len(self.tokens)
        elements = 0
        for place, token in enumerate(self.tokens):
            if token.kind is Kind.END:
                self._close(place, token.name)
            elif token.kind in (Kind.START, Kind.EMPTY) and not self.options.xml:
                self._make_way(place, token.name)
            self.parent.append(self._stack[-1] if self._stack else -1)
            if token.kind is Kind.TEXT and token.text.strip():
                self.speaks.add(self.parent[-1])
            elements += token.kind in (Kind.START, Kind.EMPTY)
            if token.kind is Kind.START and token.slashed and self._is_drawn(token.name):
                self.partner[place] = place
            elif token.kind is Kind.START:
                self._push(place, token.name)
        if elements > self.options.max_elements:
            raise MarkupError(f"may have at most {self.options.max_elements} elements", elements)

    def has_optional_end(self, place: int) -> bool:
        """Whether an element of HTML may be without an end tag."""
        return not self.options.xml and self.tokens[place].name in _OPTIONAL

    def is_balanced(self, first: int, last: int) -> bool:
        """Whether no tag of a range lacks its counterpart, or has it elsewhere."""
        return all(
            first <= self.partner[place] <= last
            for place in range(first, last + 1)
            if self.tokens[place].kind in (Kind.START, Kind.END)
        )

    def _is_drawn(self, name: str) -> bool:
        """Whether an element is a drawing or formula, or stands in one."""
        return name in DRAWN or any(self._open.get(one) for one in DRAWN)

    def _push(self, place: int, name: str) -> None:
        self._stack.append(place)
        self._open[name] = self._open.get(name, 0) + 1
        # At once: how far the stack is looked through is bounded by this.
        if len(self._stack) > self.options.max_depth:
            message = f"may have at most {self.options.max_depth} elements within one another"
            raise MarkupError(message, len(self._stack))

    def _close(self, place: int, name: str) -> None:
        """An end tag closes the last open element of its name, and those within, but nothing beyond a wall."""
        walls = frozenset() if self.options.xml else _walls(name)
        found = self._find(frozenset((name,)), walls - {name}, first=True)
        if found is None:
            self.strays.setdefault(name, []).append(place)
            return
        start = self._stack[found]
        self._end(found, place)
        del self.ended[start]
        self.partner[place], self.partner[start] = start, place

    def _make_way(self, place: int, name: str) -> None:
        """What cannot hold an element ends before it."""
        for ending in _ENDINGS.get(name, ()):
            found = self._find(ending.ends, ending.walls)
            if found is not None:
                self._end(found, place)

    def _find(self, names: frozenset[str], walls: frozenset[str], first: bool = False) -> int | None:
        """The level of the outermost, or of the first, open element of some names that no wall stands before."""
        if not any(self._open.get(name) for name in names):
            return None
        found = None
        for level in range(len(self._stack) - 1, -1, -1):
            name = self.tokens[self._stack[level]].name
            if name in names:
                found = level
                if first:
                    break
            elif name in walls:
                break
        return found

    def _end(self, level: int, place: int) -> None:
        """A token ends the open elements from a level on."""
        for start in self._stack[level:]:
            self._open[self.tokens[start].name] -= 1
            self.ended[start] = place
        del self._stack[level:]


def _walls(name: str) -> frozenset[str]:
    """Elements that an end tag of HTML closes nothing beyond."""
    if name in _PARTS or name == "table":
        return _GRID
    if name in BLOCKS or name in _BOXES:
        others = {"p": ("button",), "li": ("ol", "ul"), "option": ("select",), "optgroup": ("select",)}
        return _WALLS | frozenset(others.get(name, ()))
    return BLOCKS | _BOXES
