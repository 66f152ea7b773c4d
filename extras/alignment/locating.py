"""Where a vocabulary's pieces stand in the text that they were made of, or that was made of them.

The pieces' characters, in order, are the text but for what its clean-up took away or put in: white space, placeholders
that stand for something else, an unknown word that was replaced, bytes that are no character, and capitals. What is
alike is matched from both ends; ``difflib`` (of the standard library, which finds the longest common blocks) matches
the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tandem.service.text.spans import Span, trim

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BOUNDARY = "\u2581"
_MOST_COMPARED = 200_000
"""Pairs of equal characters that difflib may have to look at in one pass; with more, nothing is known of the block."""


def locate(pieces: Sequence[str], text: str) -> list[Span]:
    """Per piece the characters of the text that it stands for; an empty span where nothing is left of it.

    Args:
        pieces: of subwords, with U+2581 for a space and ``<0x41>`` for a byte.
        text: what they spell, give or take what the module's docstring names. White space belongs to no piece.
    """
    spelled, owners = _spell(pieces)
    starts, ends = [len(text)] * len(pieces), [0] * len(pieces)
    for (first, last), (start, end) in _blocks(spelled, text):
        alike, block = last - first == end - start, trim(text, start, end)
        for place in range(first, last):
            if spelled[place].isspace():
                continue
            at = (start + place - first, start + place - first + 1) if alike else block
            for piece in range(*owners[place]):
                starts[piece], ends[piece] = min(starts[piece], at[0]), max(ends[piece], at[1])
    return _filled(starts, ends)


def locate_words(count: int, text: str) -> list[Span] | None:
    """Per word of a text in which white space stands between words; None where there are not as many."""
    found = [Span(*match.span()) for match in re.finditer(r"\S+", text)]
    return found if len(found) == count else None


def _spell(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The pieces' characters, and of each the pieces it is made of (first, last): one, or one per byte."""
    spelled: list[str] = []
    owners: list[tuple[int, int]] = []
    pending = bytearray()
    for number, piece in enumerate([*pieces, ""]):
        match = _BYTE.fullmatch(piece)
        if match:
            pending.append(int(match[1], 16))
            continue
        for character, first, last in _characters(bytes(pending)):
            spelled.append(character)
            owners.append((number - len(pending) + first, number - len(pending) + last))
        pending.clear()
        spelled += piece.replace(_BOUNDARY, " ")
        owners += [(number, number + 1)] * len(piece)
    return "".join(spelled), owners


def _characters(raw: bytes) -> Iterator[tuple[str, int, int]]:
    """The characters of UTF-8 and the bytes that each is made of; a byte that fits in none is U+FFFD."""
    place = 0
    while place < len(raw):
        for length in (1, 2, 3, 4):
            try:
                character = raw[place : place + length].decode()
            except UnicodeDecodeError:
                continue
            yield character, place, place + length
            place += length
            break
        else:
            yield "\ufffd", place, place + 1
            place += 1


def _blocks(spelled: str, text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Stretches of both that belong together. Where they are not equally long, all belongs to all."""
    left, right = _unspaced(spelled), _unspaced(text)
    one, other = "".join(_small(spelled[place]) for place in left), "".join(_small(text[place]) for place in right)
    begin = _common(one, other)
    end = _common(one[begin:][::-1], other[begin:][::-1])
    one, other = one[begin : len(one) - end], other[begin : len(other) - end]
    yield from _pairs(left[:begin], right[:begin])
    yield from _pairs(left[len(left) - end :], right[len(right) - end :])
    left, right = left[begin : len(left) - end], right[begin : len(right) - end]
    for kind, first, last, start, stop in _matched(one, other):
        if kind == "equal":
            yield from _pairs(left[first:last], right[start:stop])
        elif kind == "replace":
            yield (left[first], left[last - 1] + 1), (right[start], right[stop - 1] + 1)


def _small(character: str) -> str:
    """A letter without regard to its case, in which the pieces may differ from the text; still one character."""
    small = character.lower()
    return small if len(small) == 1 else character


def _common(one: str, other: str) -> int:
    """How many characters are alike at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _matched(one: str, other: str) -> Sequence[tuple[str, int, int, int, int]]:
    """What ``SequenceMatcher.get_opcodes`` says, in bounded time: many equal characters would make that quadratic."""
    if not one or not other:
        return []
    in_one, in_other = Counter(one), Counter(other)
    if sum(count * in_other[character] for character, count in in_one.items()) > _MOST_COMPARED:
        return [("replace", 0, len(one), 0, len(other))]
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _pairs(left: Sequence[int], right: Sequence[int]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    return (((a, a + 1), (b, b + 1)) for a, b in zip(left, right, strict=True))


def _unspaced(text: str) -> list[int]:
    return [place for place, character in enumerate(text) if not character.isspace()]


def _filled(starts: Sequence[int], ends: Sequence[int]) -> list[Span]:
    """Spans; a piece of which nothing is left stands, empty, where the one before it ends."""
    spans: list[Span] = []
    for start, end in zip(starts, ends, strict=True):
        at = spans[-1].end if spans else 0
        spans.append(Span(start, end) if start < end else Span(at, at))
    return spans
