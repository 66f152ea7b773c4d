"""`tandem robustness`: what a bundle makes of untidy and long text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deploy.bulk import BulkOptions, BulkTranslator
from deploy.bulk.translator import Opener
from models.errors import ConfigError
from service.runtimes import open_graphs
from training.data.corpus import read_parallel
from training.robustness import ConditionResult, suite

_BLOCK = 1024  # lines


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a test set.

    Attributes:
        limit: segments, None for all.
        max_lost: the largest share of translations with a symptom that is fine in any state; None for whatever.
        as_json: print JSON instead of a table.
    """

    limit: int | None = None
    max_lost: float | None = None
    as_json: bool = False


def robustness_command(
    path: Path, files: tuple[Path, Path], options: BulkOptions, shown: Shown = Shown(), opener: Opener = open_graphs
) -> int:
    """Translate a test set in several states, and print what each costs.

    Args:
        path: the bundle.
        files: sources and references, parallel.
        options: how to translate.
        shown: what of it.
        opener: opens the bundle's graphs.

    Returns:
        The exit status: 1 where a state has more than ``shown.max_lost``.

    Raises:
        ConfigError: the bundle is no translator of one text.
        CorpusError: the files are not parallel, or cannot be read.
    """
    translator = BulkTranslator(path, options, opener)
    manifest = translator.open().manifest
    if manifest.task != "translate" or len(translator.widths) != 1:
        raise ConfigError(f"robustness is shown of translators of one text, but {manifest.name} is none")
    sources, references = (column[: shown.limit] for column in read_parallel(files))
    findings = suite(lambda lines: _translated(translator, lines), sources, references)
    if shown.as_json:
        print(json.dumps([_mapping(one) for one in findings], ensure_ascii=False))
    else:
        _print(findings)
    return int(shown.max_lost is not None and any(one.share_lost > shown.max_lost for one in findings))


def _translated(translator: BulkTranslator, lines: Sequence[str]) -> list[str]:
    starts = range(0, len(lines), _BLOCK)
    return [one.text for start in starts for one in translator.translate_block(lines[start : start + _BLOCK])]


def _mapping(finding: ConditionResult) -> dict[str, object]:
    return {**asdict(finding), "loss": round(finding.loss, 2), "share_lost": round(finding.share_lost, 5)}


def _print(findings: Sequence[ConditionResult]) -> None:
    table = Table("text", "segments", *(score.metric for score in findings[0].scores), "untouched", "loss", "symptoms")
    for one in findings:
        signs = ", ".join(f"{count} {sign}" for sign, count in one.symptoms.items()) or "none"
        values = (f"{score.value:.1f}" for score in one.scores)
        table.add_row(
            one.condition, f"{one.segments:,}", *values, f"{one.plain[0].value:.1f}", f"{one.loss:.1f}", signs
        )
    console = Console()
    console.print(table)
    for one in findings:
        for sign, (source, text) in one.examples.items():
            console.print(escape(f"{one.condition}, {sign}: {source[:200]!r} -> {text[:300]!r}"), highlight=False)
