"""Load tests as PNG: latency over load, and what became of the requests.

matplotlib draws them, as it does every figure of this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.loadtest.options import require
from deploy.loadtest.results import Result, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LATENCIES = {"p50": ":", "p95": "--", "p99": "-"}  # and how each is drawn
# Of one run each figure has a colour, of several each run.
_FATES = {
    "goodput_per_s": ("good answers", "-", "tab:green"),
    "rejected": ("rejected", "--", "tab:orange"),
    "unanswered": ("failed or unfinished", ":", "tab:red"),
}
_COLOURS = {"p50": "tab:blue", "p95": "tab:purple", "p99": "tab:red"}


def draw(results: Sequence[Result], path: Path) -> Path:
    """Draw one run, or several in one picture, over the rate that was offered.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    require("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 7.2), layout="constrained")
    latency, fate = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for number, result in enumerate(results):
        colour = f"C{number}" if len(results) > 1 else None
        _draw_latency(latency, result, colour)
        _draw_fate(fate, result, colour)
    for bound in sorted({result["p99_bound_ms"] for result in results}):
        latency.axhline(bound, color="grey", linewidth=0.8)
    fate.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    latency.set_yscale("log")
    latency.set_ylabel("latency in ms")
    fate.set_ylabel("requests per second")
    fate.set_xlabel("offered requests per second")
    fate.set_xlim(left=0)
    fate.set_ylim(0, 1.05 * max(row["offered_per_s"] for result in results for row in result["rows"]))
    for axes in (latency, fate):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    latency.set_title(title(results[0]) if len(results) == 1 else "Latency over load", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path


def curve(result: Result) -> list[dict[str, Any]]:
    """The runs that lines are drawn through: what the search tried lies between them."""
    return [row for row in result["rows"] if row["purpose"] == "curve"]


def _draw_latency(axes: Axes, result: Result, colour: str | None) -> None:
    """Percentiles of the curve, the p99 of the search as dots, and the highest rate as an upright line."""
    for name, style in _LATENCIES.items():
        points = [(row["offered_per_s"], row[f"{name}_ms"]) for row in curve(result) if row[f"{name}_ms"] is not None]
        label = name if colour is None else f"{result['label']}: {name}"
        axes.plot(*_columns(points), style, color=colour or _COLOURS[name], marker="o", markersize=3, label=label)
    searched = [row for row in result["rows"] if row["purpose"] == "search" and row["p99_ms"] is not None]
    dots = [(row["offered_per_s"], row["p99_ms"]) for row in searched]
    label = "p99, searching" if colour is None else "_unlisted"
    axes.plot(*_columns(dots), "x", color=colour or _COLOURS["p99"], markersize=4, alpha=0.5, label=label)
    if result["highest"]:
        name = f"{result['highest']:.3g}/s with p99 ≤ {result['p99_bound_ms']:g} ms"
        label = name if colour is None else f"{result['label']}: {name}"
        axes.axvline(result["highest"], color=colour or "black", linewidth=0.8, linestyle="-.", label=label)


def _draw_fate(axes: Axes, result: Result, colour: str | None) -> None:
    """Good answers a second, and what was not answered; of several runs only where there is any."""
    for name, (words, style, own) in _FATES.items():
        points = [(row["offered_per_s"], _per_second(row, name)) for row in curve(result)]
        if colour is not None and not any(value for _, value in points):
            continue
        label = words if colour is None else f"{result['label']}: {words}"
        axes.plot(*_columns(points), style, color=colour or own, marker="o", markersize=3, label=label)


def _per_second(row: dict[str, Any], name: str) -> float:
    if name == "goodput_per_s":
        return float(row[name])
    count = row["rejected"] if name == "rejected" else row["failed"] + row["unfinished"]
    return float(count / row["seconds"])


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    ordered = sorted(points)
    return [x for x, _ in ordered], [y for _, y in ordered]
