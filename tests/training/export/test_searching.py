"""The search behind the logits, operator by operator, against :func:`models.graphs.best_per_row`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from models.graphs import LEAST_BLOCKED, SPARE, best_per_row
from models.search.graphs import GraphSpec, TensorSpec
from tests.training.export.support import session
from training.export.searching import search_graph

ROWS = 4
_FOUND = ("scores", "tokens", "parents"), ("float32", "int64", "int64")


@pytest.mark.parametrize("size", [SPARE - 1, LEAST_BLOCKED, LEAST_BLOCKED + 1])
@pytest.mark.parametrize("bans", [0, 1, 30])
def test_bans_of_the_best_tokens_leave_the_next_ones(size: int, bans: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(size + bans)
    logits = rng.normal(size=(ROWS, size)).astype(np.float32)
    order = np.argsort(-logits, axis=1)
    banned = order[:, :bans].copy()
    banned[1, bans // 2 :] = size  # padding
    banned[2] = rng.integers(0, size, bans)  # some of them nowhere near the best, some perhaps twice
    score, forced = rng.normal(size=ROWS).astype(np.float32), np.array([-1, -1, -1, order[3, 0]])
    inputs = {
        "raw": logits,
        "score": score,
        "banned": banned,
        "forced": forced,
        "count": np.array(10),
        "memory.mask": np.zeros((ROWS, 1), np.float32),
    }
    graph = search_graph(_step_logits(size), _spec(size))
    (tmp_path / "step.onnx").write_bytes(graph.SerializeToString())
    scores, tokens, parents, logsumexp = session(tmp_path / "step.onnx").run(None, inputs)

    best, expected, lse = best_per_row(torch.tensor(logits), torch.tensor(banned), torch.tensor(forced), 10)
    possible = torch.isfinite(best).numpy()
    np.testing.assert_allclose(scores, best.numpy() + score[:, None], atol=1e-5)
    assert (tokens[possible] == expected.numpy()[possible]).all()
    assert (tokens < size).all()
    assert not parents.any()
    np.testing.assert_allclose(logsumexp, lse.numpy(), atol=1e-5)


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
