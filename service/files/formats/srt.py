"""Subtitles: each one is a segment; numbers, times and positions stay.

Read and written by ``srt`` and not by pysubs2: srt keeps each subtitle's number, its times to the millisecond, what
stands behind them and its text as it is, and says where it cannot read a file. pysubs2 converts to the SubStation
format and back, numbers subtitles anew, and rewrites tags on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import srt  # type: ignore[import-untyped]

from service.files.bounds import FileRefused, Segment, SourceFile
from service.files.formats.cues import cue_parts
from service.files.formats.encoding import Text, read_text
from service.files.formats.passages import Part, rendered, segments_of

_TAG = re.compile(r"</?(?:[biu]|font)(?:\s[^<>\n]*)?>", re.IGNORECASE)
_POSITION = re.compile(r"^(?:\{\\[^{}\n]*\}\s*)+")


def read(source: SourceFile) -> Iterator[Segment]:
    """The texts of the subtitles. Raises FileRefused."""
    for subtitle in _parse(read_text(source)):
        yield from segments_of(_parts(subtitle.content), source.bounds.markup_characters)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The file with its subtitles translated, each on as many lines as before."""
    text = read_text(source)
    remaining = iter(translations)
    subtitles = list(_parse(text))
    for subtitle in subtitles:
        parts = _parts(subtitle.content)
        subtitle.content = rendered(parts, lambda: next(remaining), source.bounds.markup_characters)
    end = "\r\n" if "\r\n" in text.characters else "\n"
    composed = srt.compose(subtitles, reindex=False, strict=False, eol=end)
    result.write_bytes(text.bytes_of(composed))


def _parts(content: str) -> Iterator[Part]:
    position = _POSITION.match(content)
    lead = position[0] if position else ""
    yield lead
    yield from cue_parts(content[len(lead) :], _TAG)


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
