"""Scores by sentence length, and quality and speed by beam size."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from models.translator import Column, encode_columns
from models.vocabulary import Vocabulary
from training.metrics import Score

Scorer = Callable[[Sequence[str], Sequence[str]], list[Score]]
EDGES = (10, 20, 30, 40, 50)


@dataclass(frozen=True, slots=True)
class LengthClass:
    """Sentences of like length.

    Attributes:
        shortest: source tokens of the shortest that belong here.
        longest: of the longest; None without a bound.
        rows: which sentences these are.
    """

    shortest: int
    longest: int | None
    rows: tuple[int, ...]

    @property
    def shown(self) -> str:
        """Its bounds, such as 11-20 or 51+."""
        return f"{self.shortest}-{self.longest}" if self.longest else f"{self.shortest}+"


def length_classes(lengths: Sequence[int], edges: Sequence[int] = EDGES) -> list[LengthClass]:
    """Every class that has sentences, shortest first; sentences of no token belong to the first class.

    Args:
        lengths: source tokens of each sentence, without EOS.
        edges: the last length of each class but the open one.
    """
    found = []
    for low, high in zip((0, *edges), (*edges, None), strict=True):
        above = low if low else -1
        rows = tuple(i for i, length in enumerate(lengths) if length > above and (high is None or length <= high))
        if rows:
            found.append(LengthClass(low + 1, high, rows))
    return found


def source_lengths(vocabularies: Sequence[Vocabulary | None], lines: Sequence[Column]) -> list[int]:
    """Tokens of each sentence's longest text, without EOS; rows of its longest matrix where there is no text."""
    columns = encode_columns(vocabularies, lines, sys.maxsize)
    texts = [column for column, vocabulary in zip(columns, vocabularies, strict=True) if vocabulary]
    ends = 1 if texts else 0
    return [max(map(len, row)) - ends for row in zip(*(texts or columns), strict=True)]


@dataclass(frozen=True, slots=True)
class LengthScore:
    """The score of the sentences whose longest source has ``shortest`` to ``longest`` tokens (None: no bound)."""

    shortest: int
    longest: int | None
    sentences: int
    metric: str
    value: float


def scores_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    scorer: Scorer,
    edges: Sequence[int] = EDGES,
) -> list[LengthScore]:
    """The first metric of ``scorer`` for every length class that has sentences.

    Args:
        hypotheses: decoded text.
        references: parallel to it.
        lengths: source tokens of each, without EOS.
        scorer: of a whole set.
        edges: the last length of each class but the open one.
    """
    found = []
    for one in length_classes(lengths, edges):
        score = scorer([hypotheses[i] for i in one.rows], [references[i] for i in one.rows])[0]
        found.append(LengthScore(one.shortest, one.longest, len(one.rows), score.metric, score.value))
    return found


@dataclass(frozen=True, slots=True)
class BeamSpeed:
    """What a beam size costs and gives (ConvS2S, table 3).

    Attributes:
        beam_size: K.
        seconds: median over the passes of decoding the whole set, tokenisation included.
        sentences_per_second: sentences over that median.
        metric: of ``value``; empty without references.
        value: the score at this beam size.
    """

    beam_size: int
    seconds: float
    sentences_per_second: float
    metric: str
    value: float


def speed_by_beam(
    decode: Callable[[int], Sequence[str]],
    beam_sizes: Sequence[int],
    references: Sequence[str],
    scorer: Scorer,
    *,
    passes: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> list[BeamSpeed]:
    """Decode the same set at every beam size, taking turns, so that a busy moment does not fall on one of them.

    Args:
        decode: decodes the whole set with a beam size.
        beam_sizes: to be compared.
        references: of the set; may be empty.
        scorer: of a whole set.
        passes: over the set, for each beam size.
        clock: seconds.
    """
    seconds: dict[int, list[float]] = {size: [] for size in beam_sizes}
    texts: dict[int, Sequence[str]] = {}
    for _ in range(passes):
        for size in beam_sizes:
            started = clock()
            texts[size] = decode(size)
            seconds[size].append(clock() - started)
    found = []
    for size in beam_sizes:
        median = statistics.median(seconds[size])
        score = scorer(texts[size], references)[0] if references else Score("", 0.0, "")
        found.append(BeamSpeed(size, median, len(texts[size]) / median, score.metric, score.value))
    return found
