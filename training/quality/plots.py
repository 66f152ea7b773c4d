"""Figures, each written as PNG and SVG. Drawn without a display."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from training.quality.attention import AttentionName, SentenceAttention, Weights

FORMATS = ("png", "svg")
_CELL = 0.28  # inches of a row or column of a heat map


def layer_maps(path: Path, sentence: SentenceAttention, names: Sequence[str]) -> list[Path]:
    """The figure of :func:`layer_figure`."""
    return save_figure(layer_figure(sentence, names), path)


def layer_figure(sentence: SentenceAttention, names: Sequence[str]) -> Figure:
    """The attentions of one path over one thing, layer beside layer (DPN, figure 2): a row for each target token,
    darker where more of the weight lies.
    """
    columns = sentence.labels(names[0])
    width, height = 1.4 + _CELL * len(columns), 2.0 + _CELL * len(sentence.target)
    figure = Figure(figsize=(width * len(names), height), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        parts = AttentionName.parse(name)
        _draw(
            axes, f"{parts.path} {parts.layer + 1} over {parts.over}", sentence.weights[name], sentence.target, columns
        )
    return figure


def png(figure: Figure) -> bytes:
    """A figure as a PNG, for where there is no folder to write to; the same data gives the same bytes."""
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=80, metadata={"Software": None})
    return held.getvalue()


def _draw(axes: Axes, title: str, weights_TX: Weights, rows: Sequence[str], columns: Sequence[str]) -> None:
    axes.imshow(weights_TX, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(columns)), [_shown(one) for one in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_shown(one) for one in rows])
    axes.tick_params(labelsize=7)
    axes.set_title(title, fontsize=9)


def _shown(piece: str) -> str:
    """A piece as drawn: a dollar sign would begin a formula."""
    return piece.replace("$", r"\$")


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
