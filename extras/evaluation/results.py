"""What `tandem evaluate` found, as tables for people, and as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.evaluation.lengths import LengthClass
from tandem.extras.evaluation.scoring import is_error
from tandem.extras.evaluation.significance import DRAWS, ComparedScore, Counts
from tandem.extras.evaluation.systems import System
from tandem.extras.shared.report import cell, console, say, table
from tandem.models.bundle import Bundle
from tandem.models.command import command_line
from tandem.models.folders import write_text
from tandem.models.translation.translator import Column
from tandem.training.quality.metrics import OWN, MeasuredScore

SENTENCE_METRICS = {"translate": "chrF", "postedit": "chrF", "summarize": "ROUGE-L"}
"""By task, the score of a single segment: BLEU says little of one, most of which lack a 4-gram."""

Scores = Mapping[str, Sequence[ComparedScore]]  # by system


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Systems on a test set.

    Attributes:
        bundle: the first system's.
        columns: its sources.
        references: parallel to them; of several the first.
        systems: all that were scored, by name, in the order of the tables.
        baseline: name of the system that the others are compared with.
        counts: the systems' sentences.
        scores: of the whole test set, by all metrics.
        classes: of each class of source length (in tokens of the first system), by the task's own metrics.
        decoding: how was decoded.
        cut: segments of which the first system reads the beginning alone.
        listed: how much of the references its shortlist holds; None where that was not asked.
    """

    bundle: Bundle
    columns: Sequence[Column] = field(repr=False)
    references: Sequence[str] = field(repr=False)
    systems: Mapping[str, System]
    baseline: str
    counts: Counts
    scores: Scores
    classes: Sequence[tuple[LengthClass, Scores]]
    decoding: Decoding
    cut: int
    listed: Sequence[MeasuredScore] | None = None

    @property
    def name(self) -> str:
        """Of the first system."""
        return next(iter(self.systems))

    @property
    def setting(self) -> str:
        """How was decoded, in words."""
        beams = dict.fromkeys(str(system.beam_size) for system in self.systems.values() if system.beam_size)
        threads = f"{self.decoding.threads} thread{'s' if self.decoding.threads > 1 else ''}"
        return f"{len(self.references):,} segments, {self.decoding}, beam {', '.join(beams)}, {threads}"

    @property
    def meaning(self) -> str:
        """What stands beside a score."""
        tested = f' p: paired bootstrap against "{self.baseline}", {DRAWS:,} draws.' if len(self.systems) > 1 else ""
        return f"±: half of the 95% bootstrap interval.{tested}"

    def json(self) -> str:
        """Everything but the texts."""
        ran = self.decoding.placed()
        classes = [
            {"shortest": one.shortest, "longest": one.longest, "sentences": len(one.rows), "scores": _plain(scores)}
            for one, scores in self.classes
        ]
        found = {
            "scores": _plain(self.scores),
            "baseline": self.baseline,
            "by_length": classes,
            "systems": {name: system.costs() for name, system in self.systems.items()},
            **{"runtime": ran.runtime, "precision": ran.precision, "device": ran.device, "threads": ran.threads},
            **{"segments": len(self.references), "cut": self.cut},
            **({} if self.listed is None else {"shortlist": [asdict(score) for score in self.listed]}),
        }
        return json.dumps(found, indent=1, ensure_ascii=False) + "\n"

    def csv(self) -> str:
        """A row for each score: of the whole test set, whose ``source_tokens`` is empty, then by source length."""
        parts = [("", len(self.references), self.scores)]
        parts += [(one.shown, len(one.rows), scores) for one, scores in self.classes]
        rows = []
        for tokens, segments, scores in parts:
            for system, score in ((system, score) for system, found in scores.items() for score in found):
                row = {"source_tokens": tokens, "segments": segments, "system": system, **asdict(score)}
                low, high = row.pop("difference_interval") or (None, None)
                rows.append(row | {"difference_from": low, "difference_to": high})
        return _csv(rows)

    def markdown(self) -> str:
        """A row for each system by the task's own metrics, what the numbers mean, and the command."""
        rows, own = [], OWN[self.bundle.manifest.task]
        for name, system in self.systems.items():
            row = {"system": name}
            for score in (one for one in self.scores[name] if one.metric in own):
                row |= {score.metric: score.shown, f"p ({score.metric})": score.p_shown}
            rows.append(row | {_title(key): cell(value) for key, value in system.costs().items()})
        head, *_ = rows
        lines = [list(head), ["---", *["--:"] * (len(head) - 1)], *(row.values() for row in rows)]
        shown = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        notes = [f"{self.setting}.", self.meaning]
        notes += [f"{one.metric}: {one.signature}" for one in self.scores[self.name] if one.metric in own]
        listed = "\n".join(f"- {note}" for note in notes)
        return f"{shown}\n\n{listed}\n\nMade with:\n\n    {command_line()}\n"

    def write_texts(self, folder: Path) -> None:
        """Every system's output, one segment a line, and all of them beside each other with each segment's score."""
        for name, system in self.systems.items():
            path = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.txt"
            write_text(path, "".join(f"{text}\n" for text in system.texts))
        metric = SENTENCE_METRICS[self.bundle.manifest.task]
        texts = [column for column, width in zip(self.columns, self.bundle.feature_widths, strict=True) if not width]
        columns: dict[str, Sequence[object]] = {
            "line": range(1, len(self.references) + 1),
            **{f"source {number}": column for number, column in enumerate(texts, 1)},
            "reference": self.references,
        }
        for name, system in self.systems.items():
            scores = self.counts.sentence_scores(name, metric)
            columns |= {name: system.texts, f"{metric} of {name}": [round(score, 2) for score in scores]}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        write_text(folder / "segments.csv", _csv(rows))

    def show(self) -> None:
        """Tables for a terminal."""
        several = len(self.systems) > 1
        whole = [
            {
                "": f"{score.metric}{' (less is better)' if is_error(score.metric) else ''}",
                "system": name if several else None,
                "score": score.shown,
                "difference": score.difference_shown if several else None,
                "p": score.p_shown if several else None,
            }
            for row in zip(*self.scores.values(), strict=True)
            for name, score in zip(self.scores, row, strict=True)
        ]
        by_length = [
            {"source tokens": one.shown, "sentences": len(one.rows), "system": name if several else None}
            | {score.metric: score.shown for score in found}
            for one, scores in self.classes
            for name, found in scores.items()
        ]
        costs = [{"system": name, **system.costs()} for name, system in self.systems.items()]
        for title, rows in ((self.setting, whole), ("by source length", by_length), ("", costs)):
            console().print(table(title, {key: _title(key) for key in rows[0]}, rows))
        if self.cut:
            longest = self.bundle.manifest.limits.max_source_tokens
            say(
                f"{self.cut:,} of {len(self.references):,} segments were cut: {self.name} reads the first {longest}"
                " tokens of one (`tandem translate --sentences` splits lines as the service does)"
            )
        say(self.meaning, *(f"{score.metric}: {score.signature}" for score in self.scores[self.name]))
        say(*(f"{measured.metric}: {measured.value:g}" for measured in self.listed or ()))


def _title(key: str) -> str:
    return key.replace("_per_", "/").replace("_", " ")


def _plain(scores: Scores) -> dict[str, object]:
    return {system: [asdict(score) for score in found] for system, found in scores.items()}


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    held = io.StringIO()
    writer = csv.DictWriter(held, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return held.getvalue()
