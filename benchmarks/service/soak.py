"""`tandem bench soak`: whether the service's memory grows with the requests that it has answered.

Every text is new, so no cache helps (the result cache is off as well), lengths are those of real text, and options
change from request to request, since each that costs memory once (a graph opened when first used, a larger buffer)
belongs to the warm-up. After it, resident memory is noted at regular points, and a line is laid through them.
"""

from __future__ import annotations

import html
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.options import SoakOptions
from benchmarks.service.requests import check_servable, tandem_body, tandem_path
from benchmarks.service.verdicts import Verdict, in_words, memory_verdict, ready_verdict
from benchmarks.workload import texts as pseudo_texts
from deploy.loadtest.client import LoadRun, send_all
from deploy.loadtest.server import Server, settings_in_force, tandem_server
from deploy.report import console, environment, say, show_environment, table
from models.bundle import Bundle
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores

PER = 10_000  # requests that growth is told for
_EVERY, _FEWEST_POINTS = 1_000, 5
_TRIES = 100
_COLUMNS = {
    "requests": "requests",
    "phase": "phase",
    "rss_mb": "resident MB",
    "anonymous_mb": "of it anonymous",
    "requests_per_s": "requests/s",
    "p99_ms": "p99 ms",
    "rejected": "rejected",
    "failed": "failed",
}


