"""What a model looks at, as a picture."""

from __future__ import annotations

import numpy as np

from tandem.extras.tracking.pictures import picture
from tandem.training.loop.reporting import SeenSource


def seen(row: int, column: int, rows: int = 2, columns: int = 3) -> SeenSource:
    weights = np.full((rows, columns), 0.01, np.float32)
    weights[row, column] = 0.4
    return SeenSource(("$x",) * rows, ("b",) * columns, weights)


def test_weights_are_drawn_where_they_lie() -> None:
    """Rows down, columns across: what the first row has of the last column is dark in the upper right corner."""
    upper_right, lower_left = (picture([seen(*place)]).astype(int).sum(axis=2) for place in ((0, 2), (1, 0)))
    assert upper_right.shape == lower_left.shape
    darker = np.argwhere(upper_right < lower_left - 300)
    height, width = upper_right.shape
    assert len(darker) > 100
    down, across = darker.mean(axis=0) / (height, width)
    assert down < 0.5 < across


def test_a_script_that_the_font_has_not_is_no_fault() -> None:
    assert picture([SeenSource(("猫", "</s>"), ("$", "ねこ"), np.eye(2, dtype=np.float32))]).std() > 0


def test_sources_stand_side_by_side_and_long_ones_are_cut() -> None:
    one, two, long = (picture(list(sources)) for sources in ([seen(0, 0)], [seen(0, 0)] * 2, [seen(0, 0, 200, 300)]))
    assert one.dtype == np.uint8 and one.shape[2] == 3
    assert (two.shape[0], two.shape[1]) == (one.shape[0], 2 * one.shape[1])
    assert max(long.shape) < 1500
