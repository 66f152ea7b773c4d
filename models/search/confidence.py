"""How sure a bundle is of a sentence and of its words: `tandem calibrate` measures it, and the manifest keeps it.

A few numbers that a hypothesis brings along are weighed, and a rising curve says what they were worth on text with
references:

    sentence   the chrF, from 0 to 1, that translations with such numbers had
    word       the share of words with such numbers that their reference has as well

Scores of tokens are there anyway. What the model looked at costs the search a pass through its decoder, and tells
more: a bundle that was calibrated with it has scales of both kinds, and falls back on the scores alone where a
hypothesis brings no attention, or one for each of several sources.

Source: Rikters and Fishel, Confidence through Attention, 2017: source tokens that received too little or too much
(their coverage deviation penalty) and attention that is spread (their absentmindedness penalty, an entropy) go with bad
translations. Theirs is the sum of such numbers; here each is weighed, and those are taken that told most on held-out
text beside the scores. Of attention A (T target tokens x S source tokens, the ends too, rows sum to 1), with the
coverage c_j = sum_i A_ij:

    of a sentence   1/T sum_i log max_j A_ij       how sharply it looked; tells more than the rows' entropy
                    1/T sum_i A_iS                 how much of it looked at the source's end: at nothing
    of a word       log 1/W sum_i c_j*(i)          whether what its W tokens looked at most, j*(i) = argmax_j A_ij, was
                                                   looked at by other tokens as well
                    max_i max_j A_ij               the largest weight of its tokens

Needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import ConfigError
from tandem.models.search.hypotheses import Hypothesis

Floats = NDArray[np.float64]

SENTENCE_NUMBERS = ("mean score of a token", "least score", "log of the number of tokens")
WORD_NUMBERS = ("least score of its tokens", "their mean score", "mean score of the sentence's tokens")
SENTENCE_ATTENTION = ("mean log of a token's largest weight", "mean weight of the source's end")
WORD_ATTENTION = ("log of the coverage of what it looked at", "its largest weight")
_NONE = 1e-9  # attention below this is none


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a hypothesis brings along.

    Attributes:
        token_scores: log-probabilities, the end's too.
        attention: on its only source (T x S, the ends' too); None = it is not known, or there are several sources.
    """

    token_scores: Sequence[float]
    attention: Floats | None = None

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Evidence:
        """A hypothesis's own."""
        attention = hypothesis.attention
        alone = attention is not None and len(attention) == 1
        return cls(hypothesis.token_scores, attention[0].astype(np.float64) if attention and alone else None)

    def of_sentence(self) -> Floats:
        """What is weighed of the sentence (N): by scores, then by attention where that is known.

        One without scores (3 zeros) would be one of which nothing was decoded.
        """
        scores, weights_TS = self.token_scores, self.attention
        if not scores:
            return np.zeros(len(SENTENCE_NUMBERS))
        numbers = [np.mean(scores), np.min(scores), np.log(len(scores))]
        if weights_TS is not None:
            numbers += [np.log(weights_TS.max(axis=1) + _NONE).mean(), weights_TS[:, -1].mean()]
        return np.array(numbers)

    def of_words(self, places: Sequence[Sequence[int]]) -> Floats:
        """What is weighed of its words (W x N), likewise; ``places``: of each the tokens it was written with, some."""
        scores, weights_TS = np.array(self.token_scores), self.attention
        width = len(WORD_NUMBERS) + (0 if weights_TS is None else len(WORD_ATTENTION))
        rows = [[scores[own].min(), scores[own].mean(), scores.mean()] for own in map(list, places)]
        if weights_TS is not None:
            coverage_T = weights_TS.sum(axis=0)[weights_TS.argmax(axis=1)]
            largest_T = weights_TS.max(axis=1)
            for row, own in zip(rows, map(list, places), strict=True):
                row += [np.log(coverage_T[own].mean() + _NONE), largest_T[own].max()]
        return np.array(rows, np.float64).reshape(-1, width)


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
        sentences, words: how numbers become confidences, by scores alone.
        sentence_reliability, word_reliability: what they were worth on the test text, with attention where it counts.
        command: measures all of it again.
        attentive_sentences, attentive_words: likewise by scores and attention, for hypotheses that have theirs; None =
            attention tells nothing more.
    """

    sentences: Scale
    words: Scale
    sentence_reliability: Reliability
    word_reliability: Reliability
    command: str = ""
    attentive_sentences: Scale | None = None
    attentive_words: Scale | None = None

    def __post_init__(self) -> None:
        for name, numbers in (
            ("sentences", SENTENCE_NUMBERS),
            ("words", WORD_NUMBERS),
            ("attentive_sentences", SENTENCE_NUMBERS + SENTENCE_ATTENTION),
            ("attentive_words", WORD_NUMBERS + WORD_ATTENTION),
        ):
            scale: Scale | None = getattr(self, name)
            if scale is not None and len(scale.weights) != len(numbers):
                raise ConfigError(
                    f"{name} must weigh {len(numbers)}: {', '.join(numbers)}; but weighs {len(scale.weights)}"
                )

    @property
    def attends(self) -> bool:
        """Whether it tells more of hypotheses that have their attention."""
        return self.attentive_sentences is not None or self.attentive_words is not None

    def of_sentence(self, evidence: Evidence) -> float:
        """The chrF to expect, 0 to 1."""
        return float(weighed(self.sentences, self.attentive_sentences, evidence.of_sentence()))

    def of_words(self, evidence: Evidence, places: Sequence[Sequence[int]]) -> Floats:
        """Per word the chance that the reference has it; ``places`` are their tokens."""
        return weighed(self.words, self.attentive_words, evidence.of_words(places))


def weighed(plain: Scale, attentive: Scale | None, numbers: Floats) -> Floats:
    """Confidence by all of the numbers where a scale weighs so many, else by the first ones: those of the scores."""
    if attentive is not None and numbers.shape[-1] == len(attentive.weights):
        return attentive(numbers)
    return plain(numbers[..., : len(plain.weights)])
