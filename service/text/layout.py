"""A text as a row of pieces: sentences to translate, and everything between them, which comes back unchanged.

Lines are borders always: a list, a poem or a table keeps its lines. So are tabs, wide spaces and signs between the
cells of a line. Indentation, bullets, numbering, emoji and symbols around a sentence, brackets and quotation marks
around a line, blank lines and trailing spaces are kept; so is a sentence without a single letter.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Literal

from tandem.models.text import BIDI
from tandem.service.text.masking import MARKS_FROM
from tandem.service.text.segmentation import split_sentences
from tandem.service.text.spans import trim
from tandem.service.text.splitting import Measure, split_long

_BULLET = re.compile(
    r"(?:[-*+•‣◦▪·–—→➔»›†‡¶|]|#{1,6}|>(?:\s*>)*|<{1,3}|[«»‹›]{2,3}|\(?\d{1,3}\)|\(?(?:[A-Za-z]|[ivx]{2,5}|[IVX]{2,5})\)|\[\d{1,3}\]|§{1,2}\s?\d{1,4}[a-z]?"
    r"|[IVX]{2,5}\.(?=\s+[A-ZÀ-Þ]))\s+"
)
# "3. Oktober" at a line's beginning is a date and no list, unless another line is numbered too.
_NUMBERED = re.compile(r"\d{1,3}\.\s+")
# Before a capital ("1.5 million" is no heading); thousands, times and what is counted are none either.
_SECTION = re.compile(
    r"\d{1,3}(?:\.\d{1,2})+(?!\d)\.?\s+(?=\w)"
    r"(?!(?:Uhr|Prozent|Euro|Dollar|Mio|Mrd|Million(?:en|s)?|Milliarden?|Billion(?:en|s)?|Sterne?|Stars?|Stunden?|Hours?"
    r"|Minuten?|Grad|Tage?)\b)"
)
_BOX = re.compile(r"(?:\[[ \u00a0xX✓✔_]{1,5}\]|\([ \u00a0✓✔_]{1,5}\))\s+(?=\w)")  # of a form, to be ticked
_ARROW = re.compile(r"[«‹]\s++(?![^»›]*[»›])")  # "« Back"; what it opens is a quotation
_FENCE = re.compile(r"[ ]{0,3}(`{3,}(?=[^`\r\n]*[\r\n]*\Z)|~{3,}(?=[ ]*\w))")  # CommonMark's; tildes are also rulers
# Between the cells of a table, the steps of a path, a heading and its page; not between what is compared. Breaks of
# lines may be spelt.
_BORDERS = (
    r"(?:(?<![ \u00a0])[ \u00a0]++)?\t\s*+|{1}[ \u00a0]{{2,}}"
    r"|(?<!\s)\s++(?:(?:[|·→•{0}]\s++)++|(?:\[[ xX]\]|\([ ]{{1,5}}\)|[☐☑☒□])\s++(?=\w))"
    r"|(?<=[^\d\s])\s++>\s++(?=[^\d\s])|(?<!\s)\s++[|{0}]\s*+\Z"
    r"|(?<=[^\W\d_][^\W\d_])\|(?=[^\W\d_]{{2}})"
    r"|(?:(?<![ \u00a0])[ \u00a0]++)?(?:\.{{5,}}+|…{{2,}}+|(?:[ \u00a0]\.){{4,}}+)[ \u00a0]*+"
    r"|(?:(?<!\s)\s++)?(?:<[Bb][Rr]\s*+/?>\s*+)++|(?<=[\w.,:;!?)])(?:\\[nr])+(?=[\W\d_A-ZÀ-Þ]|\Z)"
)
_BORDER = {  # by whether guillemets are quotation marks, and whether there are columns: two spaces part them, too
    (quotes, columns): re.compile(_BORDERS.format("" if quotes else "»›«‹", spaces))
    for quotes in (False, True)
    for columns, spaces in ((False, "[ \u00a0]"), (True, r"(?<![(\[ \u00a0])"))
}
# What a sentence quotes or puts in brackets: signs in it are part of it.
_QUOTED = re.compile(
    r"""(?<!\w)(?:„(?=\S)[^„“”]{1,200}(?<=\S)[“”]|“(?=\S)[^“”]{1,200}(?<=\S)”|"(?=\S)[^"]{1,200}(?<=\S)"
    |»(?=\S)[^»«]{1,200}(?<=\S)«|«[^«»]{1,200}»|\((?=\S)[^()]{1,200}(?<=\S)\))(?!\w)""",
    re.VERBOSE,
)
_ENCLOSING = {
    "(": ")",
    "[": "]",
    "{": "}",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "„": "“",
    "“": "”",
    "‚": "‘",
    "‘": "’",
}
_ENCLOSING |= {'"': '"', "'": "'", "”": "”"}
_LETTER = re.compile(r"\W*[A-HJ-Zb-hj-np-xz]\W*")  # alone: of a list, a formula; "I", "a", "o" and "y" are words
_LABELS = re.compile(r"(?:[^\W\d_]{2,}[/;]){1,20}[^\W\d_]{2,}[.:!?…]*")  # "Hund/Katze", "Hund;Katze"
_GOING_ON = re.compile(r"(?:…|\.{3})\s*(?=\w)")  # "...and then"
_REFERENCE = re.compile(r"\s*\[\d{1,3}\]\Z")
_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ENDS = {opening: "\u202c" if opening < "\u2060" else "\u2069" for opening in BIDI if opening not in "\u202c\u2069"}
_BIDI = re.compile(f"[{BIDI}]")
_KEPT_AROUND = frozenset(("So", "Sk", "Cf", "Cn", "Zs", "Zl", "Zp"))
_SIGNS_AROUND = frozenset("\ufe0f\u20e3‼⁉→←↑↓↔⇒⇐⇔†‡•·|¶*=~^")
_NO_SPACES = frozenset(("ja", "zh", "zt", "yue", "th", "lo", "km", "my"))

Splitting = Literal["lines", "sentences", "whole"]
"""Where a text is split: at line breaks and ends of sentences; at ends of sentences only; not at all."""
Part = tuple[str, bool]
"""Some of a text, and whether it is to be translated."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text; ``start`` counts characters of the normalised text."""

    text: str
    start: int
    translatable: bool


