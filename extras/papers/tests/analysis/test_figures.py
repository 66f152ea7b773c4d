"""The figure of mixed attention, in both formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from extras.papers.analysis.figures import shares


def test_the_figure_is_written_as_png_and_svg_and_the_same_each_time(tmp_path: Path) -> None:
    layers, source_LT = ("mixed.0", "mixed.1"), np.array([[0.9, np.nan], [0.1, 0.5]])
    first, second = (shares(tmp_path / folder / "shares", layers, source_LT) for folder in ("one", "two"))
    assert [path.name for path in first] == ["shares.png", "shares.svg"]
    assert first[0].read_bytes().startswith(b"\x89PNG") and b"<svg" in first[1].read_bytes()
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
