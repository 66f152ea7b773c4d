"""What a measured load amounts to, in words and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deploy.report import cell

Result = dict[str, Any]
QUIET_CORES = 0.2  # that others may keep busy
_FEW = 300  # requests of which a p99 is three or fewer


def title(result: Result) -> str:
    """A run in words."""
    return f"{result['label']}: {result['pair']}, {result['scenario']}, {result['arrivals']} arrivals"


def not_answered(row: Result) -> int:
    """Requests of a run that were rejected, failed, or unfinished when it ended."""
    return int(row["rejected"] + row["failed"] + row["unfinished"])


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