def growth_of(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """How memory grew, from points of requests and MB.

    Returns:
        MB for 10,000 requests, the slope of the line through all points (least squares), and its standard error (0 of
        two points).

    Raises:
        ConfigError: the points are not at two numbers of requests at least.
    """
    requests, memory = np.array(points, np.float64).reshape(-1, 2).T
    if len(points) < 2 or requests[0] == requests[-1]:
        raise ConfigError(f"growth needs memory at two numbers of requests at least, but there are {len(points)}")
    slope, height = statistics.linear_regression(requests.tolist(), memory.tolist())
    residuals = memory - height - slope * requests
    square = float(((requests - requests.mean()) ** 2).sum())
    error = math.sqrt(float(residuals @ residuals) / max(1, len(points) - 2) / square)
    return PER * slope, PER * error


def measure(options: SoakOptions, seed: int = 0) -> dict[str, Any]:
    """Load a service, and note its memory on the way.

    Args:
        options: of the command.
        seed: of texts and their options.

    Returns:
        ``environment``, ``rows`` (memory at each point), ``targets`` by name, ``fault`` (what came most often instead
        of an answer), and ``met``: whether memory grew no faster than the limit and nothing failed.

    Raises:
        ConfigError: the service does not start or answer, or nobody can tell its memory.
        BundleError: the bundle cannot be used.
    """
    bundle = Bundle.load(options.bundle)
    check_servable(bundle)
    bodies = soak_bodies(bundle, distinct_texts(bundle, options.warm_up + options.requests, seed), seed)
    with tandem_server(options.bundle, options.workers) as server:
        targets = {
            "memory_after_load": memory_verdict(server.memory()),
            "cold_start": ready_verdict(server.ready_seconds),
        }
        rows, faults = _run(bodies, options, server, tandem_path(bundle))
    targets["growth"] = growth_verdict(rows, options.limit)
    return {
        "bundle": bundle.manifest.name,
        "environment": {**environment(options.workers or usable_cores()), "settings": settings_in_force()},
        "rows": rows,
        "targets": {name: verdict.mapping() for name, verdict in targets.items()},
        "fault": faults.most_common(1)[0][0] if faults else "",
        "met": targets["growth"].met,
    }


def show(result: Mapping[str, Any]) -> None:
    """Print memory at each point, and the verdicts."""
    say(show_environment(result["environment"]))
    memory = ("rss_mb", "anonymous_mb")  # to the kilobyte: the target is about small differences
    rows = [{**row, **{name: f"{row[name]:.2f}" for name in memory if name in row}} for row in result["rows"]]
    console().print(table(f"{result['bundle']}: {rows[-1]['requests']:,} requests", _COLUMNS, rows))
    say(*map(in_words, result["targets"].values()))
    if result["fault"]:
        say(f"not answered: {result['fault']}")


def growth_verdict(rows: Sequence[dict[str, Any]], limit: float) -> Verdict:
    """The slope of resident memory after the warm-up; what was not answered spoils it."""
    watched = [row for row in rows if row["phase"] == "watched"]
    slope, error = growth_of([(row["requests"], row["rss_mb"]) for row in watched])
    refused = sum(row.get("rejected", 0) + row.get("failed", 0) for row in rows)
    further = {"standard_error": round(error, 4), "not_answered": refused}
    if all("anonymous_mb" in row for row in watched):
        further["anonymous"] = round(growth_of([(row["requests"], row["anonymous_mb"]) for row in watched])[0], 4)
    text = f"MB that resident memory grows per {PER:,} requests, by least squares; every request answered"
    return Verdict(text, slope, limit, further, clean=not refused)


def distinct_texts(bundle: Bundle, count: int, seed: int = 0) -> list[str]:
    """Pseudo-texts of which no two are equal.

    Raises:
        ConfigError: the bundle's source vocabulary has too few words for so many.
    """
    found: dict[str, None] = {}
    for tried in range(_TRIES):
        found |= dict.fromkeys(pseudo_texts(bundle.source_vocabularies[0], count, seed + tried))
        if len(found) >= count:
            return list(found)[:count]
    raise ConfigError(f"the vocabulary gives {len(found)} distinct texts, but {count} are needed")


def soak_bodies(bundle: Bundle, texts: Sequence[str], seed: int = 0) -> list[bytes]:
    """Requests of one text each with mixed options: beams, alternatives, penalties, bounds, sampling, details; to be
    translated also as HTML, with alignments, protected spans and glossaries.
    """
    rng = np.random.default_rng([seed, 2])
    kinds: list[dict[str, Any]] = [
        {},
        {},
        {"beam_size": 1},
        {"beam_size": 2, "length_penalty": 0.6},
        {"beam_size": 8, "alternatives": 3},
        {"details": True},
        {"scores": True, "no_repeat_ngram_size": 3},
        {"max_length": 12},
        {"min_length": 4, "priority": "bulk"},
        {"sampling": {"temperature": 0.8, "top_k": 10, "seed": 1}, "beam_size": 1},
    ]
    if bundle.manifest.task == "translate":
        kinds += [{"format": "html"}, {"protect": ["numbers", "urls"]}, {"glossary": {"und": "plus"}}]
        aligns = any("align" in bundle.graph_specs(precision) for precision in bundle.precisions)
        kinds += [{"alignments": True}] if aligns else []
    drawn = rng.integers(len(kinds), size=len(texts)).tolist()
    return [_body(bundle, text, kinds[kind]) for text, kind in zip(texts, drawn, strict=True)]


def _body(bundle: Bundle, text: str, options: dict[str, Any]) -> bytes:
    if options.get("format") == "html":
        first, _, rest = html.escape(text).partition(" ")
        text = f"<p><b>{first}</b> {rest}</p>"
    return tandem_body(bundle, text, **options)


def checkpoints(requests: int) -> list[int]:
    """Where memory is noted after the warm-up: every 1,000 requests, of few at five points, and at the end."""
    every = min(_EVERY, max(1, requests // _FEWEST_POINTS))
    return [*range(every, requests - every // 2, every), requests]


def _run(
    bodies: Sequence[bytes], options: SoakOptions, server: Server, path: str
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Send everything, part by part; a row for each point."""
    marks = [options.warm_up, *(options.warm_up + mark for mark in checkpoints(options.requests))]
    rows: list[dict[str, Any]] = [{"requests": 0, "phase": "loaded", **_memory(server)}]
    faults: Counter[str] = Counter()
    for start, end in zip([0, *marks], marks, strict=False):
        run = send_all(server.url + path, bodies[start:end], options.clients)
        faults.update(outcome.fault for outcome in run.outcomes if outcome.fault)
        rows.append({"requests": end, "phase": "watched", **_memory(server), **_figures(run)})
        say(f"{end:,} requests: {rows[-1]['rss_mb']} MB resident", error=True)
    return rows, faults


def _figures(run: LoadRun) -> dict[str, Any]:
    record = run.record()
    return {name: record[name] for name in ("requests_per_s", "p99_ms", "rejected", "failed")}


def _memory(server: Server) -> dict[str, float]:
    memory = {name: round(value, 2) for name, value in server.memory().items()}
    if "rss_mb" not in memory:
        raise ConfigError("resident memory cannot be told here: it is read from /proc, which only Linux has")
    return memory
