"""Where the markup of a sentence belongs in its translation.

An element goes around the stretch of the translation that holds most of the words aligned with its own and fewest that
are aligned with others; elements next to one another get stretches of their own, and an element within another one
within that. Where nothing is known of its words, it goes around those between the places of its neighbours, and where
nothing is known at all, around those at the same share of the sentence. Markup without text follows the word that it
followed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, pairwise
from typing import NamedTuple

from tandem.service.text.blocks import Pairs
from tandem.service.text.spans import WORD, Span, trim

_UNKNOWN = -0.1  # what a word that is aligned with nothing adds to a stretch
_MOST_PLACES = 100  # of one text, that are looked at
_LINK = re.compile(r"<a\s|<\d", re.IGNORECASE)
_CLOSING, _OPENING = frozenset(".,;:!?)]"), frozenset("([")
_CUT = re.compile(r"[$€£¥]\d|\d[$€£¥]")  # an amount, within which no element begins or ends
_LONG_ENOUGH = 4  # letters of a name that stands in both texts; shorter words of two languages may look alike


class Role(Enum):
    """What a node of a block is."""

    ELEMENT = "an element around some of the text"
    POINT = "markup without text, at a place in it"
    KEPT = "an element whose text comes back as it is"


class Node(NamedTuple):
    """Markup in a text.

    Attributes:
        opening: the start tag; of what is no element around text all of it, as it was written.
        start, end: the characters of the text that it stands for, without white space around them.
        order: nodes in the order of their start tags.
        closing: the end tag of an element around text.
        spaced: whether white space stands before and after a point; of an element, whether no-break spaces stand in it
            before and behind its words.
        divides: whether a point stands between two words without a space: they are read with one.
    """

    role: Role
    opening: str
    start: int
    end: int
    order: int
    closing: str = ""
    spaced: tuple[bool, bool] = (False, False)
    children: tuple[Node, ...] = ()
    divides: bool = False


@dataclass(slots=True)
class Placing:
    """The places of a block's nodes in a translation.

    Attributes:
        source, target: text and translation.
        nodes: the outermost nodes.
        pairs: aligned words.
        spans: by a node's order the characters of the translation that it is put around, or in the place of.
        kept: kept nodes that were found in the translation, in the translation's order.
    """

    source: str
    target: str
    nodes: Sequence[Node]
    pairs: Pairs
    spans: dict[int, Span] = field(default_factory=dict)
    kept: list[Node] = field(default_factory=list)
    _units: list[Span] = field(default_factory=list)
    _links: list[list[Span]] = field(default_factory=list)
    _free: list[bool] = field(default_factory=list)
    _readers: list[tuple[int, int, int]] = field(default_factory=list)
    _longest: int = 0
    _by_end: list[tuple[int, int]] = field(default_factory=list)
    _by_start: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_end = sorted((read[1], written[1]) for read, written in self.pairs)
        self._by_start = sorted((read[0], written[0]) for read, written in self.pairs)
        for node in flat(self.nodes):
            if node.role is Role.KEPT:
                self._find(node)
        self.kept.sort(key=lambda node: self.spans[node.order])
        self._divide()
        words = trim(self.source, 0, len(self.source))
        self._place(self.nodes, words, (0, len(self._units)))

    def _find(self, node: Node) -> None:
        """A kept node stands where its text does; of several places the one where it is expected."""
        text = self.source[node.start : node.end]
        expected = self._expected(node.start)
        taken = [self.spans[other.order] for other in self.kept]
        pattern = re.escape(text)
        if text.isdigit():  # of "10" and its exponent both texts have "106"
            digit_before = self.source[max(0, node.start - 1) : node.start].isdigit()
            digit_behind = self.source[node.end : node.end + 1].isdigit()
            pattern = ("" if digit_before else r"(?<!\d)") + pattern + ("" if digit_behind else r"(?!\d)")
        places = (Span(match.start(), match.end()) for match in re.finditer(pattern, self.target))
        free = [
            one
            for one in islice(places, _MOST_PLACES)
            if all(one.end <= span.start or span.end <= one.start for span in taken)
        ]
        if free:
            before = self.source[max(0, node.start - 1) : node.start]  # of what ends a word, here and there
            if before.isalnum():
                free = [one for one in free if self.target[: one.start].endswith(before)] or free
            self.spans[node.order] = min(free, key=lambda span: abs(span.start - expected))
            self.kept.append(node)

    def _expected(self, place: int) -> int:
        """The place in the translation of one in the source: after the word that it follows, or at the same share."""
        within = next((written[1] for read, written in self.pairs if read[0] < place < read[1]), None)
        if within is not None:
            return within
        last = bisect_right(self._by_end, (place, len(self.target))) - 1
        if last >= 0:
            return self._by_end[last][1]
        first = bisect_left(self._by_start, (place, -1))
        if first < len(self._by_start):
            return self._by_start[first][1]
        return round(place / max(1, len(self.source)) * len(self.target))

    def _divide(self) -> None:
        """The translation's units, which no element divides: words, marks, and what is kept."""
        kept = [self.spans[node.order] for node in self.kept]
        inner = sorted({border for _, written in self.pairs for border in written} | {*self._borders()})
        for match in WORD.finditer(self.target):
            start, end = match.span()
            if any(span.start < end and start < span.end for span in kept):
                continue
            cuts = inner[bisect_right(inner, start) : bisect_left(inner, end)]
            self._units += [Span(*one) for one in pairwise([start, *cuts, end])]
        self._units = sorted([*self._units, *kept])
        starts = [unit.start for unit in self._units]
        self._links = [[] for _ in self._units]
        self._free = [True] * len(self._units)
        for read, written in self.pairs:
            for number in range(max(0, bisect_right(starts, written[0]) - 1), bisect_left(starts, written[1])):
                if self._units[number].end > written[0]:
                    self._links[number].append(Span(*read))
        for node in self.kept:
            self._links[bisect_left(starts, self.spans[node.order].start)] = [Span(node.start, node.end)]
        self._readers = sorted((*link, number) for number, links in enumerate(self._links) for link in links)
        self._longest = max((end - start for start, end, _ in self._readers), default=0)

    def _borders(self) -> Iterator[int]:
        """Where the text of an element begins and ends in the translation that has it once, also as part of a word with
        hyphens ("<b>Web</b> page" is "<b>Web</b>-Seite")."""
        for node in flat(self.nodes) if "-" in self.target else ():
            text = self.source[node.start : node.end]
            if node.role is Role.ELEMENT and self._is_joined(text):
                start = self.target.index(text)
                yield from (start, start + len(text))

    def _is_joined(self, text: str) -> bool:
        """Whether the translation has a text once, with a hyphen that joins it to another word."""
        if not text or self.target.count(text) != 1:
            return False
        start = self.target.index(text)
        around = self.target[max(0, start - 1) : start] + self.target[start + len(text) :][:1]
        return "-" in around and not any(map(str.isalnum, around))

    def _place(self, nodes: Sequence[Node], words: Span, units: tuple[int, int]) -> None:
        """Place the nodes of an element (or the text) with such words, which got those units."""
        elements = [node for node in nodes if node.role is Role.ELEMENT]
        for node in elements:
            own = Span(node.start, node.end)
            whole = own == words and self._all_free(units)
            found = units if whole else self._without_marks(own, self._stretch(own, units))
            if found[0] == found[1] and _LINK.match(node.opening):
                found = self._nearest(own, units)
            if found[0] == found[1]:
                continue
            self.spans[node.order] = Span(self._units[found[0]].start, self._units[found[1] - 1].end)
            self._place(node.children, own, found)
            self._free[found[0] : found[1]] = [False] * (found[1] - found[0])
        for number, node in enumerate(nodes):
            if node.order not in self.spans:
                before = nodes[number - 1] if number else None
                touches = before is not None and before.role is Role.ELEMENT and before.end == node.start
                offset = self.spans[before.order].end if before and touches else self._offset(node, words, units)
                self.spans[node.order] = Span(offset, offset)

    def _without_marks(self, own: Span, units: tuple[int, int]) -> tuple[int, int]:
        """Units without the punctuation marks at their ends that the element has nowhere: one token may be two."""
        (first, end), text = units, self.source[slice(*own)]
        while end - first > 1 and (mark := self.target[slice(*self._units[end - 1])]) in _CLOSING and mark not in text:
            end -= 1
        while end - first > 1 and (mark := self.target[slice(*self._units[first])]) in _OPENING and mark not in text:
            first += 1
        return first, end

    def _all_free(self, units: tuple[int, int]) -> bool:
        return all(self._free[units[0] : units[1]])

    def _stretch(self, own: Span, units: tuple[int, int]) -> tuple[int, int]:
        """Units (first, end) for an element with such words; none where the translation has none for it."""
        found = self._named(own, units) or self._aligned(own, units)
        if found:
            return found
        if self.pairs:
            return self._between(own, units)
        share = len(self._units) / max(1, len(self.source))
        centre = (own.start + own.end) / 2 * share
        wanted = max(1, round((own.end - own.start) * share))
        first = round(centre - wanted / 2)
        numbers = [n for n in range(max(units[0], first), min(units[1], first + wanted)) if self._free[n]]
        return _first_run(numbers, units[0])

    def _nearest(self, own: Span, units: tuple[int, int]) -> tuple[int, int]:
        """The free word nearest to where an element is expected: a link without words cannot be followed."""
        expected = self._expected(own.start)
        words = [number for number in range(*units) if self._free[number] and self._is_word(number)]
        if not words:
            return units[0], units[0]
        nearest = min(words, key=lambda number: abs(self._units[number].start - expected))
        return nearest, nearest + 1

    def _named(self, own: Span, units: tuple[int, int]) -> tuple[int, int] | None:
        """The units that are written like the element's text, where there are just such ones."""
        text = self.source[own.start : own.end]
        short = text.isalpha() and len(text) < _LONG_ENOUGH and not self._is_joined(text)
        if short or self.target.count(text) != 1:
            return None
        start = self.target.index(text)
        before, behind = self.target[max(0, start - 1) : start], self.target[start + len(text) :][:1]
        if _CUT.match(before + text[:1]) or _CUT.match(text[-1:] + behind):
            return None  # "10 €" is no part of "€10 €8"
        first = bisect_left(self._units, (start, 0))
        end = bisect_left(self._units, (start + len(text), 0))
        whole = first < end and self._units[first].start == start and self._units[end - 1].end == start + len(text)
        inside = units[0] <= first and end <= units[1] and self._all_free((first, end))
        return (first, end) if whole and inside else None

    def _aligned(self, own: Span, units: tuple[int, int]) -> tuple[int, int] | None:
        """The stretch of free units with the most words aligned with the element's, less those of others."""
        mine = {number for number in self._reading(own) if units[0] <= number < units[1]}
        if not mine:
            return None
        best, total, start, found = 0.0, 0.0, 0, None
        for number in range(min(mine), max(mine) + 1):
            score = 1.0 if number in mine else (-1.0 if self._links[number] else _UNKNOWN)
            if total <= 0 or not self._free[number]:
                total, start = 0.0, number
            total += score if self._free[number] else 0.0
            if total > best:
                best, found = total, (start, number + 1)
        return found

    def _reading(self, own: Span) -> Iterator[int]:
        """The units that are aligned with some of the words."""
        first = bisect_left(self._readers, (own.start - self._longest, -1, -1))
        for start, end, number in self._readers[first:]:
            if start >= own.end:
                return
            if end > own.start:
                yield number

    def _between(self, own: Span, units: tuple[int, int]) -> tuple[int, int]:
        """Units of which nothing is known between those of the words before and after an element."""
        last = bisect_right(self._by_end, (own.start, len(self.target))) - 1
        first = bisect_left(self._by_start, (own.end, -1))
        left = self._by_end[last][1] if last >= 0 else 0
        right = self._by_start[first][1] if first < len(self._by_start) else len(self.target)
        numbers = [
            number
            for number in range(*units)
            if self._free[number] and not self._links[number] and self._is_word(number)
            if left <= self._units[number].start and self._units[number].end <= right
        ]
        return _first_run(numbers, units[0])

    def _is_word(self, number: int) -> bool:
        unit = self._units[number]
        return any(character.isalnum() for character in self.target[unit.start : unit.end])

    def _offset(self, node: Node, words: Span, units: tuple[int, int]) -> int:
        """Where markup that stands at a point goes, within the units of the element that it is in."""
        if not units[1] - units[0]:
            return min(self._expected(node.start), len(self.target))
        low, high = self._units[units[0]].start, self._units[units[1] - 1].end
        if words == trim(self.source, 0, len(self.source)):
            low, high = 0, len(self.target)
        if node.start <= words.start:
            return low
        if node.start >= words.end:
            return high
        if low <= (line := self._line(node.start)) <= high:
            return line
        expected = min(max(self._expected(node.start), low), high)
        inside = next((unit for unit in self._units if unit.start < expected < unit.end), None)
        return inside.end if inside else expected

    def _line(self, place: int) -> int:
        """Where the line of the translation begins that begins at a place of the source; -1 where none does."""
        if self.source[place - 1 : place] != "\n" or self.source.count("\n") != self.target.count("\n"):
            return -1
        lines = self.target.split("\n")[: self.source.count("\n", 0, place)]
        return sum(map(len, lines)) + len(lines)


def flat(nodes: Sequence[Node]) -> list[Node]:
    found: list[Node] = []
    remaining = list(reversed(nodes))
    while remaining:
        found.append(remaining.pop())
        remaining += reversed(found[-1].children)
    return found


def _first_run(numbers: Sequence[int], otherwise: int) -> tuple[int, int]:
    """The first of several numbers and the end of those that follow it without a gap."""
    if not numbers:
        return otherwise, otherwise
    end = numbers[0]
    while end + 1 - numbers[0] < len(numbers) and numbers[end + 1 - numbers[0]] == end + 1:
        end += 1
    return numbers[0], end + 1
