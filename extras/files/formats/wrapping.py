"""Paragraphs of plain text that are broken into lines of a width, as editors and mail programs break them.

Nothing in a text file says whether a line's end is a border: lists, poems and addresses have their lines for a reason.
A block of lines is a paragraph only where it must have been broken to fit: each line is so long that the next one's
first word had no room on it, and some go on in the midst of a sentence, with a small letter.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tandem.service.text.layout import fenced, is_translatable

_NARROWEST, _WIDEST = 60, 100  # characters of the longest line
_ENOUGH = 3  # lines of a block that says by itself how wide its text is
_TOLERANCE = 3  # characters by which paragraphs of one width may differ, beside what their words leave
_GOING_ON = 0.25  # of the ends of lines, at least, stand within a sentence
_QUOTED = re.compile(r"(?:>[ \t]?)+[ \t]*")  # in mail
_ENDS = ("\n", "\r\n", "\r")  # of lines; others are borders
_ITEM = re.compile(r"(?:[-–—•▪◦*+|]|\d{1,3}[.)]|\(?[a-z\d]{1,3}[.)]|#{1,6}|\[[^\]]{1,4}\])[ \t]")
_COLUMNS = re.compile(r"\S(?:\t| {3,}).*\S")
_MIDST = re.compile(r"[\w,'’»”\")-]$")
_CUT = re.compile(r"(?<=[^\W\d_])-$")
_JOINING = re.compile(r"(?:und|oder|bzw|sowie|bis|and|or|to|et|ou)\b")  # "Haus- und Garten"


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file.

    Attributes:
        before: quotation marks of mail, and indentation.
        body: its text.
        after: spaces behind that, and its end.
    """

    before: str
    body: str
    after: str

    @classmethod
    def of(cls, line: str) -> FileLine:
        """A line as it is in the file."""
        body = line.strip()
        start = line.index(body)
        quoted = _QUOTED.match(body)
        inner = quoted.end() if quoted else 0
        return cls(line[: start + inner], body[inner:], line[start + len(body) :])

    @property
    def raw(self) -> str:
        """It, as it is in the file."""
        return self.before + self.body + self.after

    @property
    def width(self) -> int:
        """Characters without what is behind its text."""
        return len(self.before) + len(self.body)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that are translated as one text, or one that is not.

    Attributes:
        lines: of the file.
        width: characters to which its translation is broken; 0 = it is one line.
    """

    lines: tuple[FileLine, ...]
    width: int = 0

    @property
    def raw(self) -> str:
        """It, as it is in the file."""
        return "".join(line.raw for line in self.lines)

    @property
    def text(self) -> str:
        """Its words on one line."""
        whole = self.lines[0].body
        for line in self.lines[1:]:
            if _CUT.search(whole) and not _JOINING.match(line.body):
                whole = whole[:-1] + line.body if line.body[:1].islower() else whole + line.body
            else:
                whole = f"{whole} {line.body}"
        return whole

    def written(self, text: str) -> str:
        """The file's lines with that in the place of its text."""
        first, *others = self.lines
        if not others:
            return first.before + text + first.after
        before = others[0].before
        broken = textwrap.wrap(
            text,
            self.width,
            initial_indent=first.before,
            subsequent_indent=before,
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return first.after.join(broken or [first.before]) + others[-1].after


def paragraphs_of(characters: str) -> Iterator[Paragraph]:
    """A file's paragraphs; joined, they are the file. What is not evidently broken to fit is a line each, and fenced
    code has no text."""
    whole = characters.splitlines(keepends=True)
    code = fenced(whole)
    lines = [FileLine(line, "", "") if place in code else FileLine.of(line) for place, line in enumerate(whole)]
    blocks = list(_blocks(lines))
    width = _width(blocks)
    for block in blocks:
        if width and len(block) > 1 and _is_broken(block, width - _TOLERANCE):
            yield Paragraph(tuple(block), max(width, _widest(block)))
        else:
            yield from (Paragraph((line,)) for line in block)


def _width(blocks: Sequence[Sequence[FileLine]]) -> int:
    """Characters to which a text is broken; 0 where it is not evident that it is."""
    if any(line.width > _WIDEST and " " in line.body for block in blocks for line in block):
        return 0
    telling = [block for block in blocks if len(block) >= _ENOUGH and _widest(block) >= _NARROWEST]
    found = [_widest(block) for block in telling if _is_broken(block)]
    return max(found) if found and 2 * len(found) > len(telling) else 0


def _widest(block: Sequence[FileLine]) -> int:
    return max(line.width for line in block)


def _blocks(lines: Sequence[FileLine]) -> Iterator[list[FileLine]]:
    """Lines that may be one paragraph: with words, in one column, indented alike but for the first, no items."""
    block: list[FileLine] = []
    for line in lines:
        if block and not _goes_on(block, line):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _goes_on(block: Sequence[FileLine], line: FileLine) -> bool:
    last = block[-1]
    if not (_is_prose(last) and _is_prose(line)) or _ITEM.match(line.body) or last.after.lstrip(" \t") not in _ENDS:
        return False
    if last.before.count(">") != line.before.count(">"):
        return False
    return last.before == line.before or len(block) == 1


def _is_prose(line: FileLine) -> bool:
    return is_translatable(line.body) and not _COLUMNS.search(line.body)


def _is_broken(block: Sequence[FileLine], width: int = 0) -> bool:
    """Whether lines must have been broken to fit into a width, of their own longest one at least.

    Where the width of a text is known, a noun with a capital may follow a line's end, too.
    """
    known, width = bool(width), max(width, _widest(block))
    if not _NARROWEST <= width <= _WIDEST:
        return False
    going_on = 0
    for line, following in pairwise(block):
        word = following.body.split(maxsplit=1)[0]
        if line.width + 1 + len(word) <= width:
            return False
        going_on += (known or following.body[0].islower()) and _MIDST.search(line.body) is not None
    return going_on >= max(1, _GOING_ON * (len(block) - 1))
