"""Corpora of many sizes: each is made, measured by a process of its own, and removed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.runner import in_own_process
from deploy.records import numbers
from deploy.report import console, environment, say, show_environment, table


def measure_sizes(
    pairs: str, folder: Path | None, generate: Callable[[Path, int], None], measure: Callable[[Path], dict[str, float]]
) -> dict[str, Any]:
    """``environment`` and ``rows``, one for each size.

    Args:
        pairs: the sizes, such as ``1000000,4000000``.
        folder: that takes the corpora for a while; None = the system's temporary one.
        generate: writes a corpus of so many pairs into a folder.
        measure: what is measured of it, called in a process that has done nothing else.
    """
    rows = []
    for size in numbers(pairs, "--pairs"):
        with tempfile.TemporaryDirectory(prefix="tandem-corpus-", dir=folder) as made:
            generate(Path(made), size)
            rows.append(in_own_process(measure, Path(made)))
    return {"environment": environment(1), "rows": rows}


def show(result: Mapping[str, Any]) -> None:
    """Print the table; memory in MB."""
    columns = {key: key.replace("_", " ") for row in result["rows"] for key in row}
    say(show_environment(result["environment"]))
    console().print(table("Corpora by size", columns, result["rows"]))
