"""Two parallel files as pairs: what is read, what is left out, and what looks wrong.

What is left out here is what no recipe would want; a recipe's own filters (length, ratio) come on top of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from tandem.models.errors import CorpusError
from tandem.training.data.config import DataConfig, FilterConfig
from tandem.training.data.corpus import clean_line, read_parallel
from tandem.training.data.filters import PairFilter

Pair = tuple[str, str]  # source, target

CHARACTERS_PER_TOKEN = 3.5  # of subwords in text with alphabets, at the vocabulary sizes of `extras.starter.sizes`
LONGEST = 256  # tokens
RATIO = 4.0  # of a pair's words
_WORDS_OF_NAMES = 3  # a longer text that equals its translation has not been translated
_FORM = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,15}(?![^\W\d_])")  # a subword has at most 16 characters, its space too
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Screened:
    """What two files hold.

    Attributes:
        pairs: that are left, each once, normalised, in the order of the files.
        lines: of each file.
        dropped: lines that are left out, by reason: "empty" (a side), "duplicate", "untranslated".
        median_ratio: of the longer side's words over the other's; far above 1 where a side is written without spaces.
        correlation: of the sides' lengths, as logarithms; near 0 where lines do not belong together.
    """

    pairs: tuple[Pair, ...]
    lines: int
    dropped: dict[str, int]
    median_ratio: float
    correlation: float

    @property
    def has_words(self) -> bool:
        """Whether both sides separate words by spaces, so that counting them says something."""
        return self.median_ratio <= 2.5

    def longer(self, side: int, tokens: int) -> float:
        """Share of the pairs of which this side has more tokens, by estimate."""
        return float(np.mean([estimated_tokens(pair[side]) > tokens for pair in self.pairs]))

    def uneven(self, ratio: float) -> float:
        """Share of the pairs whose longer side has more than so many times the words of the other."""
        words = np.array([[len(text.split()) for text in pair] for pair in self.pairs])
        return float(np.mean(words.max(axis=1) > ratio * words.min(axis=1)))

    def warnings(self, data: DataConfig, *, summaries: bool = False) -> list[str]:
        """What looks wrong, each with what to do.

        Args:
            data: of the recipe that trains on the text: how long it may be.
            summaries: whether the targets are that, and as long as they like.
        """
        found = []
        if self.correlation < 0.3 and not summaries:
            found.append(
                f"the lengths of the lines hardly go together (correlation {self.correlation:.2f}, most corpora have"
                " 0.7 and more): does line 1 of one file translate line 1 of the other, and so on to the end?"
            )
        if (untranslated := self.dropped.get("untranslated", 0)) > 0.05 * self.lines:
            share = untranslated / self.lines
            found.append(f"{share:.0%} of the lines equal their translation: are parts of a file not translated?")
        found += self._lengths(data, summaries)
        ratio = data.filters.max_length_ratio
        if self.has_words and ratio and (uneven := self.uneven(ratio)) > 0.05:
            found.append(
                f"{uneven:.1%} of the pairs have more than {ratio:g} times as many words on one side and will"
                " not be trained on: look at some of them"
            )
        return found

    def _lengths(self, data: DataConfig, summaries: bool) -> Iterator[str]:
        """What of the text is too long for a recipe."""
        source, target = data.max_source_tokens, data.max_target_tokens
        split = "shorten them" if summaries else "split paragraphs into sentences, in both files alike"
        if data.truncate_source:
            if (cut := self.longer(0, source)) > 0.01:
                yield (
                    f"{cut:.1%} of the sources are longer than about {source} tokens: the model reads their beginning,"
                    " and the rest is cut off"
                )
            if (dropped := self.longer(1, target)) > 0.01:
                yield (
                    f"{dropped:.1%} of the targets are longer than about {target} tokens, and those pairs will not be"
                    f" trained on: {split}"
                )
        elif (dropped := float(np.mean([_too_long(pair, source, target) for pair in self.pairs]))) > 0.01:
            yield (
                f"{dropped:.1%} of the pairs are longer than about {max(source, target)} tokens and will not be"
                f" trained on: {split}"
            )


def screen(source: Path, target: Path, *, same_language: bool = False) -> Screened:
    """Read two files, one segment a line (plain, ``.gz``, ``.xz`` or ``.bz2``).

    Args:
        source: the texts.
        target: their translations (or summaries), line by line.
        same_language: whether equal sides are no fault.

    Raises:
        CorpusError: a file cannot be read or is not UTF-8, the files differ in length, or no pair is left.
    """
    columns = read_parallel([source, target])
    lines = [(clean_line(one), clean_line(other)) for one, other in zip(*columns, strict=True)]
    translated = [pair for pair in lines if same_language or not _is_untranslated(*pair)]
    pairs = PairFilter(FilterConfig(), deduplicate=True)
    kept = tuple(translated[index] for index in pairs.keep(list(zip(*translated, strict=True))))
    dropped = dict(pairs.dropped + Counter(untranslated=len(lines) - len(translated)))
    if not kept:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "the files are empty"
        raise CorpusError(f"{source} and {target}: no pair is left of {len(lines):,} lines ({counts})")
    return _measured(kept, len(lines), dropped)


def estimated_tokens(text: str) -> int:
    """About how many subwords a text has: a word of an alphabet two, a Chinese or Korean character one."""
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return ceil((len(text) - wide) / CHARACTERS_PER_TOKEN) + wide


def character_count(texts: Iterable[str]) -> int:
    """How many different characters make up 99.95 % of the text: a vocabulary has them all."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    ranked = np.cumsum(sorted(counts.values(), reverse=True))
    return int(np.searchsorted(ranked, 0.9995 * ranked[-1])) + 1


def form_count(texts: Iterable[str], most: int) -> int:
    """How many different words the texts have that can be subwords; no more than ``most`` are counted.

    They are of letters alone, since digits and signs are subwords of their own, two letters or more, and not too long.
    """
    forms: set[str] = set()
    for text in texts:
        forms.update(_FORM.findall(text))
        if len(forms) >= most:
            return most
    return len(forms)


def _too_long(pair: Pair, source: int, target: int) -> bool:
    return estimated_tokens(pair[0]) > source or estimated_tokens(pair[1]) > target


def _is_untranslated(source: str, target: str) -> bool:
    return source == target and len(source.split()) > _WORDS_OF_NAMES


def _measured(pairs: tuple[Pair, ...], lines: int, dropped: dict[str, int]) -> Screened:
    words = np.array([[len(text.split()) for text in pair] for pair in pairs])
    ratios = words.max(axis=1) / words.min(axis=1)
    return Screened(
        pairs,
        lines,
        dropped,
        median_ratio=float(np.median(ratios)),
        correlation=_correlation(pairs),
    )


def _correlation(pairs: Sequence[Pair]) -> float:
    """Of the logarithms of the sides' lengths in characters; 1 where all lines of a side are as long as one another."""
    lengths = np.log([[len(text) for text in pair] for pair in pairs])
    if np.ptp(lengths, axis=0).min() == 0:
        return 1.0
    return float(np.corrcoef(lengths.T)[0, 1])
