"""`tandem corpus`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.papers.corpora.build import build_corpus
from tandem.extras.papers.corpora.page import BuildReport, describe_cleaning, describe_form, expected_files, show_bounds
from tandem.extras.papers.corpora.specs import CORPORA, CorpusSpec, find_corpus
from tandem.models.command import console, say
from tandem.models.errors import ConfigError


def corpus(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A corpus of the papers. [list them]")] = None,
    raw: Annotated[
        Path | None, typer.Option(help="Folder of the files that you fetched. [only say which these are]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora"),
    force: Annotated[bool, typer.Option(help="Replace the corpus that is there.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that tokenise.")] = 1,
) -> None:
    """Prepare a corpus of the papers from files that you fetched: check, normalise, split.

    Example: tandem corpus iwslt14-de-en --raw fetched --out corpora
    """
    if name is None:
        if raw is not None:
            raise ConfigError("--raw needs the name of a corpus; `tandem corpus` lists them")
        _list_corpora()
        return
    spec = find_corpus(name)
    if raw is None:
        _describe(spec)
        return
    with console().status(f"{name}: looking for its files") as status:

        def progress(split: str, pairs: int) -> None:
            status.update(f"{name}: {split}, {pairs:,} pairs")

        report = build_corpus(spec, raw, out, force=force, workers=workers, progress=progress)
    _print_report(spec, report, out)


def _list_corpora() -> None:
    width = max(len(corpus.name) for corpus in CORPORA)
    for corpus in CORPORA:
        say(f"{corpus.name:{width}}  {corpus.title}; {corpus.licence}")
    say("\nWhat to fetch: tandem corpus NAME. To prepare it: tandem corpus NAME --raw FOLDER.")


def _describe(corpus: CorpusSpec) -> None:
    say(f"{corpus.title}. {corpus.licence}. {corpus.attribution}.")
    say(f"Text: {describe_form(corpus.form)}. Training pairs that stay: {describe_cleaning(corpus)}.")
    for download in corpus.downloads:
        say(f"\n{download.name}{f' ({download.terms})' if download.terms else ''}\n  {download.url}")
        for name in expected_files(corpus, download.name):
            say(f"    {name}")
    say("")
    optional = {split.name for split in corpus.splits if split.optional}
    for name, bounds in corpus.outputs:
        expected = f" {show_bounds(bounds)} pairs" if bounds else ""
        say(f"{name}:{expected}{' (optional)' if name in optional else ''}")
    for note in corpus.notes:
        say(f"\n{note}")


def _print_report(corpus: CorpusSpec, report: BuildReport, out: Path) -> None:
    for name, pairs in report.pairs.items():
        say(f"{name}: {pairs:,} pairs")
    if report.dropped:
        say(f"left out of train: {report.dropped:,} pairs")
    for note in report.notes:
        say(f"note: {note}")
    for warning in report.warnings:
        say(f"warning: {warning}")
    say(f"{out / corpus.name} is ready")
