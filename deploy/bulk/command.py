"""`tandem translate`: files of any size."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from deploy.bulk import BulkOptions, BulkTranslator
from deploy.bulk.run import Request, Summary, translate_files
from deploy.bulk.stopping import Stopped
from deploy.commands.outputs import check_file
from models.errors import ConfigError

_LONG = 60.0  # seconds after which a run is worth a word at its end


def translate_command(
    path: Path,
    sources: Sequence[Path],
    out: Path | None,
    options: BulkOptions,
    request: Request | None = None,
) -> Summary:
    """Translate files line by line.

    Args:
        path: the bundle's folder.
        sources: input, one for each of the bundle's sources; ``-`` is standard input.
        out: None or ``-`` for standard output.
        options: how to translate.
        request: how to go about the files, but for which they are.

    Raises:
        TandemError: see :func:`deploy.bulk.run.translate_files`.
    """
    out = None if out is None or str(out) == "-" else out
    request = replace(request or Request(()), sources=tuple(sources), out=out)
    check_file(out, "--out")
    check_file(request.report, "--report")
    if str(request.report) == "-":
        raise ConfigError("--report must be a file, but is -: standard output is for translations")
    return translate_files(BulkTranslator(path, options), request)


def run_command(
    path: Path, sources: Sequence[Path], out: Path | None, options: BulkOptions, request: Request, *, fail_on_bad: bool
) -> int:
    """`tandem translate` to its exit status: 1 where a line is bad and that is asked for, 128 + N after signal N."""
    console = Console(stderr=True)
    try:
        summary = translate_command(path, sources, out, options, request)
    except Stopped as stopped:
        after = "; go on with --resume" if out is not None and str(out) != "-" else ""
        console.print(f"tandem: {stopped}{after}", highlight=False, markup=False, soft_wrap=True)
        return 128 + stopped.signal
    except BrokenPipeError:  # who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again when it ends
        return 128 + signal.SIGPIPE
    if console.is_terminal or summary.counts.bad or summary.before or summary.seconds > _LONG:
        for line in _words(summary):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 1 if fail_on_bad and summary.counts.bad else 0


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
