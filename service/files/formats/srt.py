"""Subtitles: each one is a segment; numbers, times and positions stay.

Read and written by ``srt`` and not by pysubs2: srt keeps each subtitle's number, its times to the millisecond, what
stands behind them and its text as it is, and says where it cannot read a file. pysubs2 converts to the SubStation
format and back, numbers subtitles anew, and rewrites tags on the way.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import srt  # type: ignore[import-untyped]

from service.files.bounds import Bounds, FileRefused, Segment
from service.files.formats.encoding import Text, read_text
from service.files.formats.txt import one_line
from service.text.layout import is_translatable

_TAG = re.compile(r"</?(?:[biu]|font)(?:\s[^<>\n]*)?>", re.IGNORECASE)
_POSITION = re.compile(r"^(?:\{\\[^{}\n]*\}\s*)+")
_SPEAKER = re.compile(r"^(?:<[^<>]*>)?\s*[-–—‐]")


def read(path: Path, bounds: Bounds) -> Iterator[Segment]:
    """The texts of the subtitles. Raises FileRefused."""
    for subtitle in _parse(read_text(path, "srt")):
        yield from (segment for segment in _segments(subtitle.content) if segment)


def write(path: Path, translations: Sequence[str], result: Path, bounds: Bounds) -> None:
    """The file with its subtitles translated, each on as many lines as before."""
    text = read_text(path, "srt")
    remaining = iter(translations)
    subtitles = list(_parse(text))
    for subtitle in subtitles:
        subtitle.content = _rewritten(subtitle.content, remaining)
    end = "\r\n" if "\r\n" in text.characters else "\n"
    composed = srt.compose(subtitles, reindex=False, strict=False, eol=end)
    result.write_bytes(text.bytes_of(composed))


def _parse(text: Text) -> list[srt.Subtitle]:
    try:
        subtitles = list(srt.parse(text.characters.replace("\r\n", "\n")))
    except srt.SRTParseError as error:
        line = text.characters.count("\n", 0, error.expected_start) + 1
        message = f"the subtitles cannot be read from line {line} on; write the times as 00:00:01,000 --> 00:00:02,500"
        raise FileRefused.broken(message) from error
    except (ValueError, OverflowError) as error:
        raise FileRefused.broken("a subtitle's number or time is out of bounds; correct it") from error
    if not subtitles:
        raise FileRefused.wrong_type("srt", "no subtitle")
    return subtitles


def _groups(content: str) -> list[tuple[str, list[str]]]:
    """The lines that belong together, each group with what stands before it.

    Lines of one speaker are one sentence broken to fit the screen; where a line begins with a dash, somebody else
    speaks.
    """
    match = _POSITION.match(content)
    lead = match[0] if match else ""
    lines = content[len(lead) :].split("\n")
    if any(_SPEAKER.match(line) for line in lines[1:]):
        return [(lead if number == 0 else "", [line]) for number, line in enumerate(lines)]
    return [(lead, lines)]


def _segments(content: str) -> Iterator[Segment | None]:
    """Per group of lines its text, or None where there is nothing to translate in it."""
    for _, lines in _groups(content):
        text = " ".join(line.strip() for line in lines).strip()
        if not is_translatable(_TAG.sub("", text)):
            yield None
        elif _TAG.search(text):
            yield Segment(_as_html(text), markup=True)
        else:
            yield Segment(text)


def _rewritten(content: str, translations: Iterator[str]) -> str:
    parts = []
    for (lead, lines), segment in zip(_groups(content), _segments(content), strict=True):
        if segment is None:
            parts.append(lead + "\n".join(lines))
            continue
        text = one_line(next(translations))
        parts.append(lead + _broken(_from_html(text) if segment.markup else text, len(lines)))
    return "\n".join(parts)


def _as_html(text: str) -> str:
    """Tags stay; a ``<`` or ``&`` that is none is escaped."""
    pieces, last = [], 0
    for tag in _TAG.finditer(text):
        pieces += [html.escape(text[last : tag.start()], quote=False), tag[0]]
        last = tag.end()
    return "".join([*pieces, html.escape(text[last:], quote=False)])


def _from_html(text: str) -> str:
    pieces, last = [], 0
    for tag in _TAG.finditer(text):
        pieces += [html.unescape(text[last : tag.start()]), tag[0]]
        last = tag.end()
    return "".join([*pieces, html.unescape(text[last:])])


def _broken(text: str, lines: int) -> str:
    """A text on at most so many lines of about the same length, broken at spaces outside of tags."""
    words = re.findall(r"(?:<[^<>]*>|[^\s<]|<)+", text)
    whole = sum(map(_width, words)) + len(words) - 1
    broken, width, done = [], 0, 0
    for word in words:
        step = _width(word) + 1
        border = whole * (done + 1) / lines
        if width and done + 1 < lines and width + step / 2 > border:
            broken.append("\n")
            done += 1
        elif width:
            broken.append(" ")
        broken.append(word)
        width += step
    return "".join(broken)


def _width(word: str) -> int:
    return len(_TAG.sub("", word))
