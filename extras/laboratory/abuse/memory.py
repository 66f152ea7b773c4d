"""Whether the service's memory grows with the requests that it has answered.

Every text is new, so no cache helps (the result cache is off as well), lengths are those of real text, and options
change from request to request, since each that costs memory once (a graph opened when first used, a larger buffer)
belongs to the warm-up. After it, resident memory is noted at regular points, and a line is laid through them.
"""

from __future__ import annotations

import html
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tandem.extras.laboratory.abuse.trials import Setting, TrialFinding
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.laboratory.workload import check_servable, tandem_body
from tandem.extras.laboratory.workload import texts as pseudo_texts
from tandem.extras.loadtest.client import send_all
from tandem.extras.loadtest.server import Server
from tandem.extras.shared.report import say
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError

PER = 10_000  # requests that growth is told for
_LIMIT = 1.0  # MB for so many requests
_CLIENTS = 16
_EVERY, _FEWEST_POINTS = 1_000, 5
_TRIES = 100


def memory(setting: Setting) -> TrialFinding:
    """Send mixed traffic, and note the service's memory on the way.

    Raises:
        ConfigError: nobody can tell its memory, or the vocabulary has too few words for so many texts.
    """
    bundle, count = setting.bundle, setting.options.requests
    check_servable(bundle)
    warm_up = count // 4
    bodies = soak_bodies(bundle, distinct_texts(bundle, warm_up + count))
    marks = [warm_up, *(warm_up + mark for mark in checkpoints(count))]
    with setting.server() as server:
        rows, faults = _run(server, setting.path, bodies, marks)
    points = [(row["requests"], row["rss_mb"]) for row in rows]
    slope, error = growth_of(points)
    return TrialFinding(
        "Does memory grow with the requests?",
        f"{count:,} distinct texts with mixed options (plain, HTML, alternatives, alignments, protected spans,"
        f" glossaries, sampling) after {warm_up:,} of the same kind, the result cache off.",
        [growth_verdict(rows)],
        {
            "slope": round(slope, 4),
            "standard_error": round(error, 4),
            "first_mb": round(points[0][1], 1),
            "last_mb": round(points[-1][1], 1),
        },
        fault=faults.most_common(1)[0][0] if faults else "",
    )


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


def growth_verdict(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Growth that is no noise; what was not answered spoils it."""
    slope, error = growth_of([(row["requests"], row["rss_mb"]) for row in rows])
    text = f"MB that memory grows for certain per {PER:,} requests: the slope less two standard errors"
    answered = not sum(row["rejected"] + row["failed"] for row in rows)
    return Verdict(text, slope - 2 * error, _LIMIT, clean=answered)


def distinct_texts(bundle: Bundle, count: int) -> list[str]:
    """Pseudo-texts of which no two are equal.

    Raises:
        ConfigError: the bundle's source vocabulary has too few words for so many.
    """
    found: dict[str, None] = {}
    for seed in range(_TRIES):
        found |= dict.fromkeys(pseudo_texts(bundle.source_vocabularies[0], count, seed))
        if len(found) >= count:
            return list(found)[:count]
    raise ConfigError(f"the vocabulary gives {len(found)} distinct texts, but {count} are needed")


def soak_bodies(bundle: Bundle, texts: Sequence[str]) -> list[bytes]:
    """Requests of one text each with mixed options: beams, alternatives, penalties, bounds, sampling, details; to be
    translated also as HTML, with alignments, protected spans and glossaries.
    """
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
    drawn = np.random.default_rng([0, 2]).integers(len(kinds), size=len(texts)).tolist()
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
    server: Server, path: str, bodies: Sequence[bytes], marks: Sequence[int]
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Send everything, part by part; a row for each point, from the end of the warm-up on."""
    rows: list[dict[str, Any]] = []
    faults: Counter[str] = Counter()
    for start, end in zip([0, *marks], marks, strict=False):
        run = send_all(server.url + path, bodies[start:end], _CLIENTS)
        faults.update(outcome.fault for outcome in run.outcomes if outcome.fault)
        memory = server.memory()
        if not memory:
            raise ConfigError("resident memory cannot be told here: it is read from /proc, which only Linux has")
        rows.append({"requests": end, **memory, "rejected": run.count("rejected"), "failed": run.count("failed")})
        say(f"{end:,} requests: {memory['rss_mb']:.2f} MB resident", error=True)
    return rows, faults
