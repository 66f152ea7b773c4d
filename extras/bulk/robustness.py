"""`tandem robustness`: what a bundle makes of untidy and long text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.bulk.conditions import ConditionResult, suite
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.report import console, say, table
from tandem.models.command import AsJson, BundleFolder, Limit, Without
from tandem.models.errors import ConfigError
from tandem.training.data.corpus import read_parallel

_BLOCK = 1024  # lines


def robustness(
    bundle: BundleFolder,
    source: Annotated[Path, typer.Option(help="Source text, one segment a line (.xz, .gz, plain).")],
    references: Annotated[Path, typer.Option(help="Reference translations.")],
    options: Annotated[BulkOptions, Without({"shortlist", "sentences", "bad", "max_line_bytes", "candidates"})],
    sentences: Annotated[
        bool, typer.Option("--sentences/--segments", help="Split each line as the service does, or decode it whole.")
    ] = False,
    limit: Limit = None,
    max_lost: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Exit status 1 where a larger share of a state's translations has a symptom."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a bundle makes of untidy text: lower case, no punctuation, typing errors, long lines.

    Every state of the test set is scored beside the untouched one, and translations that loop, break off or are empty
    are counted and shown.

    Example: tandem robustness bundles/de-fr-en --source test.de --references test.en --max-lost 0.01
    """
    translator = BulkTranslator(bundle, replace(options, sentences=sentences))
    manifest = translator.open().manifest
    if manifest.task != "translate" or len(translator.widths) != 1:
        raise ConfigError(f"robustness is shown of translators of one text, but {manifest.name} is none")
    sources, gold = (column[:limit] for column in read_parallel([source, references]))
    findings = suite(lambda lines: _translated(translator, lines), sources, gold, manifest.target_language)
    if as_json:
        print(json.dumps([_mapping(finding) for finding in findings], ensure_ascii=False))
    else:
        _print(findings)
    if max_lost is not None and any(finding.share_lost > max_lost for finding in findings):
        raise typer.Exit(1)


def _translated(translator: BulkTranslator, lines: Sequence[str]) -> list[str]:
    starts = range(0, len(lines), _BLOCK)
    return [one.text for start in starts for one in translator.translate_block(lines[start : start + _BLOCK])]


def _mapping(finding: ConditionResult) -> dict[str, object]:
    return {**asdict(finding), "loss": round(finding.loss, 2), "share_lost": round(finding.share_lost, 5)}


def _print(findings: Sequence[ConditionResult]) -> None:
    rows = [
        {
            "text": one.condition,
            "segments": one.segments,
            **{score.metric: score.value for score in one.scores},
            "untouched": one.plain[0].value,
            "loss": one.loss,
            "symptoms": ", ".join(f"{count} {sign}" for sign, count in one.symptoms.items()) or "none",
        }
        for one in findings
    ]
    console().print(table("", {title: title for title in rows[0]}, rows))
    for one in findings:
        for sign, (source, text) in one.examples.items():
            say(f"{one.condition}, {sign}: {source[:200]!r} -> {text[:300]!r}")
