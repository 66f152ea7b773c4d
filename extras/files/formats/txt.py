"""Plain text: each line with words in it is a segment, and so is a paragraph that is broken into lines of a width;
everything else comes back byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tandem.extras.files.bounds import Segment, SourceFile
from tandem.extras.files.formats.encoding import read_text
from tandem.extras.files.formats.wrapping import paragraphs_of
from tandem.service.text.layout import is_translatable

_LINE_END = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def read(source: SourceFile) -> Iterator[Segment]:
    """The lines and paragraphs of a file that hold a word. Raises FileRefused."""
    for paragraph in paragraphs_of(read_text(source).characters):
        if is_translatable(paragraph.text):
            yield Segment(paragraph.text)


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The file with its texts translated: encoding, byte-order mark, line ends, indentation and width stay."""
    text = read_text(source)
    remaining = iter(translations)
    written = []
    for paragraph in paragraphs_of(text.characters):
        new = one_line(next(remaining)) if is_translatable(paragraph.text) else paragraph.text
        written.append(paragraph.raw if new == paragraph.text else paragraph.written(new))
    result.write_bytes(text.bytes_of("".join(written)))


def one_line(text: str) -> str:
    """A translation without line ends: it stands where one line stood."""
    return _LINE_END.sub(" ", text)
