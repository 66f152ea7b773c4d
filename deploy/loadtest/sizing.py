"""How many replicas a load takes, from what one replica was measured to bear.

Replicas share nothing but the store of limits, so a fleet bears so many times what one does, as long as the balancer in
front spreads requests evenly. What a replica bears at a p99 is read off its measured curve, never calculated: latency
at a load follows from the lengths of the texts, their arrivals and how batches fill, and no formula knows these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.loadtest.options import SizingOptions, parse_rates
from deploy.loadtest.results import Result, read_result, title
from deploy.report import ResultOutput, cell, console, say, table
from models.errors import ConfigError

_COLUMNS = {
    "requests_per_s": "requests/s",
    "replicas": "replicas",
    "cores": "cores",
    "memory_gb": "memory GB",
    "target_tokens_per_s": "target tokens/s",
    "price_per_hour": "price an hour",
    "price_per_million_characters": "for a million characters",
}


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    """What one replica bears at a p99.

    Attributes:
        rate: requests a second.
        tokens: target tokens of a request; 0 where the service was measured from outside.
        characters: of a request's texts.
        memory: resident MB at most; 0 where it is not known.
    """

    rate: float
    tokens: float
    characters: float
    memory: float


def sizing_command(options: SizingOptions) -> None:
    """Print a table of rates and what they take, or JSON.

    Raises:
        ConfigError: the file is no measurement, or no rate of it kept the p99.
    """
    output = ResultOutput.of(options)
    measured = read_result(options.load)
    result = size(measured, options)
    output.write(result)
    if not output.as_json:
        console().print(table(f"{title(measured)}: p99 <= {result['p99_ms']:g} ms", _COLUMNS, result["rows"]))
        say(*says(result))


def size(measured: Result, options: SizingOptions) -> dict[str, Any]:
    """What each rate takes.

    Returns:
        ``p99_ms``, ``replica`` (what one bears), ``options`` that the figures follow from, and ``rows``.
    """
    bound = 1e3 * options.p99 or float(measured["p99_bound_ms"])
    replica = replica_at(measured["rows"], bound)
    rows = [_row(rate, replica, options) for rate in parse_rates(options.rates)]
    given = {"cores": options.cores, "use": options.use, "spare": options.spare, "core_price": options.core_price}
    one = {"requests_per_s": replica.rate, "target_tokens": replica.tokens, "characters": replica.characters}
    return {"p99_ms": bound, "replica": one, "options": given, "rows": rows}


def replica_at(rows: Sequence[Mapping[str, Any]], bound: float) -> ReplicaLoad:
    """What was borne at the highest rate up to which every run kept a bound.

    Args:
        rows: of a measurement.
        bound: ms of the p99.

    Raises:
        ConfigError: not even the lowest rate kept it.
    """
    over = [
        row["rate"]
        for row in rows
        if row["p99_ms"] is None or row["p99_ms"] > bound or row["rejected"] + row["failed"] + row["unfinished"]
    ]
    # A rate that was measured twice has to be kept twice.
    kept = [row for row in rows if not over or row["rate"] < min(over)]
    if not kept:
        least = min(float(row["rate"]) for row in rows)
        raise ConfigError(f"no rate kept a p99 of {bound:g} ms: the lowest that was measured is {least:g}/s")
    best = max(kept, key=lambda row: float(row["rate"]))
    characters = max(1.0, best["characters_per_s"]) / best["requests_per_s"]
    tokens = (best.get("target_tokens") or 0.0) / best["requests"]
    memory = max((row["rss_mb"] for row in rows if row.get("rss_mb")), default=0.0)
    return ReplicaLoad(float(best["rate"]), tokens, characters, memory)


def _row(rate: float, replica: ReplicaLoad, options: SizingOptions) -> dict[str, Any]:
    replicas = math.ceil(rate / (options.use * replica.rate)) + options.spare
    price = replicas * options.cores * options.core_price
    memory = replica.memory
    return {
        "requests_per_s": rate,
        "replicas": replicas,
        "cores": replicas * options.cores,
        "memory_gb": round(replicas * memory / 1e3, 2) if memory else None,
        "target_tokens_per_s": round(rate * replica.tokens) if replica.tokens else None,
        "price_per_hour": round(price, 2) if price else None,
        "price_per_million_characters": round(price / (3600 * rate * replica.characters) * 1e6, 4) if price else None,
    }


def says(result: Mapping[str, Any]) -> list[str]:
    """What the figures follow from."""
    one, given = result["replica"], result["options"]
    tokens = f" and {one['target_tokens']:.3g} target tokens" if one["target_tokens"] else ""
    return [
        f"One replica of {given['cores']:g} cores bears {one['requests_per_s']:.4g} requests a second of"
        f" {one['characters']:.3g} characters{tokens} each; {given['use']:.0%} of that is planned with,"
        f" and {given['spare']} more may be away.",
        *([f"A core costs {cell(given['core_price'])} an hour."] if given["core_price"] else []),
    ]
