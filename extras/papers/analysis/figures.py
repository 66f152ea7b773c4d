"""Figures of attention: heat maps, and the shares of mixed attention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tandem.extras.evaluation.plots import save_figure
from tandem.extras.papers.analysis.attention import AttentionName, SentenceAttention, Weights

_CELL = 0.28  # inches of a row or column of a heat map


def shares(path: Path, layers: Sequence[str], source_LT: Weights) -> list[Path]:
    """The source's share of mixed attention: layers down, target positions across, as far as there are any."""
    source_LT = source_LT[:, np.isfinite(source_LT).any(axis=0)]
    figure = Figure(figsize=(1.5 + 0.3 * source_LT.shape[1], 1.5 + 0.3 * len(layers)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(source_LT, cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_yticks(range(len(layers)), layers)
    axes.set_xlabel("target position")
    axes.set_title("share of attention on the source")
    figure.colorbar(image, ax=axes)
    return save_figure(figure, path)


def layer_maps(path: Path, sentence: SentenceAttention, names: Sequence[str]) -> list[Path]:
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
    return save_figure(figure, path)


def _draw(axes: Axes, title: str, weights_TX: Weights, rows: Sequence[str], columns: Sequence[str]) -> None:
    axes.imshow(weights_TX, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(columns)), [_shown(one) for one in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_shown(one) for one in rows])
    axes.tick_params(labelsize=7)
    axes.set_title(title, fontsize=9)


def _shown(piece: str) -> str:
    """A piece as drawn: a dollar sign would begin a formula."""
    return piece.replace("$", r"\$")
