"""A figure of mixed attention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from training.quality.attention import Weights
from training.quality.plots import save_figure


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
