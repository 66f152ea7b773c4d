"""How measurements are shown: a table for people, JSON for programs, curves as PNG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from deploy.commands.outputs import check_file, check_folder
from models.command import console as console
from models.errors import ConfigError

Points = Sequence[tuple[float, float]]


def as_json(result: Mapping[str, Any]) -> str:
    """A result as JSON. Raises ValueError for a figure that is not finite: JSON has none."""
    return json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go.

    Attributes:
        as_json: print JSON instead of tables.
        file: also write the JSON there.
        plot: folder for curves.
    """

    as_json: bool = False
    file: Path | None = None
    plot: Path | None = None

    def check(self) -> None:
        """Raises ConfigError for a path that cannot be written."""
        check_file(self.file, "--out")
        check_folder(self.plot, "--plot")

    def write(self, result: Mapping[str, Any]) -> None:
        """The JSON, where it was asked for."""
        if self.file is not None:
            self.file.write_text(as_json(result) + "\n", encoding="utf-8")
        if self.as_json:
            print(as_json(result))


def show_environment(environment: Mapping[str, Any]) -> str:
    """The environment in two lines."""
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    features = " ".join(environment["features"]) or "no vector instructions known"
    cores = f"{environment['usable_cores']} of {environment['cores']} cores usable, {environment['threads']} threads"
    return f"{environment['processor']} ({features}), {cores}\nPython {environment['python']}, {versions}"


def table(title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows as a table; columns that no row has a value for are left out.

    Args:
        title: above it.
        columns: key of a row -> heading.
        rows: values by key; None is shown as a dash.
    """
    made = Table(title=title, title_justify="left")
    shown = [key for key in columns if any(row.get(key) is not None for row in rows)]
    for key in shown:
        numeric = all(isinstance(row.get(key), int | float | None) for row in rows)
        made.add_column(columns[key], justify="right" if numeric else "left")
    for row in rows:
        made.add_row(*(cell(row.get(key)) for key in shown))
    return made


def cell(value: object) -> str:
    """A value as people read it: three figures of a number below 100, whole numbers above."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
