"""The text of a subtitle: lines that belong together are one text, and are broken again into as many lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, zip_longest

from tandem.extras.files.formats.passages import Part, Passage, pieces_of
from tandem.extras.files.formats.txt import one_line

_SPEAKER = re.compile(r"^(?:<v[ .]|(?:<[^<>]*>)?\s*(?:[-–—‐]|>>|[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ0-9 .'’-]{0,40}:))")
_NAME = re.compile(r"\s*(?:>>+\s*)?(?:[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ0-9 .'’-]{0,40}:(?!\S)\s*)?")  # of who speaks, which stays
_LINE_END = re.compile(r"(\n(?:[ \t]*\n)*|[ \t]*<br\s*/?>[ \t]*)", re.IGNORECASE)
_GAP = re.compile(r"\n[ \t]*\n")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?:<[^<>]*>)*$")
_WORD = re.compile(r"(?:<[^<>]*>|[^\s<]|<)+")


def cue_parts(
    content: str, tags: re.Pattern[str], read: Callable[[str], str] = str, escape: Callable[[str], str] = str
) -> Iterator[Part]:
    """A subtitle's lines in groups that belong together.

    Lines of one speaker are one sentence broken to fit the screen; where a line begins with a dash, with ``>>``, with a
    name in capitals (``ANNA:``) or with WebVTT's ``<v Anna>``, somebody else speaks. Names stay. ``<br>`` ends a line
    too; blank lines are borders.

    Args:
        content: of the subtitle.
        tags: matches what is no text.
        read, escape: resolves a text's entities, and writes them.
    """
    whole = content.rstrip("\n")
    lines, ends = _LINE_END.split(whole)[::2], _LINE_END.split(whole)[1::2]
    for before, group, inside in _groups(lines, ends):
        named = _NAME.match(group[0])
        name = named[0] if named else ""
        group = [group[0][len(name) :], *group[1:]]
        text = " ".join(line.strip() for line in group).strip()
        pieces = pieces_of(text, (tag.span() for tag in tags.finditer(text)), read)
        pieces = [piece._replace(text="") if tags.fullmatch(piece.raw) else piece for piece in pieces]
        broken = partial(_broken, ends=inside, tags=tags)
        yield before + name
        raw = "".join(chain.from_iterable(zip_longest(group, inside, fillvalue="")))
        yield Passage(pieces, lambda new: escape(one_line(new)), broken, raw=raw)
    yield content[len(whole) :]


def _groups(lines: Sequence[str], ends: Sequence[str]) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Lines that belong together, with what ends the line before them, and the ends between them."""
    first = 0
    for number, end in enumerate([*ends, ""], 1):
        if number == len(lines) or _GAP.match(end) or _SPEAKER.match(lines[number]):
            yield ends[first - 1] if first else "", lines[first:number], ends[first : number - 1]
            first = number


def _broken(text: str, ends: Sequence[str], tags: re.Pattern[str]) -> str:
    """A text on lines of about the same length, with at most these ends of lines.

    Lines break at spaces outside of tags: at the end of a sentence where it is nearer than half a line, else where
    their lengths are most alike.
    """
    words = _WORD.findall(text)
    widths = list(accumulate(len(tags.sub("", word)) + 1 for word in words))
    line = (widths[-1] if widths else 0) / (len(ends) + 1)
    spaces = [" "] * (len(words) - 1)
    begin = 0
    for number, end in enumerate(ends, 1):
        places = range(begin, len(spaces))
        if not places:
            break
        found = min(places, key=lambda place: _far(words[place], widths[place] - line * number, line))
        spaces[found], begin = end, found + 1
    return "".join(chain.from_iterable(zip_longest(words, spaces, fillvalue="")))


def _far(word: str, distance: float, line: float) -> float:
    """How far a word's end is from where a line should end."""
    return abs(distance) - (line / 2 if _SENTENCE_END.search(word) else 0)
