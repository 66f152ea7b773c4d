"""Pictures of what a model looks at in the sentences that a validation shows.

Shape suffixes: T target positions (EOS included), S source positions (EOS included), H and W pixels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.training.loop.reporting import SeenSource

_LONGEST = 60  # symbols drawn of a side
_CELL = 0.2  # inches of a symbol
_DPI = 100


def picture(seen: Sequence[SeenSource]) -> NDArray[np.uint8]:
    """H x W x 3: the sources of a sentence side by side, darker where more of the weight lies."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here: who draws nothing needs none of it
    from matplotlib.figure import Figure

    widths = [min(len(one.columns), _LONGEST) for one in seen]
    height = min(len(seen[0].rows), _LONGEST)
    size = (1.2 * len(seen) + _CELL * sum(widths), 1.2 + _CELL * height)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
    axes = figure.subplots(1, len(seen), squeeze=False, width_ratios=widths)[0]
    for own, one in zip(axes, seen, strict=True):
        _draw(own, one)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a script that the font has not is drawn as boxes
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _draw(axes: Any, seen: SeenSource) -> None:
    rows, columns = seen.rows[:_LONGEST], seen.columns[:_LONGEST]
    weights_TS = seen.weights_TS[:_LONGEST, :_LONGEST]
    axes.imshow(weights_TS, cmap="Greys", vmin=0.0, vmax=float(weights_TS.max()), aspect="auto")
    axes.set_xticks(range(len(columns)), [_shown(one) for one in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_shown(one) for one in rows])
    axes.tick_params(labelsize=7)


def _shown(piece: str) -> str:
    """A piece as drawn: a dollar sign would begin a formula."""
    return piece.replace("$", r"\$")
