"""Parts of a text behind a mark, so that nothing divides, normalises or translates them: one character stands for each.

The mark is a character of private use that the text does not have, the same for every part: the first mark is the
first part, and so on, however the text is cut. What was hidden comes back as it stood in the text, or as what is to
stand in the translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tandem.models.text import normalise, unbroken
from tandem.service.text.spans import Span

MARKS_FROM = 0x100000
"""First character that may be a mark; a text that has all from there on gets other ones."""
_LINE_ENDS = re.compile(r"(\r\n?|[\v\f])")
# Those first that hardly any font has a sign for: layout tells marks by them from a sign at a sentence's end.
_PRIVATE = (range(MARKS_FROM, 0x10FFFE), range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))


@dataclass(frozen=True, slots=True)
class Hidden:
    """Part of a text.

    Attributes:
        source: as it stands in the text.
        target: what stands for it in the translation.
        term: the glossary's entry that it matched; None = the part is to come back as it is.
        asked: whether the request asked for it, so that the reply speaks of it.
        at_once: whether no model is to read it, though it is a term: it would not write the target.
        instead_of: words before it that a model made up: the target says what it stands for.
    """

    source: str
    target: str
    term: str | None = None
    asked: bool = True
    at_once: bool = False
    instead_of: frozenset[str] = frozenset()

    @property
    def read_first(self) -> bool:
        """Whether it is read as it is first, and hidden only where a translation lacks the target."""
        return self.term is not None and not self.at_once

    @classmethod
    def kept(cls, text: str, *, asked: bool = True) -> Hidden:
        """A part that comes back as it is."""
        return cls(text, text, asked=asked)


HiddenPlace = tuple[Span, Hidden]
"""A place in a text, and what is hidden there."""


def rewritten(text: str, span: Span, target: str, instead_of: frozenset[str] = frozenset()) -> HiddenPlace:
    """A place of a text that no model is to read, and what is written for it; the reply does not speak of it."""
    part = text[span.start : span.end]
    return span, Hidden(part, target, part, asked=False, at_once=True, instead_of=instead_of)


@dataclass(frozen=True, slots=True)
class Masked:
    """A text with marks in the place of what is hidden.

    Attributes:
        text: with the marks.
        hidden: what they stand for, in order.
        mark: the character; empty where nothing was to be hidden yet, or the text has all characters of private use, so
            that nothing can be.
    """

    text: str
    hidden: tuple[Hidden, ...] = ()
    mark: str = ""

    @classmethod
    def of(cls, text: str) -> Masked:
        """A text of which nothing is hidden yet."""
        used = set(text)
        return cls(text, (), next((chr(code) for code in chain(*_PRIVATE) if chr(code) not in used), ""))

    @property
    def source(self) -> str:
        """The text as it was."""
        return self.fill([one.source for one in self.hidden]) if self.hidden else self.text

    @property
    def target(self) -> str:
        """The text with what is to stand in the translation."""
        return self.fill([one.target for one in self.hidden])

    def fill(self, parts: Sequence[str]) -> str:
        """The text with those parts, one per mark."""
        if not self.hidden:
            return self.text
        return "".join(chain.from_iterable(zip(self.text.split(self.mark), [*parts, ""], strict=True)))

    def hide(self, found: Sequence[HiddenPlace]) -> Masked:
        """More hidden: places of ``text`` in order, which do not overlap and hold no mark; empty ones do not count."""
        if not found:
            return self
        if not self.mark:
            marked = Masked.of(self.text)
            return marked.hide(found) if marked.mark else self
        before = iter(self.hidden)
        parts: list[str] = []
        hidden: list[Hidden] = []
        done = 0
        for span, one in chain(found, [(Span(len(self.text), len(self.text)), None)]):
            between = self.text[done : span.start]
            hidden += [next(before) for _ in range(between.count(self.mark))]
            parts.append(between)
            if one is not None and span.end > span.start:
                parts.append(self.mark)
                hidden.append(one)
            done = span.end
        return replace(self, text="".join(parts), hidden=tuple(hidden))

    def normalised(self) -> Masked:
        """The same with the text around what is hidden normalised, but for its line ends, which are layout."""
        parts = _LINE_ENDS.split(self.text)
        text = "".join(part if part[:1] in "\r\v\f" else normalise(part) for part in parts)
        return Masked(text, self.hidden, self.mark)

    def unbroken(self) -> Masked:
        """The same without soft hyphens and the like around what is hidden, so that words are found with them too."""
        return replace(self, text=unbroken(self.text))

    def divide(self, texts: Iterable[str]) -> Iterator[Masked]:
        """Texts that, joined, are ``text``, each with what is hidden in it."""
        remaining = iter(self.hidden)
        for text in texts:
            marks = text.count(self.mark) if self.mark else 0
            yield replace(self, text=text, hidden=tuple(next(remaining) for _ in range(marks)))


def apart(places: Iterable[HiddenPlace]) -> list[HiddenPlace]:
    """Places in order; of those that overlap the one that begins first, then the longest. Empty ones are left out."""
    kept: list[HiddenPlace] = []
    for one in sorted(places, key=lambda one: (one[0].start, -one[0].end)):
        if one[0].end > one[0].start and (not kept or one[0].start >= kept[-1][0].end):
            kept.append(one)
    return kept


def merge(first: Sequence[HiddenPlace], others: Sequence[HiddenPlace]) -> list[HiddenPlace]:
    """Places in order: the first ones, and those of the others that overlap none of them."""
    ends = sorted(first, key=lambda one: one[0])
    found: list[HiddenPlace] = []
    place = 0
    for one in others:
        while place < len(ends) and ends[place][0].end <= one[0].start:
            found.append(ends[place])
            place += 1
        if place == len(ends) or one[0].end <= ends[place][0].start:
            found.append(one)
    return [*found, *ends[place:]]
