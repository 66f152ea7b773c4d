"""`tandem loadtest`, and what it leaves: table, JSON, picture, exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem.extras.loadtest.options import LoadOptions, Result, title
from tandem.extras.shared.outputs import check_folder
from tandem.extras.shared.report import cell, console, run_measurement, say, show_environment, table

PICTURE = "loadtest.png"
QUIET_CORES = 0.2  # that others may keep busy
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


def loadtest(options: LoadOptions) -> None:
    """Find out what load a service bears: latency over load, and the highest rate that keeps a p99.

    Requests are sent when they are due, whatever the service does; latency counts from then. It is loaded beyond what
    it can bear: ask before you do this to a service that others use. The exit status is 1 where no rate kept the p99 or
    a request failed; rejections (429, 503) are no failures. docs/load-tests.md explains the figures.

    Example: tandem loadtest --url http://localhost:8000 --p99 0.5 --out today.json --plot curves
    """
    check_folder(options.plot, "--plot")
    options.check()
    from tandem.extras.loadtest.measure import measure  # its packages are the extra's, which the check has looked for

    def draw(result: dict[str, Any]) -> None:
        if options.plot is not None:
            from tandem.extras.loadtest.pictures import draw_curves

            say(str(draw_curves(result, options.plot / PICTURE)), error=True)

    run_measurement(options, measure, _show, draw)


def _show(result: dict[str, Any]) -> None:
    say(f"client: {show_environment(result['client'])}")
    rows = [{**row, "lost": row["failed"] + row["unfinished"]} for row in result["rows"]]
    console().print(table(title(result), _COLUMNS, rows))
    say(*verdict(result), *warnings(result))


def disturbance(rows: Sequence[Result]) -> str:
    """A warning where others used the cores during the runs; empty where they hardly did, or nobody can tell."""
    most = max((row.get("others_cores", 0.0) for row in rows), default=0.0)
    if most <= QUIET_CORES:
        return ""
    return (
        f"others kept up to {most:.2g} cores busy during a run: its figures say little, measure again when it is quiet"
    )


def at_highest(result: Result) -> list[dict[str, Any]]:
    """The runs at the highest rate, those of the curve first; none where there is no such rate."""
    rows = [row for row in result["rows"] if abs(row["rate"] - result["highest"]) < 1e-2]
    return sorted(rows, key=lambda row: str(row["purpose"]))


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
