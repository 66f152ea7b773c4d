"""The comparison of imported models: every form in small, rows that fail, and rows that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.proofs import import_proof
from tandem.extras.proofs.options import ImportsOptions
from tandem.extras.proofs.shapes import SHAPES


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_in_small_is_what_was_published(tmp_path: Path, name: str) -> None:
    for program in ("transformers", "ctranslate2"):
        pytest.importorskip(program)
    shape = SHAPES[name]
    small = {"layers": 2, "ffn_dim": 128, "attention_heads": 4}
    config = dict(shape.config) | {f"{side}_{part}": n for part, n in small.items() for side in ("encoder", "decoder")}
    shape = replace(shape, types=6000, config=config | {"d_model": 64})
    row = import_proof.compared(shape, tmp_path / "model", ImportsOptions(inputs=100, whole=name == "argos"))
    assert row["met"], row
    assert min(row[peer]["compared"] for peer in ("generate", "ctranslate2")) > 10
    assert row["different"] > 10
    assert name != "argos" or row["bundle_mb"] > 0


def test_a_row_that_fails_says_why_and_one_that_is_kept_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> dict[str, Any]:
        raise ValueError("a reason")

    def here(function: Callable[..., Any], *given: Any) -> Any:
        return function(*given)

    monkeypatch.setattr(import_proof, "compared", fails)
    monkeypatch.setattr(import_proof, "in_own_process", here)
    counts = {"compared": 5, "identical": 4, "ties": 1}
    kept = {"form": "Marian", "shape": "small", "logits": 2e-6, "texts": 3, "lines": 3, "met": True, "inputs": 9}
    kept |= {"generate": counts, "ctranslate2": counts}
    (tmp_path / "marian-npz.json").write_text(json.dumps(kept), encoding="utf-8")
    result = import_proof.measure(ImportsOptions(shapes="marian-npz,argos", keep=tmp_path))
    assert [row["met"] for row in result["rows"]] == [True, False]
    assert not result["met"]
    assert not (tmp_path / "argos.json").exists()
    assert import_proof.markdown(result)[2:] == [
        "| Marian | marian-npz: small | 9 | 2.0e-06 | 4 of 5, 1 ties | 4 of 5, 1 ties | 3 of 3 |",
        "| argos | ValueError: a reason | | | | | |",
    ]
