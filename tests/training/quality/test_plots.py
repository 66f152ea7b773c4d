"""Figures, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from training.quality import plots
from training.quality.attention import SentenceAttention

SENTENCE = SentenceAttention(
    (("▁price", "$", "</s>"),),
    ("▁Preis", "</s>"),
    {f"cnn.{layer}.san": np.array([[0.2, 0.7, 0.1], [layer, 0.0, 1.0 - layer]]) for layer in range(2)},
)
DRAWN: dict[str, Callable[[Path], list[Path]]] = {
    "layers": lambda path: plots.layer_maps(path, SENTENCE, list(SENTENCE.weights)),
    "one-layer": lambda path: plots.layer_maps(path, SENTENCE, ["cnn.0.san"]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_written_as_png_and_svg(name: str, tmp_path: Path) -> None:
    png, svg = DRAWN[name](tmp_path / "figures" / name)
    assert (png.name, svg.name) == (f"{name}.png", f"{name}.svg")
    assert png.read_bytes().startswith(b"\x89PNG") and b"<svg" in svg.read_bytes()


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (DRAWN["layers"](tmp_path / folder) for folder in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_figure_without_a_file_is_the_same_png() -> None:
    first, second = (plots.png(plots.layer_figure(SENTENCE, list(SENTENCE.weights))) for _ in range(2))
    assert first == second and first.startswith(b"\x89PNG")
