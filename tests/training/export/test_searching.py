"""The search that is written behind the logits against PyTorch's functions, ties and bans among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from tandem.models.search.graphs import GraphSpec, TensorSpec
from tandem.models.steps.continuations import best_continuations
from tandem.models.steps.numbers import LEAST_BLOCKED, SPARE
from tandem.training.export.searching import search_graph
from tests.training.export.support import session

ROWS, SENTENCES = 4, 2
_FOUND = ("scores", "tokens", "parents"), ("float32", "int64", "int64")


# A small vocabulary is that of the exports of every day, which are held against torch too.
SLOW = [pytest.param(size, marks=pytest.mark.slow) for size in (SPARE - 1, LEAST_BLOCKED + 1)]


@pytest.mark.parametrize("size", [LEAST_BLOCKED, *SLOW])
def test_the_graph_finds_what_torch_finds(size: int, tmp_path: Path) -> None:
    """The same scores; where some are equal, continuations that have them, each once."""
    (tmp_path / "step.onnx").write_bytes(search_graph(_step_logits(size), _spec(size)).SerializeToString())
    graph = session(tmp_path / "step.onnx")
    for bans, grain in ((0, 0), (1, 0), (30, 0), (3, 1), (30, 2)):
        inputs = _inputs(size, bans, grain)
        *found, lse = graph.run(None, inputs)
        given = {name: torch.tensor(value) for name, value in inputs.items()}
        *expected, expected_lse = best_continuations(given["raw"], given, SENTENCES)
        np.testing.assert_allclose(lse, expected_lse, atol=1e-5)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
        held = torch.log_softmax(given["raw"], -1).numpy()
        for scores, tokens, parents in (found, [one.numpy() for one in expected]):
            for sentence in range(SENTENCES):
                possible = np.isfinite(scores[sentence])
                token, row = tokens[sentence][possible], sentence * 2 + parents[sentence][possible]
                assert len(set(zip(row, token, strict=True))) == len(row) >= 2
                np.testing.assert_allclose(
                    held[row, token] + inputs["score"][row], scores[sentence][possible], atol=1e-5
                )
                assert not (inputs["banned"][row] == token[:, None])[inputs["forced"][row] < 0].any()
                assert ((inputs["forced"][row] < 0) | (inputs["forced"][row] == token)).all()


def _inputs(size: int, bans: int, grain: int) -> dict[str, Any]:
    """With ``grain`` most logits have equals, the best of them too."""
    rng = np.random.default_rng(size + bans)
    logits = rng.normal(size=(ROWS, size)).astype(np.float32)
    if grain:
        logits = np.asarray(np.round(logits * grain) / grain, np.float32)
    order = np.argsort(-logits, axis=1)
    banned = order[:, :bans].copy()
    banned[1, bans // 2 :] = size  # padding
    banned[2] = rng.integers(0, size, bans)  # some of them nowhere near the best, some perhaps twice
    return {
        "raw": logits.astype(np.float32),
        "score": rng.normal(size=ROWS).astype(np.float32),
        "banned": banned,
        "forced": np.array([-1, -1, -1, order[3, 0]]),
        "count": np.array(10),
        "memory.mask": np.zeros((SENTENCES, 1), np.float32),
    }


def _spec(size: int) -> GraphSpec:
    row, result = ("row",), ("sentence", "candidate")
    controls = [("score", "float32", row), ("banned", "int64", ("row", "ban")), ("forced", "int64", row)]
    inputs = [
        TensorSpec("raw", "float32", ("row", f"fixed:{size}"), 0.0, "source"),
        *(TensorSpec(name, dtype, axes, float(size), "control") for name, dtype, axes in controls),
        TensorSpec("count", "int64", (), 0.0, "control"),
        TensorSpec("memory.mask", "float32", ("sentence", "source0"), 0.0, "memory"),
    ]
    outputs = [
        *(TensorSpec(name, dtype, result, 0.0, "result") for name, dtype in zip(*_FOUND, strict=True)),
        TensorSpec("logsumexp", "float32", row, 0.0, "result"),
    ]
    return GraphSpec(tuple(inputs), tuple(outputs))


def _step_logits(size: int) -> onnx.ModelProto:
    """A model that has its logits from without."""
    raw, logits = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["row", size]) for n in ("raw", "logits"))
    mask = helper.make_tensor_value_info("memory.mask", onnx.TensorProto.FLOAT, ["sentence", "source0"])
    graph = helper.make_graph([helper.make_node("Identity", ["raw"], ["logits"])], "graph", [raw, mask], [logits])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
