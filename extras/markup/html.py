"""HTML and XML in blocks: what is read as one text, with the markup within it; all else comes back byte for byte.

A block is a stretch of text and inline elements between two borders. Borders are block elements, elements whose
content is kept (listings, scripts), and tags without their counterpart: what is malformed stays where it is, and the
text around it is translated piece by piece. So are paragraphs without end tags, each by itself, and misnested elements:
of ``<b>one <i>two</b> three</i>`` each tag stands between the same words as before. Short inline elements that are kept
(``code``, ``translate="no"``) stand in the sentence as text that is to come back as it is. Readings (``rt`` of
``ruby``) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tandem.extras.markup.inline import WHITE_SPACE, BlockBuilder, MarkupBlock
from tandem.extras.markup.nesting import BLOCKS, DRAWN, Nesting
from tandem.extras.markup.scanning import DEFAULTS, Kind, Token, scan_html, scan_xml
from tandem.service.text.blocks import MarkupOptions

_KEPT_NAMES = """
    code iframe kbd listing math noembed noframes noscript plaintext pre samp script style svg textarea var xmp
"""
KEPT = frozenset(_KEPT_NAMES.split())
"""Elements of HTML whose content is no text for readers, or not theirs to change."""
_MOST_KEPT_TEXT = 200  # characters; longer listings are no part of a sentence
MOST_INLINE = 200
"""Elements of one block that are moved about; what has more stays where it is."""

_OF_ROWS = frozenset(("a", "button", "label"))
READINGS = frozenset(("rp", "rt"))
"""Elements of ``ruby`` that say how a text is read. Of its translation they would be wrong."""


def is_marked(tag: Token) -> bool:
    """Whether the author of HTML wants an element to stay as it is."""
    classes = tag.attributes.get("class") or ""
    return (tag.attributes.get("translate") or "").lower() == "no" or (
        "notranslate" in classes and "notranslate" in classes.split()
    )


@dataclass(frozen=True, slots=True)
class HtmlDocument:
    """Markup as text that is kept and blocks that are translated, in order."""

    parts: tuple[str | MarkupBlock, ...]

    @classmethod
    def parse(cls, text: str, options: MarkupOptions | None = None) -> HtmlDocument:
        """Divide markup.

        Raises:
            MarkupError: more elements or end tags, or more elements within one another, than the options allow; XML
                that is not well-formed. The message says what must be.
        """
        chosen = options or DEFAULTS
        tokens = scan_xml(text, chosen) if chosen.xml else scan_html(text, chosen)
        return cls(tuple(_Divider(tokens, chosen).parts()))

    @property
    def blocks(self) -> tuple[MarkupBlock, ...]:
        """What is to be translated."""
        return tuple(part for part in self.parts if isinstance(part, MarkupBlock))

    @property
    def text(self) -> str:
        """The blocks' texts, one in a line: for the detection of their language."""
        return "\n".join(block.text for block in self.blocks)

    def render(self, blocks: Sequence[str]) -> str:
        """The document with its blocks replaced by markup: what ``MarkupBlock.render`` returned for each."""
        remaining = iter(blocks)
        found = [part if isinstance(part, str) else next(remaining) for part in self.parts]
        if next(remaining, None) is not None:
            raise ValueError(f"more blocks than the document's {len(self.blocks)}")
        return "".join(found)


