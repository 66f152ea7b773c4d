"""Scores by sentence length, and quality and speed by beam size."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.metrics import Score

Scorer = Callable[[Sequence[str], Sequence[str]], list[Score]]
EDGES = (10, 20, 30, 40, 50)


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
    for low, high in zip((0, *edges), (*edges, None), strict=True):
        chosen = [i for i, length in enumerate(lengths) if length > low and (high is None or length <= high)]
        if chosen:
            score = scorer([hypotheses[i] for i in chosen], [references[i] for i in chosen])[0]
            found.append(LengthScore(low + 1, high, len(chosen), score.metric, score.value))
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
