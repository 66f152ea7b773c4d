"""Placeholder augmentation: teaching a model to copy ``⟨phN⟩``, so that protected text survives decoding.

In some training pairs a span that stands unchanged on both sides (a number, an address, a name) becomes the same
placeholder on both. The service later puts placeholders for protected text and glossary terms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from tandem.models.vocabulary import PLACEHOLDERS
from tandem.training.data.filters import Pair
from tandem.training.data.vocabularies import MOST_LINES

_OPEN = "⟨"
_WORD = re.compile(r"\w+")
_MOST_OF_ONE = 0.05  # of the rewritten pairs: otherwise a few frequent names would be all a model sees
_TOKEN = re.compile(
    r"""(?P<address>https?://[^\s<>"'()]*[\w/] | [\w.+-]+@[\w-]+(?:\.[\w-]+)+)
      | (?P<number>(?<![\w.,])\d+(?:[.,:]\d+)*(?!\w))
      | (?P<word>\w+)""",
    re.VERBOSE,
)


class NameFinder:
    """Tells names from words that are capitalised for other reasons (sentence starts, German nouns).

    A word is a name if on every side of the corpus it is hardly ever written in lower case.

    Args:
        columns: the text of each side; of very much text every so-manieth line is looked at.
    """

    def __init__(self, columns: Sequence[Sequence[str]]) -> None:
        step = max(1, -(-len(columns[-1]) // MOST_LINES))
        texts = (set(islice(column, 0, None, step)) for column in columns)
        self._counts = [Counter(word for text in distinct for word in _WORD.findall(text)) for distinct in texts]

    def is_name(self, word: str) -> bool:
        """Whether a word is copied as it is: a name, or an identifier such as ``max_length`` or ``FastAPI``."""
        if len(word) < 2:
            return False
        if "_" in word.strip("_") or (word != word.lower() and not word[1:].islower()):
            return True
        if not word[0].isupper():
            return False
        lower = word.lower()
        return all(10 * counts[lower] <= counts[word] for counts in self._counts)


def choose_placeholders(
    columns: Sequence[Sequence[str]], *, share: float, rng: np.random.Generator, equal_counts: bool = True
) -> dict[int, Pair]:
    """Pairs rewritten with placeholders: pair index -> the rewritten texts, sources first, then the target.

    Args:
        columns: parallel text, the sources in order and the target last.
        share: how many of all pairs to rewrite; fewer if not enough have a span to copy.
        rng: decides which pairs, spans and placeholder numbers.
        equal_counts: a span must stand equally often on every side (translation), else at least once (summaries).
    """
    wanted = round(share * len(columns[-1]))
    chosen: dict[int, Pair] = {}
    if not wanted:
        return chosen
    names = NameFinder(columns)
    used: Counter[str] = Counter()
    most = max(3, round(_MOST_OF_ONE * wanted))
    for index in map(int, rng.permutation(len(columns[-1]))):
        pair = tuple(column[index] for column in columns)
        if any(_OPEN in text for text in pair):  # a placeholder that someone typed must not become a real one
            continue
        spans = [_spans(text, names) for text in pair]
        candidates = [span for span in _copied(pair, spans, equal_counts) if used[span] < most]
        if not candidates:
            continue
        table = _numbered(candidates, rng)
        used.update(table.keys())
        chosen[index] = tuple(_replace(text, found, table) for text, found in zip(pair, spans, strict=True))
        if len(chosen) == wanted:
            break
    return chosen


def _copied(pair: Pair, spans: Sequence[Sequence[tuple[int, int]]], equal_counts: bool) -> list[str]:
    """The spans of the target that stand on every side."""
    counts = [Counter(text[start:end] for start, end in found) for text, found in zip(pair, spans, strict=True)]
    return [
        span
        for span, count in counts[-1].items()
        if all(other[span] == count if equal_counts else other[span] for other in counts[:-1])
    ]


def _numbered(candidates: Sequence[str], rng: np.random.Generator) -> dict[str, str]:
    """Some of the spans, each with its own placeholder: mostly one, sometimes more, as decoding meets both."""
    amount = min(len(candidates), len(PLACEHOLDERS), int(rng.geometric(0.6)))
    picked = [candidates[index] for index in rng.permutation(len(candidates))[:amount].tolist()]
    numbers = rng.permutation(len(PLACEHOLDERS))[:amount].tolist()
    return {span: PLACEHOLDERS[number] for span, number in zip(picked, numbers, strict=True)}


def _spans(text: str, names: NameFinder) -> list[tuple[int, int]]:
    """Start and end of every span that could be copied; neighbouring names are one span."""
    spans: list[tuple[int, int]] = []
    name_end = -1  # where a name ended that the next word may continue
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if match.lastgroup == "word":
            if not names.is_name(match[0]):
                continue
            if start == name_end + 1 and text[name_end] == " ":
                start = spans.pop()[0]
            name_end = end
        spans.append((start, end))
    return spans


def _replace(text: str, spans: Sequence[tuple[int, int]], table: dict[str, str]) -> str:
    parts, done = [], 0
    for start, end in spans:
        replacement = table.get(text[start:end])
        if replacement:
            parts += [text[done:start], replacement]
            done = end
    return "".join([*parts, text[done:]])
