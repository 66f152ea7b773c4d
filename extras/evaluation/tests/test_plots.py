"""Figures, in both formats."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from tandem.extras.evaluation.plots import save_figure


def test_a_figure_is_written_as_png_and_svg_and_the_same_each_time(tmp_path: Path) -> None:
    figures = [Figure(), Figure()]
    for figure in figures:
        figure.subplots().plot([1, 3, 2], label="a")
    first, second = (save_figure(one, tmp_path / str(number) / "curve") for number, one in enumerate(figures))
    assert [path.name for path in first] == ["curve.png", "curve.svg"]
    assert first[0].read_bytes().startswith(b"\x89PNG") and b"<svg" in first[1].read_bytes()
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
