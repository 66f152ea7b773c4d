"""Curves as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from models.errors import ConfigError

Points = Sequence[tuple[float, float]]


def draw_curves(
    path: Path, curves: Mapping[str, Points], *, x: str, y: str, logarithmic: bool = False, title: str = ""
) -> Path:
    """Curves of one figure, each with a marker at every point, written as PNG.

    Args:
        path: of the file; its folder is made.
        curves: points by name.
        x, y: what the axes show, with the unit.
        logarithmic: whether x doubles from mark to mark (batch sizes, clients).
        title: above the figure.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ConfigError("figures need the package matplotlib: install tandem with its extra [train]") from error
    figure = Figure(figsize=(6.8, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, (name, points) in enumerate(curves.items()):
        ordered = sorted(points)
        axes.plot([p[0] for p in ordered], [p[1] for p in ordered], marker="osv^Dxp*"[number % 8], label=name)
    if logarithmic:
        marks = sorted({point[0] for points in curves.values() for point in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path
