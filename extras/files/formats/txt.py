"""Plain text: each line with words in it is a segment; everything else comes back byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tandem.extras.files.bounds import Segment, SourceFile
from tandem.extras.files.formats.encoding import read_text
from tandem.service.text.layout import is_translatable

_LINE_END = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def read(source: SourceFile) -> Iterator[Segment]:
    """The lines of a file that hold a word. Raises FileRefused."""
    for line in read_text(source).characters.splitlines():
        if is_translatable(line):
            yield Segment(line.strip())


def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
    """The file with its lines translated: encoding, byte-order mark, line ends and indentation stay."""
    text = read_text(source)
    remaining = iter(translations)
    lines = []
    for line in text.characters.splitlines(keepends=True):
        if is_translatable(line):
            core = line.strip()
            start = line.index(core)
            lines.append(line[:start] + one_line(next(remaining)) + line[start + len(core) :])
        else:
            lines.append(line)
    result.write_bytes(text.bytes_of("".join(lines)))


def one_line(text: str) -> str:
    """A translation without line ends: it stands where one line stood."""
    return _LINE_END.sub(" ", text)
