"""`tandem analyse`: what the papers plot, of any bundle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from deploy.bulk.run import check_count
from deploy.evaluation.decoding import Decoding, attended_lines, decode_lines
from deploy.outputs import check_folder
from models.bundle import Bundle
from models.command import LARGEST_BEAM, BundleFolder, Without
from models.errors import ConfigError
from models.search import Graphs, SearchOptions
from models.translator import Column
from training.analysis import plots
from training.analysis.attention import SentenceAttention, groups
from training.analysis.decoding import BeamSpeed, LengthScore, scores_by_length, source_lengths, speed_by_beam
from training.analysis.tables import encoder_weights, entropies, shares_by_position, source_shares
from training.data.features import read_columns
from training.metrics import SCORERS

LONGEST_SHARE = 40  # target positions drawn of the shares of mixed attention
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is looked at."""

    attention_sentences: Annotated[int, typer.Option(min=1, help="Segments whose attention is averaged.")] = 200
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments whose attention is drawn.")] = 3
    longest: Annotated[int, typer.Option(min=1, help="Tokens of a drawn segment, on any side.")] = 25
    beam_sizes: Annotated[str, typer.Option(help="Beam sizes to time, such as 1,2,5,10; empty for none.")] = ""
    passes: Annotated[int, typer.Option(min=1, help="Passes over the text for each beam size.")] = 3


def parse_beam_sizes(text: str) -> tuple[int, ...]:
    """Beam sizes from ``1,5,10``. Raises ConfigError for anything but whole numbers from 1 to 100."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 4 and 1 <= int(part) <= LARGEST_BEAM for part in parts):
        raise ConfigError(
            f"--beam-sizes must be whole numbers from 1 to {LARGEST_BEAM}, such as 1,5,10, but is {text!r}"
        )
    return tuple(dict.fromkeys(map(int, parts)))


def analyse(
    path: BundleFolder,
    sources: Annotated[list[Path], typer.Option("--source", help="Source text, one segment a line (.xz, .gz, plain).")],
    decoding: Annotated[Decoding, Without({"beam_size", "target"})],
    scope: Scope,
    references: Annotated[Path | None, typer.Option(help="Reference text, for scores by length and beam size.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [analysis/NAME]")] = None,
) -> None:
    """Draw what the papers plot: attention entropies, alignments, encoder weights, scores by length, speed by beam.

    Example: tandem analyse bundles/de-en --source test.de --references test.en --beam-sizes 1,5
    """
    beam_sizes = parse_beam_sizes(scope.beam_sizes)
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    folder = out or Path("analysis") / bundle.manifest.name
    check_folder(folder, "--out")
    paths = [*sources, *([references] if references else [])]
    columns = [column[: decoding.limit] for column in read_columns(paths, bundle.feature_widths)]
    lines, gold = (columns[:-1], columns[-1]) if references else (columns, [])
    if not lines[0]:
        raise ConfigError(f"--source: {sources[0]} has no line")
    work = _Analysis(bundle, graphs, options, lines, gold, folder)
    result: dict[str, Any] = {"bundle": bundle.manifest.name, "sentences": len(lines[0])}
    result |= work.attention(scope)
    if gold:
        result |= work.by_length()
    if beam_sizes:
        result |= work.by_beam(beam_sizes, scope.passes)
    summary = folder / "analysis.json"
    summary.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for file in [summary, *work.written]:
        print(file)


class _Analysis:
    """One bundle and one text."""

    def __init__(
        self,
        bundle: Bundle,
        graphs: Graphs,
        options: SearchOptions,
        lines: list[Column],
        gold: Column,
        folder: Path,
    ) -> None:
        self._bundle, self._graphs, self._options = bundle, graphs, options
        self._lines, self._gold, self._folder = lines, gold, folder
        self._scorer = SCORERS[bundle.manifest.task]
        self.written: list[Path] = []

    def attention(self, scope: Scope) -> dict[str, Any]:
        """Entropies, shares, encoder weights and heat maps of the model's own translations."""
        sentences = self._attended(scope.attention_sentences)
        found: dict[str, Any] = {
            "entropy": [asdict(one) for one in entropies(sentences)],
            "mixed_attention": [asdict(one) for one in source_shares(sentences)],
            "encoder_weights": [asdict(one) for one in encoder_weights(sentences)],
        }
        for title, rows in found.items():
            _print(title.replace("_", " "), rows)
        layers, source_LT = shares_by_position(sentences, LONGEST_SHARE)
        if layers:
            self.written += plots.shares(self._folder / "source-share", layers, source_LT)
        drawable = [s for s in sentences if max(map(len, (s.target, *s.sources))) <= scope.longest]
        for number, sentence in enumerate(drawable[: scope.heat_maps], 1):
            self._draw(sentence, self._folder / f"sentence-{number}")
        return found

    def _attended(self, limit: int) -> list[SentenceAttention]:
        lines = [column[:limit] for column in self._lines]
        found = attended_lines(self._bundle, self._graphs, self._options, lines)
        if not found:
            raise ConfigError("the source text has no line that is not empty")
        return [sentence for _, sentence in found]

    def _draw(self, sentence: SentenceAttention, folder: Path) -> None:
        """One figure for each path and what it attends to, its layers side by side."""
        for group, names in groups(sentence.weights).items():
            self.written += plots.layer_maps(folder / group, sentence, names)

    def by_length(self) -> dict[str, Any]:
        """The score in each class of source length."""
        texts = self._decode(self._options)
        tokens = source_lengths(self._bundle.sources, self._lines)
        scores: list[LengthScore] = scores_by_length(texts, self._gold, tokens, self._scorer)
        rows = [asdict(score) for score in scores]
        _print("by source length", rows)
        self.written += plots.lengths(self._folder / "by-length", scores)
        return {"by_length": rows}

    def by_beam(self, sizes: Sequence[int], passes: int) -> dict[str, Any]:
        """Speed and score at each beam size."""

        def decode(size: int) -> list[str]:
            return self._decode(replace(self._options, beam_size=size, n_best=1))

        speeds: list[BeamSpeed] = speed_by_beam(decode, sizes, self._gold, self._scorer, passes=passes)
        rows = [asdict(speed) for speed in speeds]
        _print("by beam size", rows)
        self.written += plots.beams(self._folder / "by-beam", speeds)
        return {"by_beam": rows}

    def _decode(self, options: SearchOptions) -> list[str]:
        return decode_lines(self._bundle, self._graphs, options, self._lines)


def _print(title: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)
