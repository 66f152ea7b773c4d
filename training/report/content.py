"""What a report says, and which sentences it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from training.analysis.decoding import LengthClass
from training.significance import Bootstrap, ComparedScore

SENTENCE_METRICS = {"translate": "chrF", "postedit": "chrF", "summarize": "ROUGE-L"}
"""By task, the score that examples are sorted by: BLEU says little of one sentence, most of which lack a 4-gram."""


@dataclass(frozen=True, slots=True)
class SystemOutput:
    """What one system wrote for a sentence.

    Attributes:
        system: its name.
        text: what it wrote.
        score: of this sentence alone, in points of 100.
    """

    system: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Picture:
    """A heat map of attention.

    Attributes:
        title: what attends to what.
        png: the image.
        strongest: in words, what each target token attends to most; for who does not see the image.
    """

    title: str
    png: bytes
    strongest: str


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence of the test set.

    Attributes:
        line: its number in the files, from 1.
        sources: its texts; features have none.
        reference: what was to be written.
        outputs: the system's, then that of the other system where there is one.
        pictures: of the system's attention.
    """

    line: int
    sources: tuple[str, ...]
    reference: str
    outputs: tuple[SystemOutput, ...]
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Examples of one kind.

    Attributes:
        title: its heading.
        rows: the sentences, numbered from 0, the most extreme first.
    """

    title: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page holds.

    Attributes:
        system: whose evaluation it is.
        rival: the system that it is held against; "" for none.
        languages: of each text source, and of the target last.
        facts: what else there is to know of the evaluation, by name.
        scores: of every system, the evaluated one first, all metrics.
        classes: every class of length with the scores there: the task's own metrics, of the system and its rival.
        sampling: how intervals and p-values came about.
        metric: what sentences are scored by.
        sections: titles and their examples.
    """

    system: str
    rival: str
    languages: tuple[str, ...]
    facts: Mapping[str, str]
    scores: Mapping[str, Sequence[ComparedScore]]
    classes: Sequence[tuple[LengthClass, Mapping[str, Sequence[ComparedScore]]]]
    sampling: Bootstrap
    metric: str
    sections: Sequence[tuple[str, Sequence[Example]]]


def choose(own: Sequence[float], other: Sequence[float] | None, count: int, names: tuple[str, str]) -> list[Section]:
    """The most telling sentences: the greatest gains and losses against another system, or the worst and the best.

    Args:
        own: the system's score of each sentence; more is better.
        other: the other system's; None without one.
        count: sentences of a section, at most; sentences of no gain and no loss are in neither.
        names: of the system and of the other one.
    """
    if other is None:
        order = sorted(range(len(own)), key=lambda row: own[row])
        worst = order[: min(count, (len(order) + 1) // 2)]  # no sentence is among both
        best = order[len(worst) :][::-1][:count]
        return [Section("Lowest scores", tuple(worst)), Section("Highest scores", tuple(best))]
    gains = [one - two for one, two in zip(own, other, strict=True)]
    up = sorted((row for row, gain in enumerate(gains) if gain > 0), key=lambda row: -gains[row])
    down = sorted((row for row, gain in enumerate(gains) if gain < 0), key=lambda row: gains[row])
    return [
        Section(f"Greatest gains of {names[0]} over {names[1]}", tuple(up[:count])),
        Section(f"Greatest losses of {names[0]} against {names[1]}", tuple(down[:count])),
    ]


def in_turn(sections: Sequence[Section]) -> Iterator[int]:
    """The rows of all sections, the first of each before the second of any."""
    longest = max((len(section.rows) for section in sections), default=0)
    for place in range(longest):
        yield from (section.rows[place] for section in sections if place < len(section.rows))
