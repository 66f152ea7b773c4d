"""IWSLT's training text, ``train.tags.*``: one sentence a line, between lines that describe the talk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PREFIX = "train.tags."
# A talk's title and description are translated like its sentences; the corpus has always been used with them.
_KEPT = ("title", "description")
_DROPPED = ("url", "talkid", "keywords", "speaker", "reviewer", "translator")
_FRAMES = ("doc", "transcript")
_ELEMENT = re.compile(rf"\s*<({'|'.join(_KEPT + _DROPPED)})(?: [^<>]*)?>(.*)</\1>\s*")
_FRAME = re.compile(rf"\s*</?({'|'.join(_FRAMES)})(?: [^<>]*)?>\s*")


def tagged_lines(lines: Iterable[str]) -> Iterator[str]:
    """The sentences, titles and descriptions, in order. Any other mark-up is text."""
    for line in lines:
        if found := _ELEMENT.fullmatch(line):
            if found[1] in _KEPT:
                yield found[2]
        elif not _FRAME.fullmatch(line):
            yield line
