"""How sure a bundle is of a sentence and of its words: `tandem calibrate` measures it, and the manifest keeps it.

A few numbers that a hypothesis brings along are weighed, and a rising curve says what they were worth on text with
references:

    sentence   the chrF, from 0 to 1, that translations with such numbers had
    word       the share of words with such numbers that their reference has as well

Needs no torch. Nothing is computed for it that the search has not: the scores of the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.errors import ConfigError

Floats = NDArray[np.float64]

SENTENCE_NUMBERS = ("mean score of a token", "least score", "log of the number of tokens")
WORD_NUMBERS = ("least score of its tokens", "their mean score", "mean score of the sentence's tokens")


def sentence_numbers(token_scores: Sequence[float]) -> Floats:
    """What is weighed of a sentence (N); ``token_scores``: log-probabilities, the end's too, as a hypothesis has them.

    One without any (N = 3 zeros) would be one of which nothing was decoded.
    """
    if not token_scores:
        return np.zeros(len(SENTENCE_NUMBERS))
    return np.array([np.mean(token_scores), np.min(token_scores), np.log(len(token_scores))])


def word_numbers(word_scores: Sequence[Sequence[float]], token_scores: Sequence[float]) -> Floats:
    """What is weighed of the words of a sentence (W x N).

    Args:
        word_scores: per word the log-probabilities of the tokens that it was written with, at least one.
        token_scores: of all of the sentence.
    """
    mean = sum(token_scores) / max(1, len(token_scores))
    rows = [(min(scores), sum(scores) / len(scores), mean) for scores in word_scores]
    return np.array(rows, np.float64).reshape(-1, len(WORD_NUMBERS))


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to a confidence.

    Attributes:
        weights: of the numbers; the sum is the score.
        scores: rising, at least one.
        values: the confidence at each, never falling; straight lines between, and level beyond the ends.
    """

    weights: tuple[float, ...]
    scores: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.values):
            raise ConfigError(
                f"scores and values must be equally many, at least 1, but are {len(self.scores)} and {len(self.values)}"
            )
        if any(one >= other for one, other in pairwise(self.scores)):
            raise ConfigError(f"scores must rise, but are {list(self.scores)}")
        if any(one > other for one, other in pairwise((0.0, *self.values, 1.0))):
            raise ConfigError(f"values must not fall, and lie in 0 to 1, but are {list(self.values)}")

    def __call__(self, numbers: Floats) -> Floats:
        """The confidence of each row of numbers (R x N)."""
        scores: Floats = np.interp(numbers @ np.array(self.weights), self.scores, self.values)
        return scores


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Things of like confidence: how many, their mean confidence, and what they were worth on the average."""

    count: int
    confidence: float
    measured: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """What confidences were worth on text that they were not calibrated on.

    Attributes:
        auc: chance that of two things, one of them bad, the bad one has the lower confidence; a sentence is bad where
            its chrF is below the median, a word where its reference has it not. 0.5 is worth nothing.
        bins: tenths of the things, rising.
    """

    auc: float
    bins: tuple[ReliabilityBin, ...]

    @property
    def error(self) -> float:
        """Mean distance of confidence and worth over the bins."""
        far = [abs(one.confidence - one.measured) * one.count for one in self.bins]
        return sum(far) / max(1, sum(one.count for one in self.bins))


@dataclass(frozen=True, slots=True)
class Confidence:
    """What a bundle knows of its own quality.

    Attributes:
        sentences, words: how numbers become confidences.
        sentence_reliability, word_reliability: what those were worth on the test text.
        command: measures all of it again.
    """

    sentences: Scale
    words: Scale
    sentence_reliability: Reliability
    word_reliability: Reliability
    command: str = ""

    def __post_init__(self) -> None:
        for name, numbers in (("sentences", SENTENCE_NUMBERS), ("words", WORD_NUMBERS)):
            if (weighed := len(getattr(self, name).weights)) != len(numbers):
                raise ConfigError(f"{name} must weigh {len(numbers)}: {', '.join(numbers)}; but weighs {weighed}")
