"""`tandem bench footprint`: what each further bundle costs a server in memory and in seconds until it is ready.

The bundles are copies of one under other names, so that no file is shared: a server of so many different models of that
size would take as much. Each has decoded its probe sentence when the memory is read.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.options import FootprintOptions
from benchmarks.service.requests import check_servable
from deploy.loadtest.server import settings_in_force, tandem_server
from deploy.records import numbers
from deploy.report import console, environment, say, show_environment, table
from models.bundle import Bundle, extend_bundle
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores

_COLUMNS = {
    "bundles": "bundles",
    "rss_mb": "resident MB",
    "anonymous_mb": "of it anonymous",
    "ready_seconds": "s until ready",
}


def measure(options: FootprintOptions) -> dict[str, Any]:
    """Start servers of so many bundles.

    Returns:
        ``bundle``, ``environment``, ``rows`` (medians, one per number of bundles), and the line through them:
        ``mb_per_bundle`` and ``mb_without``, in MB of 10^6 bytes.

    Raises:
        ConfigError: fewer than two numbers of bundles, a service does not start, or nobody can tell its memory.
        BundleError: the bundle cannot be used.
    """
    counts = sorted(numbers(options.counts, "--counts"))
    if len(counts) < 2:
        raise ConfigError(f"--counts must be at least two numbers of at least 1, but is {options.counts}")
    bundle = Bundle.load(options.bundle)
    check_servable(bundle)
    with tempfile.TemporaryDirectory(prefix="tandem-footprint-") as folder:
        rows = [_row(bundle, number, Path(folder) / str(number), options) for number in counts]
    each, base = statistics.linear_regression(*zip(*((row["bundles"], row["rss_mb"]) for row in rows), strict=True))
    return {
        "bundle": bundle.manifest.name,
        "environment": {**environment(options.workers or usable_cores()), "settings": settings_in_force()},
        "rows": rows,
        "mb_per_bundle": round(each, 2),
        "mb_without": round(base, 2),
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the table and the line through it."""
    say(show_environment(result["environment"]))
    console().print(table(f"Servers of copies of {result['bundle']}", _COLUMNS, result["rows"]))
    each, base = result["mb_per_bundle"], result["mb_without"]
    say(f"{each:.1f} MB for each bundle, {base:.0f} MB for the rest of the server (least squares)")


def copies(bundle: Bundle, number: int, folder: Path) -> Path:
    """So many copies of a bundle in a folder, each with a name and files of its own."""
    for count in range(number):
        path = folder / f"copy-{count}"
        shutil.copytree(bundle.path, path)
        extend_bundle(path, {}, replace(bundle.manifest, name=f"copy-{count}"))
    return folder


def _row(bundle: Bundle, number: int, folder: Path, options: FootprintOptions) -> dict[str, Any]:
    measured: list[dict[str, float]] = []
    copies(bundle, number, folder)
    for _ in range(options.passes):
        with tandem_server(folder, options.workers) as server:
            memory = server.memory()
            if not memory:
                raise ConfigError("nobody can tell a process's memory here: that needs /proc, as Linux has it")
            measured.append({**memory, "ready_seconds": server.ready_seconds})
    shutil.rmtree(folder)
    medians = {name: round(statistics.median(one[name] for one in measured), 2) for name in measured[0]}
    return {"bundles": number, **medians}