@dataclass(slots=True)
class _Divider:
    """Finds the blocks."""

    tokens: Sequence[Token]
    options: MarkupOptions
    nesting: Nesting = field(init=False)
    partner: list[int] = field(init=False)
    readings: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.nesting = Nesting(self.tokens, self.options)
        self.partner = self.nesting.partner
        self.readings = {} if self.options.xml else dict(self._readings())

    def parts(self) -> Iterator[str | MarkupBlock]:
        """The document's parts, joined and with blocks as they are the text."""
        kept = self._kept()
        borders = self._borders(kept)
        run: list[tuple[int, int]] = []  # first and last token of each of its pieces
        place = 0
        while place < len(self.tokens):
            last = kept.get(place, place)
            if borders[place]:
                if run:
                    yield from self._block(run, kept)
                    run = []
                yield "".join(token.raw for token in self.tokens[place : last + 1])
            else:
                run.append((place, last))
            place = last + 1
        yield from self._block(run, kept)

    def _kept(self) -> dict[int, int]:
        """First and last token of each element whose content stays; none lies in another."""
        found: dict[int, int] = {}
        end = -1
        for place, token in enumerate(self.tokens):
            if place <= end or token.kind is not Kind.START:
                continue
            if self._stays(token):
                end = self.partner[place] if self.partner[place] >= 0 else self._unclosed(place)
                found[place] = end
            elif place in self.readings:
                end = found[place] = self.readings[place]
        return found

    def _readings(self) -> Iterator[tuple[int, int]]:
        """First and last token of each reading. In a ``ruby`` that never ends all that follows may seem to be one."""
        ruby = -1
        for place, token in enumerate(self.tokens):
            if token.kind is Kind.START and token.name == "ruby":
                ruby = max(ruby, self.partner[place])
            elif token.kind is Kind.START and token.name in READINGS and place < ruby and not self._stays(token):
                end = self.partner[place] if self.partner[place] >= 0 else self.nesting.end_of(place)
                inside = range(place + 1, end)
                if end <= ruby and all(map(self._is_of_words, inside)) and self.nesting.is_balanced(place + 1, end - 1):
                    yield place, end if end == self.partner[place] else end - 1

    def _is_of_words(self, place: int) -> bool:
        token = self.tokens[place]
        return token.kind is Kind.TEXT or (token.kind in (Kind.START, Kind.END, Kind.EMPTY) and self._is_inline(place))

    def _stays(self, token: Token) -> bool:
        if token.name in self.options.ignore_tags:
            return True
        if self.options.xml:
            return False
        return token.name in KEPT or is_marked(token)

    def _unclosed(self, place: int) -> int:
        """The last token of an element without an end tag of its own.

        Where its end tag may be left out, that is where it ends by itself; else a stray end tag of its name, and
        without such the last token before the next border.
        """
        end = self.nesting.end_of(place)
        if self.nesting.has_optional_end(place):
            return end - 1
        border, stray = self._next_border(place), self.nesting.stray_after(place)
        return stray if stray < max(end, border) else border - 1

    def _next_border(self, place: int) -> int:
        for later in range(place + 1, len(self.tokens)):
            token = self.tokens[later]
            if token.kind in (Kind.START, Kind.END) and not self._is_inline(later):
                return later
        return len(self.tokens)

    def _borders(self, kept: dict[int, int]) -> list[bool]:
        """Per token whether it ends a block: what does so by itself, and pairs of tags around such."""
        flags = [self._is_border(place, kept) for place in range(len(self.tokens))]
        for first, last in kept.items():
            flags[first + 1 : last + 1] = [flags[first]] * (last - first)
        for place, other in enumerate(self.partner):  # the end tag of what began in an element that has none
            flags[place] |= other >= 0 and flags[other]
        before = [0, *accumulate(flags)]
        for place, token in enumerate(self.tokens):
            other = self.partner[place]
            # A start tag without an end tag can be here only within what is kept, which is one thing.
            if token.kind is Kind.START and other >= 0 and not flags[place] and before[other] > before[place]:
                flags[place] = flags[other] = True
        return flags

    def _is_border(self, place: int, kept: dict[int, int]) -> bool:
        token = self.tokens[place]
        if place in kept:
            return place not in self.readings and not self._is_part_of_sentence(place, kept[place])
        if token.kind is Kind.OTHER:
            return not token.raw.startswith(("<!--", "<?") if self.options.xml else "<!--")
        if token.kind in (Kind.START, Kind.END):
            return self.partner[place] in (-1, place) or not self._is_inline(place)
        return token.kind is Kind.JUNK or (token.kind is Kind.EMPTY and not self._is_inline(place))

    def _is_part_of_sentence(self, first: int, last: int) -> bool:
        # Drawings and formulas are no borders: they stand in a sentence as one thing without text.
        if not self._is_inline(first) and self.tokens[first].name not in DRAWN:
            return False
        inside = self.tokens[first : last + 1]
        if self.partner[first] != last:
            return False
        if self.tokens[first].name in DRAWN:
            return True
        # A stray tag in it would go with it to another place of the sentence, away from the words that it is about.
        return self.nesting.is_balanced(first, last) and sum(len(token.text) for token in inside) <= _MOST_KEPT_TEXT

    def _is_inline(self, place: int) -> bool:
        """Whether an element may stand in a sentence."""
        name = self.tokens[place].name
        if name in self.options.splitting_tags or name in self.options.non_splitting_tags:
            return name in self.options.non_splitting_tags
        if not self.options.xml:
            return name not in BLOCKS
        if not self.options.outline_detection:
            return True
        above = self.nesting.parent[place if self.tokens[place].kind is not Kind.END else max(0, self.partner[place])]
        while above >= 0:  # in a text, or in an element that is
            if above in self.nesting.speaks:
                return True
            above = self.nesting.parent[above]
        return -1 in self.nesting.speaks

    def _block(self, run: list[tuple[int, int]], kept: dict[int, int]) -> Iterator[str | MarkupBlock]:
        """A run as a block with the white space around it, or as it is where it has nothing to translate."""
        if sum(self.tokens[first].kind is not Kind.TEXT for first, _ in run) > 2 * MOST_INLINE:
            for piece in run:
                is_text = self.tokens[piece[0]].kind is Kind.TEXT
                yield from self._block([piece], kept) if is_text else (self._raw([piece]),)
            return
        if elements := self._row(run):
            for is_element, pieces in elements:
                yield from self._block(pieces, kept) if is_element else (self._raw(pieces),)
            return
        builder = BlockBuilder(self.options.xml)
        for first, last in run:
            self._add(builder, first, last, kept)
        raw = self._raw(run)
        if not any(map(str.isalnum, builder.own_text)):  # numbers alone may be written otherwise
            yield from ([raw] if raw else [])
            return
        inner = raw if self.options.xml else raw.strip(WHITE_SPACE)
        start = raw.index(inner)
        yield from ([raw[:start]] if start else [])
        yield builder.block(inner)
        yield from ([raw[start + len(inner) :]] if start + len(inner) < len(raw) else [])

    def _row(self, run: list[tuple[int, int]]) -> list[tuple[bool, list[tuple[int, int]]]]:
        """The elements of a run that is nothing but links or buttons side by side, or labels without a space between
        them, and what stands between those: each is a text of its own. Empty where it is something else."""
        found: list[tuple[bool, list[tuple[int, int]]]] = []
        end, links, labels = -1, True, True
        for first, last in run if not self.options.xml else ():
            token = self.tokens[first]
            if first <= end:
                found[-1][1].append((first, last))
            elif token.kind is Kind.START and self.partner[first] > last:
                end = self.partner[first]
                found.append((True, [(first, last)]))
                links &= token.name in _OF_ROWS
                text = "".join(one.text for one in self.tokens[first:end]).strip()
                labels &= text[:1].isupper() or text[:1].isdigit()
            elif token.kind is Kind.TEXT and not token.text.strip():
                found.append((False, [(first, last)]))
                labels = False
            else:
                return []
        return found if sum(element for element, _ in found) > 1 and (links or labels) else []

    def _add(self, builder: BlockBuilder, first: int, last: int, kept: dict[int, int]) -> None:
        token = self.tokens[first]
        if first in self.readings:
            return
        if first in kept:
            inside = "".join(one.text for one in self.tokens[first : last + 1])
            builder.keep(self._raw([(first, last)]), "" if token.name in DRAWN else inside)
        elif token.kind is Kind.TEXT:
            builder.write(token.text)
        elif token.kind is Kind.START:
            builder.open(token.raw)
        elif token.kind is Kind.END:
            builder.close(token.raw)
        elif token.name == "br" and not self.options.xml:
            builder.end_line(token.raw)
        else:
            builder.keep(token.raw, "")

    def _raw(self, run: Sequence[tuple[int, int]]) -> str:
        return "".join(token.raw for first, last in run for token in self.tokens[first : last + 1])
