"""Figures of attention, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.papers.analysis.attention import SentenceAttention
from tandem.extras.papers.analysis.figures import layer_maps, shares

SENTENCE = SentenceAttention(
    (("▁price", "$", "</s>"),),
    ("▁Preis", "</s>"),
    {f"cnn.{layer}.san": np.array([[0.2, 0.7, 0.1], [layer, 0.0, 1.0 - layer]]) for layer in range(2)},
)
DRAWN: dict[str, Callable[[Path], list[Path]]] = {
    "layers": lambda path: layer_maps(path, SENTENCE, list(SENTENCE.weights)),
    "one-layer": lambda path: layer_maps(path, SENTENCE, ["cnn.0.san"]),
    "shares": lambda path: shares(path, ("mixed.0", "mixed.1"), np.array([[0.9, np.nan], [0.1, 0.5]])),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_written_as_png_and_svg_and_the_same_each_time(name: str, tmp_path: Path) -> None:
    first, second = (DRAWN[name](tmp_path / folder / name) for folder in ("one", "two"))
    assert [path.name for path in first] == [f"{name}.png", f"{name}.svg"]
    assert first[0].read_bytes().startswith(b"\x89PNG") and b"<svg" in first[1].read_bytes()
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
