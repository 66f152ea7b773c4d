"""The page of a report: one file that asks for nothing else, in the reader's light or dark colours, and runs no script.

compare-mt draws reports of the same kind, but of texts alone, into a folder of files, and without attention.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from training.quality.lengths import LengthClass
from training.quality.metrics import is_error
from training.quality.significance import Bootstrap, ComparedScore

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


Section: TypeAlias = tuple[str, tuple[int, ...]]
"""A heading, and the sentences below it, numbered from 0, the most extreme first."""


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
        return [("Lowest scores", tuple(worst)), ("Highest scores", tuple(best))]
    gains = [one - two for one, two in zip(own, other, strict=True)]
    up = sorted((row for row, gain in enumerate(gains) if gain > 0), key=lambda row: -gains[row])
    down = sorted((row for row, gain in enumerate(gains) if gain < 0), key=lambda row: gains[row])
    return [
        (f"Greatest gains of {names[0]} over {names[1]}", tuple(up[:count])),
        (f"Greatest losses of {names[0]} against {names[1]}", tuple(down[:count])),
    ]


def in_turn(sections: Sequence[Section]) -> Iterator[int]:
    """The rows of all sections, the first of each before the second of any."""
    for rows in zip_longest(*(rows for _, rows in sections)):
        yield from (row for row in rows if row is not None)


# What HTML has no form for, not even as a reference.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def render(report: Report) -> str:
    """The report as HTML. The same report gives the same bytes."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_writable,
        trim_blocks=True,
    )
    templates.filters["base64"] = lambda png: b64encode(png).decode()
    templates.tests["less_is_better"] = is_error
    return templates.get_template("report.html.jinja").render(report=report, marked=_marked)


def _writable(value: object) -> object:
    """Any text that is not yet markup, without the characters that HTML cannot hold."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def _marked(text: str, reference: str) -> Markup:
    """The text, with those words marked that the reference has not, or not in this order."""
    words, wanted = text.split(), reference.split()
    if not words:
        return Markup("<em>nothing</em>")
    parts = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, wanted, autojunk=False).get_opcodes():
        if start < end:
            part = escape(_writable(" ".join(words[start:end])))
            parts.append(part if kind == "equal" else Markup("<mark>{}</mark>").format(part))
    return Markup(" ").join(parts)