@dataclass(frozen=True)  # without slots, for what is found out once
class Document:
    """A text's pieces; their texts, joined, are the text.

    Attributes:
        pieces: all of it, in order.
        spaced: whether adjoining sentences need a space that the source's script does not write.
    """

    pieces: tuple[Piece, ...]
    spaced: bool = False

    @classmethod
    def parse(
        cls, text: str, source: str, target: str, limit: int, measure: Measure, splitting: Splitting = "lines"
    ) -> Document:
        """Split a normalised text.

        Args:
            text: as ``models.text.normalise`` returns it.
            source, target: language codes.
            limit: tokens that the model takes in one sentence, without EOS.
            measure: counts them.
            splitting: where it is split, apart from sentences that are too long for the model.
        """

        def shorten(sentence: str) -> list[str]:
            return split_long(sentence, limit, measure)

        if splitting != "lines":
            return cls.of(_unbroken(text, source, shorten, whole=splitting == "whole"), source, target)
        lines = split_lines(text, source, shorten)
        return cls.of((part for line in lines for part in line), source, target)

    @classmethod
    def of(cls, parts: Iterable[Part], source: str, target: str) -> Document:
        """The document of parts that follow one another."""
        pieces: list[Piece] = []
        start = 0
        for part, translatable in parts:
            pieces.append(Piece(part, start, translatable))
            start += len(part)
        spaced = source.split("-")[0] in _NO_SPACES and target.split("-")[0] not in _NO_SPACES
        return cls(tuple(pieces), spaced)

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """What is to be translated."""
        return tuple(piece for piece in self.pieces if piece.translatable)

    @cached_property
    def between(self) -> tuple[str, ...]:
        """What stands in front of each translation, and behind the last.

        Where a text turns to run the other way and does not turn back, because that stood in a sentence, it does not
        turn: all that follows it would.
        """
        between, layout, after_sentence = [], "", False
        for piece in self.pieces:
            if piece.translatable:
                between.append(" " if after_sentence and self.spaced else layout)
                layout = ""
            else:
                layout += piece.text
            after_sentence = piece.translatable
        return _balanced([*between, layout])

    def join(self, translations: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
        """The text with its sentences replaced, and where in it each translation stands (start, end)."""
        *before, end = self.between
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        length = 0
        for layout, translation in zip(before, translations, strict=True):
            start = length + len(layout)
            length = start + len(translation)
            spans.append((start, length))
            parts += (layout, translation)
        return "".join((*parts, end)), spans


def is_translatable(text: str) -> bool:
    """Whether there is a letter in it: emoji, punctuation and numbers alone stay as they are."""
    return any(character.isalpha() for character in text)


def split_lines(text: str, language: str, shorten: Callable[[str], list[str]]) -> list[list[Part]]:
    """The parts of each line, joined the text; ``shorten`` cuts a sentence that is too long, losing nothing of it."""
    lines = text.splitlines(keepends=True)
    numbered = sum(bool(_NUMBERED.match(line.lstrip())) for line in lines) > 1
    code = fenced(lines)
    return [
        list(_nonempty(line) if place in code else _line(line, _prefix(line, numbered), language, shorten))
        for place, line in enumerate(lines)
    ]


def fenced(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines of fenced code, which is no text; a fence that is not closed begins none."""
    code: set[int] = set()
    opened, fence = 0, ""
    for place, line in enumerate(lines):
        bare = line.strip()
        if fence and bare.startswith(fence) and not bare.strip(fence[0]):
            code.update(range(opened, place + 1))
            fence = ""
        elif not fence and (match := _FENCE.match(line)):
            opened, fence = place, match[1]
    return code


def _unbroken(text: str, language: str, shorten: Callable[[str], list[str]], *, whole: bool) -> Iterator[Part]:
    """The parts of a text whose line breaks count as spaces; they come back where they stand between sentences."""
    sentences = [text] if whole else split_sentences(_LINE_BREAK.sub(" ", text), language)
    start = 0
    for sentence in sentences:
        yield from _sentence(text[start : start + len(sentence)], shorten)
        start += len(sentence)


def _line(line: str, prefix: int, language: str, shorten: Callable[[str], list[str]]) -> Iterator[Part]:
    done, last = _enclosed(line, prefix, len(line))
    yield from _nonempty(line[:done])
    rest = line[done:last]
    quotes = ("«" in rest and "»" in rest) or ("‹" in rest and "›" in rest)
    borders = list(_BORDER[quotes, "   " in rest.strip()].finditer(line, done, last))
    quoted = [match.span() for match in _QUOTED.finditer(line, done, last)] if borders else []
    starts = [start for start, _ in quoted]
    for border in borders:
        before = bisect_left(starts, border.start())
        if border[0].strip() and before and border.start() < quoted[before - 1][1]:
            continue
        yield from _cell(line[done : border.start()], language, shorten)
        yield from _nonempty(border[0])
        done = border.end()
    yield from _cell(line[done:last], language, shorten)
    yield from _nonempty(line[last:])


def _cell(cell: str, language: str, shorten: Callable[[str], list[str]]) -> Iterator[Part]:
    """A line, or what stands between two borders of one, without what encloses it whole."""
    start, end = trim(cell, 0, len(cell))
    if box := _BOX.match(cell, start):
        start = box.end()
    start, end = _enclosed(cell, start, end)
    yield from _nonempty(cell[:start])
    inside = cell[start:end]
    labels = _LABELS.fullmatch(inside) and not inside.isupper()  # "TCP/IP"
    for sentence in re.split("([/;])", inside) if labels else split_sentences(inside, language):
        yield from _sentence(sentence, shorten)
    yield from _nonempty(cell[end:])


def _enclosed(text: str, start: int, end: int) -> tuple[int, int]:
    """What a part of a text has within quotation marks and brackets around it; the part itself where it has none."""
    first, last = trim(text, start, end)
    if not (last - first > 2 and _encloses(text[first:last])):
        return start, end
    return _enclosed(text, *trim(text, first + 1, last - 1))


def _encloses(cell: str) -> bool:
    """Whether the first character opens what the last one closes, and nothing does in between."""
    opening, closing, inside = cell[0], _ENCLOSING.get(cell[0]), cell[1:-1]
    return cell[-1] == closing and opening not in inside and closing not in inside


def _sentence(sentence: str, shorten: Callable[[str], list[str]]) -> Iterator[Part]:
    for piece in shorten(sentence) if is_translatable(sentence) else [sentence]:
        if not is_translatable(piece):
            yield from _nonempty(piece)
            continue
        first, last = _core(piece)
        if _LETTER.fullmatch(piece[first:last]):
            yield from _nonempty(piece)
            continue
        yield from _nonempty(piece[:first])
        yield piece[first:last], True
        yield from _nonempty(piece[last:])


def _prefix(line: str, numbered: bool) -> int:
    """Characters of indentation and bullet at a line's beginning."""
    indent = len(line) - len(line.lstrip())
    match = _BULLET.match(line, indent) or _ARROW.match(line, indent)
    match = match or (_NUMBERED.match(line, indent) if numbered else None)
    return match.end() if match else section_end(line, indent) or indent


def section_end(text: str, start: int) -> int:
    """Where the words behind the number of a section begin, that stands at ``start``; 0 where none does."""
    match = _SECTION.match(text, start)
    return match.end() if match and text[match.end()].isupper() else 0


def _core(piece: str) -> tuple[int, int]:
    """Where the sentence proper begins and ends: white space, emoji and symbols around it are layout."""
    first, last = 0, len(piece)
    while _is_kept(piece[first]):
        first += 1
    while _is_kept(piece[last - 1]):
        last -= 1
    if going_on := _GOING_ON.match(piece, first):
        first = going_on.end()
    reference = _REFERENCE.search(piece[:last])
    return first, reference.start() if reference and is_translatable(piece[first : reference.start()]) else last


def _is_kept(character: str) -> bool:
    if character.isspace() or character in _SIGNS_AROUND:
        return True
    kind = unicodedata.category(character)
    return kind in _KEPT_AROUND or (kind == "Co" and ord(character) < MARKS_FROM)  # icons of a font


def _balanced(between: Sequence[str]) -> tuple[str, ...]:
    """Without characters for the direction of text that end nothing, or that nothing ends."""
    found = _BIDI.findall("".join(between))
    begun: list[int] = []
    paired: set[int] = set()
    for place, character in enumerate(found):
        if character in _ENDS:
            begun.append(place)
        elif begun and _ENDS[found[begun[-1]]] == character:
            paired |= {begun.pop(), place}
    places = count()
    return tuple(_BIDI.sub(lambda match: match[0] if next(places) in paired else "", layout) for layout in between)


def _nonempty(text: str) -> Iterator[Part]:
    if text:
        yield text, False
