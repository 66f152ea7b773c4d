"""Subtitles: each one is a segment, or several with one sentence; numbers, times and positions stay.

Read by ``srt`` and not by pysubs2: srt gives each subtitle's text as it is, and says where it cannot read a file.
pysubs2 converts to the SubStation format and back, numbers subtitles anew, and rewrites tags on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import srt  # type: ignore[import-untyped]

from tandem.extras.files.bounds import FileRefused, SourceFile
from tandem.extras.files.formats.cues import cue_parts
from tandem.extras.files.formats.encoding import Text, read_text
from tandem.extras.files.formats.passages import Part, Parts, text_format
from tandem.extras.files.formats.spread import over_cues

_TAG = re.compile(r"</?(?:[biu]|font)(?:\s[^<>\n]*)?>|\{\\[^{}\n]{1,100}\}", re.IGNORECASE)
_POSITION = re.compile(r"^(?:\{\\[^{}\n]*\}\s*)+")


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source).unix()
    return text, tuple(over_cues([*_parts(text.characters)]))


read, write = text_format(_document)
"""The file with its subtitles translated, each on as many lines as before."""


def _parts(characters: str) -> Iterator[Part]:
    done = 0
    for content in _contents(characters):
        arrow = characters.index(">", done)
        start = characters.find("\n", arrow) + 1 or len(characters)
        end = start + len(content)
        if position := _POSITION.match(content):
            start += position.end()
        yield characters[done:start]
        yield from cue_parts(characters[start:end], _TAG)
        done = end
    yield characters[done:]


def _contents(characters: str) -> list[str]:
    """The texts of the subtitles."""
    try:
        contents = [subtitle.content for subtitle in srt.parse(characters)]
    except srt.SRTParseError as error:
        line = characters.count("\n", 0, error.expected_start) + 1
        message = f"the subtitles cannot be read from line {line} on; write the times as 00:00:01,000 --> 00:00:02,500"
        raise FileRefused.broken(message) from error
    except (ValueError, OverflowError) as error:
        raise FileRefused.broken("a subtitle's number or time is out of bounds; correct it") from error
    if not contents:
        raise FileRefused.wrong_type("srt", "no subtitle")
    return contents
