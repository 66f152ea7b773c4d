"""`tandem loadtest`: measure, or read what was measured before; tables, JSON, pictures, exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from deploy.bench.report import Output, cell, console, show_environment, table
from deploy.bench.verdicts import disturbance, not_answered
from deploy.loadtest.options import FORMAT, LoadOptions, require
from deploy.loadtest.pictures import Result, draw, title
from models.errors import ConfigError

PICTURE = "loadtest.png"
_FEW = 300  # requests of which a p99 is three or fewer
_COLUMNS = {
    "purpose": "for",
    "offered_per_s": "offered/s",
    "requests": "requests",
    "requests_per_s": "answered/s",
    "goodput_per_s": "good/s",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "rejected": "rejected",
    "lost": "lost",
    "sustained": "kept p99",
    "client_lag_ms": "client lag ms",
    "client_cores": "client cores",
    "server_cpu_ms": "CPU ms",
    "others_cores": "others' cores",
    "rss_mb": "MB",
}
_KINDS = {
    "kind": "kind",
    "requests": "requests",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "not_answered": "not answered",
}
_RUNS = {
    "label": "run",
    "scenario": "scenario",
    "pair": "pair",
    "arrivals": "arrivals",
    "bound": "p99 bound ms",
    "highest": "highest/s",
    "p50_ms": "p50 ms there",
    "p99_ms": "p99 ms there",
    "good": "most good/s",
}


def loadtest_command(options: LoadOptions | None, earlier: Sequence[Path], output: Output) -> bool:
    """Measure, and print a table or JSON; draw pictures.

    Args:
        options: what to measure; None = nothing, only show what was measured before.
        earlier: JSON files of runs to show beside this one.
        output: where results go.

    Returns:
        Whether the highest rate is what was asked for, and nothing failed; True where nothing was measured.

    Raises:
        ConfigError: an option is out of bounds, an earlier file is not such a file, or the service does not answer.
    """
    output.check()
    if output.plot is not None:
        require("matplotlib")
    before = [read_result(path) for path in earlier]
    results = list(before)
    if options is not None:
        options.check()
        from deploy.loadtest.measure import measure

        results.append(measure(options))
        output.write(results[-1])
    elif not before:
        raise ConfigError("give --url or --bundle to measure, or --compare with what was measured before")
    elif output.file is not None or output.as_json:
        raise ConfigError("--out and --json are for a measurement: give --url or --bundle")
    if output.plot is not None:
        path = draw(results, output.plot / PICTURE)
        console(error=True).print(str(path), highlight=False, soft_wrap=True)
    if not output.as_json:
        show(results, measured=options is not None)
    return options is None or bool(results[-1]["met"])


def read_result(path: Path, option: str = "--compare") -> Result:
    """A run from its JSON. Raises ConfigError where the file, given as that option, cannot be read or is none."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{option} must be JSON that tandem loadtest wrote, but {path} is not: {error}") from error
    if not isinstance(result, dict) or result.get("loadtest") != FORMAT or not result.get("rows"):
        raise ConfigError(f"{option} must be JSON that this version of tandem loadtest wrote, but {path} is not")
    return result


def show(results: Sequence[Result], *, measured: bool) -> None:
    """Tables: the runs of the last result where it was measured now or is the only one; all results side by side."""
    shown, last = console(), results[-1]
    if measured or len(results) == 1:
        print_lines(shown, [f"client: {show_environment(last['client'])}"])
        rows = [{**row, "lost": row["failed"] + row["unfinished"]} for row in last["rows"]]
        shown.print(table(title(last), _COLUMNS, rows))
        if kinds := kinds_at_highest(last):
            shown.print(table(f"by kind, at {kinds['rate']:g}/s", _KINDS, kinds["rows"]))
        print_lines(shown, [*verdict(last), *warnings(last)])
    if len(results) > 1:
        shown.print(table("compared", _RUNS, [summary(result) for result in results]))


def print_lines(shown: Console, lines: Sequence[str]) -> None:
    """Text as it is."""
    for line in lines:
        shown.print(line, highlight=False, markup=False, soft_wrap=True)


def at_highest(result: Result) -> list[dict[str, Any]]:
    """The runs at the highest rate, those of the curve first; none where there is no such rate."""
    rows = [row for row in result["rows"] if abs(row["rate"] - result["highest"]) < 1e-2]
    return sorted(rows, key=lambda row: str(row["purpose"]))


def kinds_at_highest(result: Result) -> dict[str, Any] | None:
    """The figures of each kind of request at the highest rate, else at the lowest; None where there is one kind."""
    row = (at_highest(result) or result["rows"])[0]
    if "kinds" not in row:
        return None
    rows = [{"kind": kind, **one, "not_answered": not_answered(one)} for kind, one in row["kinds"].items()]
    return {"rate": row["rate"], "rows": rows}


def summary(result: Result) -> dict[str, Any]:
    """A run in a line."""
    row = next(iter(at_highest(result)), {})
    return {
        **{key: result[key] for key in ("label", "scenario", "pair", "arrivals", "highest")},
        "bound": result["p99_bound_ms"],
        "p50_ms": row.get("p50_ms"),
        "p99_ms": row.get("p99_ms"),
        "good": max(one["goodput_per_s"] for one in result["rows"]),
    }


def verdict(result: Result) -> list[str]:
    """What was found, and what of it ends the command with status 1."""
    bound = f"p99 <= {cell(float(result['p99_bound_ms']))} ms and nothing rejected"
    highest = f"highest rate with {bound}: {result['highest']:.4g} requests a second"
    lines = [highest if result["highest"] else f"no rate that was tried kept {bound}"]
    if result["at_least"]:
        state = "reached" if result["highest"] >= result["at_least"] else "NOT reached"
        lines.append(f"{state}: at least {result['at_least']:g} requests a second")
    return [*lines, *(f"FAILED: {fault}" for fault in result["faults"])]


def warnings(result: Result) -> list[str]:
    """What makes the figures worth less."""
    late = [row["rate"] for row in result["rows"] if row["client_late"]]
    there = at_highest(result)
    found = []
    if late:
        found.append(
            f"the client was busy or late at {', '.join(f'{rate:g}' for rate in late)}/s: these figures hold its own"
            " delay; give it a machine, or a core, of its own"
        )
    if busy := disturbance(result["rows"]):
        found.append(busy)
    above = [row["rate"] for row in result["rows"] if row["sustained"] and row["rate"] > result["highest"] + 1e-2]
    if above or not all(row["sustained"] for row in there):
        what = f"{max(above):g}/s was kept as well" if above else "the highest rate was measured twice, and kept once"
        found.append(f"{what}: the service or its machine is not steady; a longer --duration says more")
    if there and there[0]["requests"] < _FEW:
        found.append(
            f"the p99 at the highest rate is of {there[0]['requests']} requests: a longer --duration says more"
        )
    return found
