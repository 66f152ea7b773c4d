"""A load test as PNG: latency over load, and what became of the requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tandem.extras.loadtest.options import Result, title

_LATENCIES = {"p50": (":", "tab:blue"), "p95": ("--", "tab:purple"), "p99": ("-", "tab:red")}
_FATES = {
    "goodput_per_s": ("good answers", "-", "tab:green"),
    "rejected": ("rejected", "--", "tab:orange"),
    "unanswered": ("failed or unfinished", ":", "tab:red"),
}


def draw_curves(result: Result, path: Path) -> Path:
    """Draw a run over the rate that was offered: percentiles of the curve, the p99 of the search as crosses between
    them, the highest rate as an upright line; below, requests a second by what became of them.
    """
    figure = Figure(figsize=(7.2, 7.2), layout="constrained")
    latency, fate = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    rows = sorted(result["rows"], key=lambda row: float(row["offered_per_s"]))
    curve = [row for row in rows if row["purpose"] == "curve"]
    for name, (style, colour) in _LATENCIES.items():
        known = [row for row in curve if row[f"{name}_ms"] is not None]
        latency.plot(_column(known), _column(known, f"{name}_ms"), style, color=colour, marker=".", label=name)
    searched = [row for row in rows if row["purpose"] == "search" and row["p99_ms"] is not None]
    latency.plot(
        _column(searched), _column(searched, "p99_ms"), "x", color="tab:red", alpha=0.5, label="p99, searching"
    )
    latency.axhline(result["p99_bound_ms"], color="grey", linewidth=0.8)
    if result["highest"]:
        label = f"{result['highest']:.3g}/s with p99 ≤ {result['p99_bound_ms']:g} ms"
        latency.axvline(result["highest"], color="black", linewidth=0.8, linestyle="-.", label=label)
    for name, (words, style, colour) in _FATES.items():
        values = [_per_second(row, name) for row in curve]
        fate.plot(_column(curve), values, style, color=colour, marker=".", label=words)
    fate.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    latency.set(yscale="log", ylabel="latency in ms")
    fate.set(xlabel="offered requests per second", ylabel="requests per second")
    fate.set_xlim(left=0)
    fate.set_ylim(0, 1.05 * rows[-1]["offered_per_s"])
    for axes in (latency, fate):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    latency.set_title(title(result), fontsize=10)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path


def _column(rows: list[dict[str, Any]], name: str = "offered_per_s") -> list[float]:
    return [float(row[name]) for row in rows]


def _per_second(row: dict[str, Any], name: str) -> float:
    if name == "goodput_per_s":
        return float(row[name])
    count = row["rejected"] if name == "rejected" else row["failed"] + row["unfinished"]
    return float(count / row["seconds"])
