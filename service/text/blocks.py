"""Texts with markup in them, as far as the core knows them: blocks of text, and what puts their translations back.

An extra reads them; its port names the ``MarkupReader``. Where there is none, texts are plain, tags and all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from tandem.models.errors import TandemError
from tandem.service.ports import extras, load
from tandem.service.text.spans import Span

Pairs = Sequence[tuple[tuple[int, int], tuple[int, int]]]
"""Aligned words: characters (start, end) of the source and of the translation."""


class MarkupError(TandemError):
    """Markup that is not read: XML that is not well-formed, or more elements than the bounds allow.

    Attributes:
        value: how many elements there are, or are within one another as far as it was read; None = the text itself is
            at fault.
    """

    def __init__(self, message: str, value: int | None = None) -> None:
        self.value = value
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class MarkupOptions:
    """How markup is read.

    Attributes:
        xml: whether it is XML; else HTML.
        ignore_tags: elements whose content is kept as it is.
        splitting_tags: elements that end a sentence, besides those that do by themselves.
        non_splitting_tags: elements that never do.
        outline_detection: of XML whether elements that stand in no text end a sentence; else only ``splitting_tags``.
        max_depth: elements within one another.
        max_elements: elements, and end tags: those that close nothing are work too.
    """

    xml: bool = False
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    outline_detection: bool = True
    max_depth: int = 200
    max_elements: int = 20_000


class Block(Protocol):
    """Text that is read as one, with markup within it."""

    @property
    def text(self) -> str:
        """What is to be translated."""

    @property
    def kept(self) -> Sequence[Span]:
        """Parts of the text that are to come back as they are, in order."""

    @property
    def has_markup(self) -> bool:
        """Whether it matters which words belong together."""

    def render(self, translation: str, pairs: Pairs = ()) -> str:
        """The block's markup with its translation, by the aligned words of ``text`` and translation."""


class MarkupDocument(Protocol):
    """A text in blocks, and what stands between them."""

    @property
    def blocks(self) -> Sequence[Block]:
        """What is to be translated."""

    @property
    def text(self) -> str:
        """The blocks' texts, one in a line: for the detection of their language."""

    def render(self, blocks: Sequence[str]) -> str:
        """The document with its blocks replaced by what ``Block.render`` returned for each."""


@dataclass(frozen=True, slots=True)
class MarkupReader:
    """What reads texts with markup in them.

    Attributes:
        parse: a text that is markup. Raises MarkupError.
        parse_plain: a text that nobody calls markup, with the places in it whose tags are none, in order; gives None
            where it has no pairs of tags.
    """

    parse: Callable[[str, MarkupOptions], MarkupDocument]
    parse_plain: Callable[[str, Sequence[Span]], MarkupDocument | None]


@cache
def markup_reader() -> MarkupReader | None:
    """The one that an extra brings."""
    reader: MarkupReader | None = next((load(extra.markup) for extra in extras() if extra.markup), None)
    return reader
