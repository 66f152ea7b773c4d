"""Sentences that go on over several subtitles: translated as one text, which is divided among the subtitles again.

A subtitle that ends in the midst of a sentence is no sentence: translated alone, its end and the next one's beginning
are made up. Numbers, times and how many subtitles there are stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise

from tandem.extras.files.bounds import Segment
from tandem.extras.files.formats.passages import Following, Part, Passage

_MOST = 6  # subtitles of one text
_ARROW = "-->"
_NEXT = re.compile(r"\n(?:\{\\[^{}\n]*\}\s*)*\Z")  # what is before a subtitle's text: the times' line, a position
_ENDED = re.compile(r"[.!?…:;♪♫*)\]}>–—-][\"'”’»]*\Z")
_CLAUSE = re.compile(r"[,;:–—][\"'”’»)]*\Z")
_SENTENCE = re.compile(r"[.!?…][\"'”’»)]*\Z")


@dataclass(frozen=True, slots=True)
class Spread:
    """Texts of subtitles that are one text, and what stands between them.

    Attributes:
        passages: of the subtitles, all without marks in their texts.
        between: what is in the file between each two.
    """

    passages: tuple[Passage, ...]
    between: tuple[str, ...]

    @property
    def raw(self) -> str | None:
        """It as it was written."""
        return self._joined([passage.raw or "" for passage in self.passages])

    def segments(self, limit: int) -> Iterator[Segment]:
        """The one text."""
        yield Segment(" ".join(self._texts))

    def render(self, following: Following, limit: int) -> str:
        """The subtitles, each with its share of the translation."""
        texts, new = self._texts, following()
        shares = texts if new == " ".join(texts) else divided(new, [*map(len, texts)])
        pairs = zip(self.passages, shares, strict=True)
        return self._joined([passage.render(partial(str, share), limit) for passage, share in pairs])

    @property
    def _texts(self) -> list[str]:
        return [passage.plain or "" for passage in self.passages]

    def _joined(self, written: Sequence[str]) -> str:
        return "".join([*(one + gap for one, gap in zip(written, self.between, strict=False)), written[-1]])


def over_cues(parts: Sequence[Part]) -> Iterator[Part]:
    """A file's parts, with the texts of subtitles joined where a sentence goes on from one to the next.

    It does where the one ends without a sign for it and the other begins with a small letter, in a file whose sentences
    begin with capitals; or where the one ends in a comma.
    """
    texts = [part.plain or "" for part in parts if isinstance(part, Passage)]
    cased = any(next(filter(str.isalpha, text), "").isupper() for text in texts)
    passages: list[Passage] = []
    between: list[str] = []
    gap = ""
    for part in parts:
        if not passages:
            if isinstance(part, Passage):
                passages = [part]
            else:
                yield part
        elif isinstance(part, str):
            gap += part
        else:
            if isinstance(part, Passage) and len(passages) < _MOST and _goes_on(passages[-1], gap, part, cased):
                between.append(gap)
                passages.append(part)
            else:
                yield from (_spread(passages, between), gap)
                passages, between = ([part], []) if isinstance(part, Passage) else ([], [])
                if not passages:
                    yield part
            gap = ""
    if passages:
        yield from (_spread(passages, between), gap)


def _spread(passages: Sequence[Passage], between: Sequence[str]) -> Part:
    return Spread(tuple(passages), tuple(between)) if between else passages[0]


def _goes_on(passage: Passage, gap: str, following: Passage, cased: bool) -> bool:
    text, after = passage.plain, following.plain
    if not text or not after or gap.count(_ARROW) != 1 or not _NEXT.search(gap):
        return False
    if text.endswith(","):
        return after[0].isalnum()
    return cased and after[0].islower() and not _ENDED.search(text)


def divided(text: str, sizes: Sequence[int]) -> list[str]:
    """A text in as many shares as there are sizes, of about their proportions.

    It is cut at spaces: where a sentence or a clause ends, if that is near, else where the proportions are best. Each
    share has a word, as far as there are enough.
    """
    words = text.split(" ")
    ends = list(accumulate(len(word) + 1 for word in words))
    near = ends[-1] / len(sizes)
    cuts = [0]
    for number, target in enumerate(accumulate(sizes[:-1]), 1):
        first, last = cuts[-1] + 1, max(cuts[-1] + 1, len(words) - (len(sizes) - number))
        wanted = ends[-1] * target / sum(sizes)
        places = range(min(first, len(words)), min(last, len(words)) + 1)
        cuts.append(min(places, key=lambda place: _far(words[place - 1], ends[place - 1] - wanted, near)))
    return [" ".join(words[start:end]) for start, end in pairwise([*cuts, len(words)])]


def _far(word: str, distance: float, near: float) -> float:
    """How far a word's end is from where a share should end."""
    bonus = near / 2 if _SENTENCE.search(word) else near / 4 if _CLAUSE.search(word) else 0.0
    return abs(distance) - bonus
