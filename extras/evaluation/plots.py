"""Figures, each written as PNG and SVG. Drawn without a display."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

FORMATS = ("png", "svg")


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG; the same data gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    # The same data gives the same file: no date, and no random element names.
    with matplotlib.rc_context({"svg.hashsalt": "tandem", "svg.fonttype": "path"}):
        for suffix in FORMATS:
            written.append(path.with_name(f"{path.name}.{suffix}"))
            figure.savefig(written[-1], dpi=150, metadata={"Date": None} if suffix == "svg" else {"Software": None})
    return written
