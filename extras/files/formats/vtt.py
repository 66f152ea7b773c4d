"""WebVTT: the text of each cue is a segment, or that of several with one sentence; times, settings, notes, styles,
regions and cue tags stay."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial

from tandem.extras.files.bounds import FileRefused, SourceFile
from tandem.extras.files.formats.cues import cue_parts
from tandem.extras.files.formats.encoding import Text, read_text
from tandem.extras.files.formats.passages import Part, Parts, text_format
from tandem.extras.files.formats.spread import over_cues

_BORDER = re.compile(r"(\n{2,})")
_HEADER = re.compile(r"WEBVTT.*\n(?:(?!.*-->).+\n)*(?=.*-->)")  # with a cue right below it
_OTHER = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")
_TIME = r"(?:\d{2,}:)?\d{2}:\d{2}\.\d{3}"
_TIMES = re.compile(rf"{_TIME}[ \t]+-->[ \t]+{_TIME}(?:[ \t].*)?")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>|</?>|<[\d:.]+>")


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source).unix()
    if not re.match(r"WEBVTT(?=[ \t\n]|$)", text.characters):
        raise FileRefused.wrong_type("vtt", "no subtitles (they begin with WEBVTT)")
    return text, tuple(over_cues([*_parts(text.characters)]))


read, write = text_format(_document)
"""The file with its cues translated, each on as many lines as before."""


def _parts(characters: str) -> Iterator[Part]:
    header = _HEADER.match(characters)
    start = header.end() if header else 0
    yield characters[:start]
    line = 1 + characters.count("\n", 0, start)
    for block in _BORDER.split(characters[start:]):
        yield from _block(block, line)
        line += block.count("\n")


def _block(block: str, line: int) -> Iterator[Part]:
    """A cue: a name perhaps, times, and its text; any other block is not translated."""
    lines = block.split("\n")
    head = next((number for number, text in enumerate(lines[:2], 1) if "-->" in text), 0)
    if not head or _OTHER.match(block):
        yield block
        return
    if not _TIMES.fullmatch(lines[head - 1].strip()):
        example = "00:01.000 --> 00:02.500"
        raise FileRefused.broken(f"the times in line {line + head - 1} cannot be read; write them as {example}")
    yield "\n".join([*lines[:head], ""]) if lines[head:] else block
    if lines[head:]:
        yield from cue_parts("\n".join(lines[head:]), _TAG, html.unescape, partial(html.escape, quote=False))
