"""`tandem translate`: files of any size."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.bulk.cluster import RayActors
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.pool import translate_rows
from tandem.extras.bulk.run import Request, Stopped, Summary, translate_files
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.outputs import check_file
from tandem.models.command import BundleFolder, Without, Workers, console, report, say
from tandem.models.errors import ConfigError

_LONG = 60.0  # seconds after which a run is worth a word at its end


def translate(
    bundle: BundleFolder,
    options: Annotated[BulkOptions, Without({"candidates"})],
    request: Request,
    actors: RayActors,
    sources: Annotated[
        list[Path] | None,
        typer.Option("--source", help="Text, one line after another (.gz, .xz, .bz2, plain); - is standard input."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write (also .gz, .xz, .bz2). [standard output]")] = None,
    fail_on_bad: Annotated[bool, typer.Option("--fail-on-bad", help="Exit status 1 where a line is bad.")] = False,
    workers: Workers = 0,
) -> None:
    """Translate (or summarize) files of any size line by line, without a server.

    Lines keep their order and number; a line that cannot be translated stays in its place and is told. docs/bulk.md
    explains the rest.

    Example: tandem translate bundles/de-fr-en --source corpus.de.gz --out corpus.en.gz    |
    echo "Wo ist der Bahnhof?" | tandem translate bundles/de-fr-en
    """
    out = None if str(out) == "-" else out
    files = tuple(sources or [Path("-")])
    request = replace(request, sources=files, out=out, workers=options.processes(workers))
    check_file(out, "--out")
    check_file(request.report, "--report")
    if str(request.report) == "-":
        raise ConfigError("--report must be a file, but is -: standard output is for translations")
    try:
        translate = actors.translate if actors.address else translate_rows
        summary = translate_files(BulkTranslator(bundle, options), request, translate)
    except Stopped as stopped:
        after = "; go on with --resume" if out is not None else ""
        report(f"tandem: {stopped}{after}")
        raise typer.Exit(128 + stopped.signal) from stopped
    except BrokenPipeError as error:  # who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again when it ends
        raise typer.Exit(128 + signal.SIGPIPE) from error
    if console(error=True).is_terminal or summary.counts.bad or summary.before or summary.seconds > _LONG:
        say(*_words(summary), error=True)
    if fail_on_bad and summary.counts.bad:
        raise typer.Exit(1)


def _words(summary: Summary) -> list[str]:
    counts = summary.counts
    new = counts.lines - summary.before
    rate = f" in {summary.seconds:,.1f} s, {new / max(summary.seconds, 1e-9):,.0f}/s" if new else ""
    earlier = f", {summary.before:,} of them before" if summary.before else ""
    words = [f"{counts.lines:,} lines{earlier}{rate}"]
    if counts.reasons:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(counts.reasons.items()))
        told = f"; {summary.report} names the bad ones" if summary.report else ""
        words.append(f"{counts.bad:,} bad ({reasons}){told}" if counts.bad else reasons)
    return words
