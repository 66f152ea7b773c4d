"""`tandem analyse`: what the papers plot, of any bundle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.papers.analysis.attention import SentenceAttention, attended_lines, groups
from tandem.extras.papers.analysis.figures import layer_maps, shares
from tandem.extras.papers.analysis.tables import encoder_weights, entropies, shares_by_position, source_shares
from tandem.extras.shared.outputs import check_folder
from tandem.extras.shared.runtime import check_count
from tandem.models.command import BundleFolder, Without
from tandem.models.errors import ConfigError
from tandem.training.data.features import read_columns

LONGEST_SHARE = 40  # target positions drawn of the shares of mixed attention
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is looked at."""

    attention_sentences: Annotated[int, typer.Option(min=1, help="Segments whose attention is averaged.")] = 200
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments whose attention is drawn.")] = 3
    longest: Annotated[int, typer.Option(min=1, help="Tokens of a drawn segment, on any side.")] = 25


def analyse(
    path: BundleFolder,
    sources: Annotated[list[Path], typer.Option("--source", help="Source text, one segment a line (.xz, .gz, plain).")],
    decoding: Annotated[Decoding, Without({"beam_size", "target", "keep_unknown"})],
    scope: Scope,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [analysis/NAME]")] = None,
) -> None:
    """Draw what the papers plot of attention: entropies, alignments, encoder weights.

    `tandem evaluate` has scores by length, and with `--beam-size` scores and speed of any beam.

    Example: tandem analyse bundles/de-fr-en --source test.de
    """
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    folder = out or Path("analysis") / bundle.manifest.name
    check_folder(folder, "--out")
    lines = [column[: decoding.limit] for column in read_columns(sources, bundle.feature_widths)]
    if not len(lines[0]):
        raise ConfigError(f"--source: {sources[0]} has no line")
    first = [column[: scope.attention_sentences] for column in lines]
    sentences = attended_lines(bundle, graphs, options, first)
    if not sentences:
        raise ConfigError("the source text has no line that is not empty")
    result: dict[str, Any] = {
        "entropy": [asdict(one) for one in entropies(sentences)],
        "mixed_attention": [asdict(one) for one in source_shares(sentences)],
        "encoder_weights": [asdict(one) for one in encoder_weights(sentences)],
    }
    for title, rows in result.items():
        _print(title.replace("_", " "), rows)
    result |= {"bundle": bundle.manifest.name, "sentences": len(lines[0])}
    summary = folder / "analysis.json"
    summary.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for file in [summary, *_drawn(sentences, scope, folder)]:
        print(file)


def _drawn(sentences: Sequence[SentenceAttention], scope: Scope, folder: Path) -> list[Path]:
    """The share of mixed attention on the source; of some sentences a figure for each path and what it attends to."""
    written: list[Path] = []
    layers, source_LT = shares_by_position(sentences, LONGEST_SHARE)
    if layers:
        written += shares(folder / "source-share", layers, source_LT)
    drawable = [s for s in sentences if max(map(len, (s.target, *s.sources))) <= scope.longest]
    for number, sentence in enumerate(drawable[: scope.heat_maps], 1):
        for group, names in groups(sentence.weights).items():
            written += layer_maps(folder / f"sentence-{number}" / group, sentence, names)
    return written


def _print(title: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)
