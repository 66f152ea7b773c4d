"""The text of a subtitle: lines that belong together are one text, and are broken again into as many lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from extras.files.formats.passages import Part, Passage, pieces_of
from extras.files.formats.txt import one_line

_SPEAKER = re.compile(r"^(?:<[^<>]*>)?\s*[-–—‐]")
_WORD = re.compile(r"(?:<[^<>]*>|[^\s<]|<)+")


def cue_parts(
    content: str, tags: re.Pattern[str], read: Callable[[str], str] = str, escape: Callable[[str], str] = str
) -> Iterator[Part]:
    """A subtitle's lines in groups that belong together.

    Lines of one speaker are one sentence broken to fit the screen; where a line begins with a dash, somebody else
    speaks.

    Args:
        content: of the subtitle.
        tags: matches what is no text.
        read, escape: resolves a text's entities, and writes them.
    """
    whole = content.rstrip("\n")
    lines = whole.split("\n")
    apart = any(_SPEAKER.match(line) for line in lines[1:])
    for number, group in enumerate([line] for line in lines) if apart else ((0, lines),):
        text = " ".join(line.strip() for line in group).strip()
        pieces = pieces_of(text, (tag.span() for tag in tags.finditer(text)), read)
        pieces = [piece._replace(text="") if tags.fullmatch(piece.raw) else piece for piece in pieces]
        broken = partial(_broken, lines=len(group), tags=tags)
        yield "\n" if number else ""
        yield Passage(pieces, lambda new: escape(one_line(new)), broken, raw="\n".join(group))
    yield content[len(whole) :]


def _broken(text: str, lines: int, tags: re.Pattern[str]) -> str:
    """A text on at most so many lines of about the same length, broken at spaces outside of tags."""
    words = _WORD.findall(text)
    widths = [len(tags.sub("", word)) for word in words]
    whole = sum(widths) + len(words) - 1
    broken, width, done = [], 0, 0
    for word, own in zip(words, widths, strict=True):
        step = own + 1
        border = whole * (done + 1) / lines
        if width and done + 1 < lines and width + step / 2 > border:
            broken.append("\n")
            done += 1
        elif width:
            broken.append(" ")
        broken.append(word)
        width += step
    return "".join(broken)
