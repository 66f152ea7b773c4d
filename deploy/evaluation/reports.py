"""What `tandem evaluate` found, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from deploy.evaluation.decoding import Decoding, attended_lines
from deploy.evaluation.systems import System
from models.bundle import Bundle
from models.command import command_line
from models.folders import write_text
from models.translation.translator import Column
from training.quality.attention import AttentionName, SentenceAttention, groups
from training.quality.lengths import LengthClass, source_lengths
from training.quality.report import SENTENCE_METRICS, Example, Picture, Report, SystemOutput, choose, in_turn, render
from training.quality.significance import Bootstrap, ComparedScore, Counts

LONGEST_DRAWN = 25  # tokens of a side of a heat map: longer ones cannot be read


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Scores of several systems, the evaluated one first.

    Attributes:
        counts: their sentences.
        scores: of the whole test set, by all metrics.
        classes: of each class of source length, by the task's own metrics.
        sampling: how intervals and p-values came about.
    """

    counts: Counts
    scores: Mapping[str, Sequence[ComparedScore]]
    classes: Sequence[tuple[LengthClass, Mapping[str, Sequence[ComparedScore]]]]
    sampling: Bootstrap


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A bundle on a test set.

    Attributes:
        name: of the bundle.
        bundle: itself.
        rival: name of the system that the bundle is held against; "" for none.
        columns: the bundle's sources.
        references: parallel to them; of several the first, which is shown.
        systems: all that were scored, by name, the bundle first.
        measured: their scores.
        decoding: how was decoded.
        cut: segments of which the bundle reads the beginning alone.
        files: what was read, by what it is.
    """

    name: str
    bundle: Bundle
    rival: str
    columns: Sequence[Column] = field(repr=False)
    references: Sequence[str] = field(repr=False)
    systems: Mapping[str, System]
    measured: Measured
    decoding: Decoding
    cut: int
    files: Mapping[str, str]

    @property
    def beam_size(self) -> int:
        """What the bundle was decoded with."""
        return self.decoding.beam_size or self.bundle.manifest.decoding.beam_size

    @property
    def setting(self) -> str:
        """How was decoded, in words."""
        return self.decoding.setting(len(self.references), self.beam_size)


def write_report(done: Evaluation, path: Path, *, examples: int, heat_maps: int) -> None:
    """The evaluation as one HTML file.

    Args:
        done: the evaluation.
        path: the file.
        examples: sentences of each kind.
        heat_maps: of the sentences shown, how many have their attention drawn: the first that are short enough.
    """
    manifest = done.bundle.manifest
    metric = SENTENCE_METRICS[manifest.task]
    shown = [done.name, *([done.rival] if done.rival else [])]
    scores = {name: done.measured.counts.sentence_scores(name, metric) for name in shown}
    sections = choose(scores[done.name], scores.get(done.rival), examples, (done.name, done.rival))
    rows = list(in_turn(sections))
    pictures = _pictures(done, rows, heat_maps) if heat_maps else {}
    texts = [column for column, width in zip(done.columns, done.bundle.feature_widths, strict=True) if not width]
    made = {
        row: Example(
            line=row + 1,
            sources=tuple(column[row] for column in texts),
            reference=done.references[row],
            outputs=tuple(SystemOutput(name, done.systems[name].texts[row], scores[name][row]) for name in shown),
            pictures=pictures.get(row, ()),
        )
        for row in rows
    }
    report = Report(
        system=done.name,
        rival=done.rival,
        languages=(*_languages(done.bundle, len(texts)), manifest.target_language),
        facts=_facts(done),
        scores=done.measured.scores,
        classes=done.measured.classes,
        sampling=done.measured.sampling,
        metric=metric,
        sections=[(title, [made[row] for row in chosen]) for title, chosen in sections],
    )
    write_text(path, render(report))


def _languages(bundle: Bundle, texts: int) -> tuple[str, ...]:
    """Of each source that is text; "und" where a source may be in any of several."""
    languages = bundle.manifest.source_languages
    if len(languages) != len(bundle.feature_widths):
        return ("und",) * texts
    return tuple(one for one, width in zip(languages, bundle.feature_widths, strict=True) if not width)


def _facts(done: Evaluation) -> dict[str, str]:
    manifest = done.bundle.manifest
    languages = f"{', '.join(manifest.source_languages)} to {manifest.target_language}"
    return {
        "bundle": f"{done.bundle.path} ({manifest.architecture}, {languages})",
        **done.files,
        "decoding": done.setting,
        "command": command_line(),
    }


def _pictures(done: Evaluation, rows: Sequence[int], count: int) -> dict[int, tuple[Picture, ...]]:
    """The attention of the first so many of these sentences that are short enough, by row."""
    lengths = source_lengths(done.bundle.sources, [[column[row] for row in rows] for column in done.columns])
    texts, vocabulary = done.systems[done.name].texts, done.bundle.target_vocabulary
    short = [
        row
        for row, length in zip(rows, lengths, strict=True)
        if length < LONGEST_DRAWN and len(vocabulary.encode(texts[row])) < LONGEST_DRAWN
    ][:count]
    if not short:
        return {}
    graphs, options = done.decoding.prepare(done.bundle)
    columns = [[column[row] for row in short] for column in done.columns]
    found = attended_lines(done.bundle, graphs, options, columns)
    return {short[index]: _drawn(sentence) for index, sentence in found}


def _drawn(sentence: SentenceAttention) -> tuple[Picture, ...]:
    from training.quality import plots

    found = []
    for names in groups(sentence.weights).values():
        parts = AttentionName.parse(names[0])
        title = f"{parts.path} over {parts.over}"
        picture = plots.png(plots.layer_figure(sentence, names))
        found.append(Picture(title, picture, _strongest(sentence, names)))
    return tuple(found)


def _strongest(sentence: SentenceAttention, names: Sequence[str]) -> str:
    """For each target token what has the largest weight, averaged over the layers."""
    weights_TX = np.mean([sentence.weights[name] for name in names], axis=0)
    labels = sentence.labels(names[0])
    best = weights_TX.argmax(axis=1)
    pairs = zip(sentence.target, best, weights_TX.max(axis=1), strict=True)
    return "; ".join(f"{piece}: {labels[index]} ({weight:.2f})" for piece, index, weight in pairs) + "."
