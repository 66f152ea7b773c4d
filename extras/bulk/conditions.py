"""What a bundle makes of untidy text: the same test set in lower case, without punctuation, with typing errors, several
sentences at once, and sentences of a hundred words.

Every condition is translated and scored beside the untouched text, and every translation is looked at for the signs of
a model that has lost the thread (:mod:`extras.bulk.symptoms`). The perturbations are those of ``[data.noise]``,
with a seed of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

import numpy as np

from tandem.extras.augmentation.perturbations import lower_case, with_typos, without_punctuation
from tandem.extras.bulk.symptoms import symptom
from tandem.models.errors import CorpusError
from tandem.training.quality.metrics import MeasuredScore, task_scores

PLAIN = "as it is"
LONG_WORDS = 100
AT_ONCE = 4
TYPO_RATE = 0.1
Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test set in one state.

    Attributes:
        name: what it is called in tables.
        sources, references: parallel lines.
        cased: whether the scores respect case: a source in lower case does not say what is to be written in capitals.
        sizes: how many lines of the test set each of its lines is made of; empty = one.
    """

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]
    cased: bool = True
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """What became of a condition.

    Attributes:
        condition: its name.
        segments: its lines.
        scores: of the translations, without case where the source has none.
        plain: scores of the untouched text's translations, counted alike and of the same sentences.
        symptoms: how many translations have each.
        examples: for each symptom the first source and translation that has it.
    """

    condition: str
    segments: int
    scores: tuple[MeasuredScore, ...]
    plain: tuple[MeasuredScore, ...]
    symptoms: dict[str, int] = field(default_factory=dict)
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """How many points of the first metric (BLEU) the condition costs."""
        return self.plain[0].value - self.scores[0].value

    @property
    def share_lost(self) -> float:
        """Of the translations the share that has a symptom."""
        return sum(self.symptoms.values()) / max(1, self.segments)


def conditions(sources: Sequence[str], references: Sequence[str], *, seed: int = 1) -> list[Condition]:
    """The test set in every state, the untouched one first.

    Args:
        sources: one segment a line.
        references: parallel to them.
        seed: of the typing errors.

    Raises:
        CorpusError: there is nothing, or the lines are not parallel.
    """
    if not sources or len(sources) != len(references):
        counts = f"{len(sources)} and {len(references)}"
        raise CorpusError(f"sources and references must be equally many, at least 1, but are {counts}")
    rng = np.random.default_rng([seed, 11])
    gold = tuple(references)
    return [
        Condition(PLAIN, tuple(sources), gold),
        Condition("lower case", tuple(map(lower_case, sources)), gold, cased=False),
        Condition("no punctuation", tuple(map(without_punctuation, sources)), gold),
        Condition("typing errors", tuple(with_typos(text, TYPO_RATE, rng) for text in sources), gold),
        _joined(f"{AT_ONCE} sentences at once", sources, gold, lambda lines: len(lines) == AT_ONCE),
        _joined(f"{LONG_WORDS} words at once", sources, gold, lambda lines: len(" ".join(lines).split()) >= LONG_WORDS),
    ]


def suite(
    translate: Translate, sources: Sequence[str], references: Sequence[str], language: str
) -> list[ConditionResult]:
    """Translate and judge every condition.

    Args:
        translate: a bundle's translations of lines, as many and in their order.
        sources: one segment a line.
        references: parallel to them.
        language: of the references.

    Raises:
        CorpusError: there is nothing, or the lines are not parallel.
    """
    found = []
    plain: list[str] = []
    for condition in conditions(sources, references):
        if not condition.sources:  # the test set has not the words for one
            continue
        texts = translate(condition.sources)
        plain = plain or texts
        # Joined lines are measured against their own sentences, translated one by one and joined.
        alone = _joined_alike(condition, plain)
        found.append(_finding(condition, texts, alone, language))
    return found


def _finding(condition: Condition, texts: Sequence[str], alone: Sequence[str], language: str) -> ConditionResult:
    counts: Counter[str] = Counter()
    examples: dict[str, tuple[str, str]] = {}
    for source, text, reference in zip(condition.sources, texts, condition.references, strict=True):
        if sign := symptom(text, source, reference):
            counts[sign] += 1
            examples.setdefault(sign, (source, text))
    scores, plain = (_scores(condition, lines, language) for lines in (texts, alone))
    return ConditionResult(condition.name, len(texts), scores, plain, dict(sorted(counts.items())), examples)


def _scores(condition: Condition, texts: Sequence[str], language: str) -> tuple[MeasuredScore, ...]:
    if condition.cased:
        return tuple(task_scores("translate", language, texts, condition.references))
    lower, gold = ([line.lower() for line in lines] for lines in (texts, condition.references))
    return tuple(task_scores("translate", language, lower, gold))


def _joined_alike(condition: Condition, plain: Sequence[str]) -> list[str]:
    """The untouched text's translations in the condition's lines."""
    rest = iter(plain)
    return [" ".join(islice(rest, size)) for size in condition.sizes] or list(plain)


def _joined(
    name: str, sources: Sequence[str], references: Sequence[str], full: Callable[[Sequence[str]], bool]
) -> Condition:
    """Neighbouring lines joined until they are enough; what is left at the end is left out."""
    ends = [0]
    for end in range(1, len(sources) + 1):
        if full(sources[ends[-1] : end]):
            ends.append(end)
    runs = [slice(*run) for run in pairwise(ends)]
    texts, gold = (tuple(" ".join(lines[run]) for run in runs) for lines in (sources, references))
    return Condition(name, texts, gold, sizes=tuple(run.stop - run.start for run in runs))
