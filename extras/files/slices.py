"""A file's texts in slices: what one request to the text service holds, and what is kept once it is translated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.extras.files.bounds import Bounds, FileRefused, Segment

_AFTER_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)\]]*\s+|[。！？]")
_SPACES = re.compile(r"\s+")
_SAMPLE = 4_000  # characters by which a file's language is told


@dataclass(frozen=True, slots=True)
class Slice:
    """Texts that are translated together.

    Attributes:
        segments: per text the number of the file's segment that it is a part of.
        texts: parts of segments; a long segment is several, which joined are the segment.
        markup: whether they are HTML.
    """

    segments: tuple[int, ...]
    texts: tuple[str, ...]
    markup: bool

    @property
    def characters(self) -> int:
        """Of all texts."""
        return sum(map(len, self.texts))


def slices_of(segments: Iterable[Segment], bounds: Bounds) -> Iterator[Slice]:
    """A file's segments in slices, in order. Raises FileRefused where they have too many characters."""
    total = width = 0
    waiting: list[tuple[int, str]] = []
    markup = False
    for number, segment in enumerate(segments):
        total += len(segment.text)
        if total > bounds.characters:
            raise FileRefused.too_large("characters to translate", bounds.characters, total, "send it in several files")
        parts = [segment.text] if segment.markup else cut(segment.text, bounds.slice_characters)
        for part in parts:
            full = width + len(part) > bounds.slice_characters or len(waiting) >= bounds.slice_texts
            if waiting and (full or markup != segment.markup):
                yield _slice(waiting, markup)
                waiting, width = [], 0
            markup = segment.markup
            waiting.append((number, part))
            width += len(part)
    if waiting:
        yield _slice(waiting, markup)


def cut(text: str, limit: int) -> list[str]:
    """A text in parts of at most ``limit`` characters, cut behind sentences, else at spaces, else anywhere."""
    parts = []
    start = 0
    while len(text) - start > limit:
        end = _last(_AFTER_SENTENCE, text, start, start + limit) or _last(_SPACES, text, start, start + limit)
        end = end or start + limit
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def joined(segments: Sequence[int], texts: Sequence[str]) -> list[str]:
    """Translations by segment, those of its parts joined."""
    found: list[list[str]] = []
    for number, text in zip(segments, texts, strict=True):
        if number == len(found):
            found.append([])
        found[number].append(text)
    return ["".join(parts) for parts in found]


def _last(pattern: re.Pattern[str], text: str, start: int, limit: int) -> int | None:
    """Where the last match in a stretch of the text ends."""
    return max((match.end() for match in pattern.finditer(text, start, limit)), default=None)


def _slice(waiting: Sequence[tuple[int, str]], markup: bool) -> Slice:
    return Slice(tuple(number for number, _ in waiting), tuple(text for _, text in waiting), markup)


def read_slices(path: Path) -> Iterator[Slice]:
    """The slices that reading a file wrote."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            kept = json.loads(line)
            yield Slice(tuple(kept["segments"]), tuple(kept["texts"]), kept["markup"])


def sample_of(path: Path) -> str:
    """The beginning of a file's text."""
    texts: list[str] = []
    for part in read_slices(path):
        texts += part.texts
        if sum(map(len, texts)) > _SAMPLE:
            break
    return "\n".join(texts)[:_SAMPLE]
