"""Memory and state that stay where the graphs run: what the search finds is the same, and nothing goes to and fro."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from models.bundle import Bundle
from models.errors import BundleError, ConfigError
from models.search import OfflineDecoder, SearchOptions
from models.search.graphs import RESIDENT_GRAPH
from models.search.offline import NBest
from service.runtimes import Placement, open_graphs
from service.runtimes.onnx import OnnxGraphs
from service.runtimes.resident import Held
from tests.training.export.conftest import Exported
from training.export.bundle import add_precision

OPTIONS = SearchOptions(beam_size=3, n_best=3, max_length=14, attention=True)
LENGTHS = (9, 2, 7, 3, 3, 11, 4, 2, 6, 5)


def sources(exported: Exported) -> list[tuple[Any, ...]]:
    draw = np.random.default_rng(0)
    sizes = exported.model.config.source_vocabularies
    return [tuple(np.array([*draw.integers(4, size, length), 2]) for size in sizes) for length in LENGTHS]


def decoded(exported: Exported, graphs: OnnxGraphs) -> list[NBest]:
    """Sentences leave, join, and take the places of others."""
    options = replace(OPTIONS, attention="align" in graphs.specs)
    return list(OfflineDecoder(graphs, options, most=4).decode(sources(exported)))


def same(found: list[NBest], expected: list[NBest]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [(h.tokens, h.score) for h in one] == [(h.tokens, h.score) for h in other]  # type: ignore[union-attr]
        for mine, theirs in zip(one, other, strict=True):  # type: ignore[arg-type]
            for weights, others in zip(mine.attention or (), theirs.attention or (), strict=True):
                np.testing.assert_array_equal(weights, others)


def test_what_stays_on_the_device_gives_the_same(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()
    looked, step = Held.__array__, OnnxGraphs._step

    def looking(self: Held, *arguments: Any, **named: Any) -> Any:
        counted["copies"] += 1
        return looked(self, *arguments, **named)

    def stepping(self: OnnxGraphs, inputs: Any) -> Any:
        counted["steps"] += 1
        before = counted["copies"]
        assert all(
            isinstance(x, Held) for name, x in inputs.items() if name.startswith("memory.") or name in self._pools
        )
        uploaded = [spec for spec in self.specs["step"].inputs if not isinstance(inputs[spec.name], Held)]
        counted["quiet"] += all(spec.kind != "rows" for spec in uploaded)
        assert all(spec.kind in ("control", "position", "rows") or spec.name == "history" for spec in uploaded)
        outputs = step(self, inputs)
        assert counted["copies"] == before
        return outputs

    monkeypatch.setattr(Held, "__array__", looking)
    monkeypatch.setattr(OnnxGraphs, "_step", stepping)
    expected = decoded(exported, OnnxGraphs(exported.bundle, "float32", 1))
    assert not counted
    graphs = OnnxGraphs(exported.bundle, "float32", 1, resident=True)
    assert "history" not in graphs._bound.inputs or not graphs._pools
    same(decoded(exported, graphs), expected)
    assert counted["steps"] > 20 and counted["copies"] > 0
    assert counted["quiet"] > counted["steps"] / 2  # state goes up again only where sentences joined


def test_a_graph_that_would_have_to_be_told_what_rows_see_is_refused(one: Exported, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(one.bundle.path, tmp_path / "dpn"))
    bundle = Bundle.load(copy)
    shutil.copy(bundle.graph_path("float32", "step"), bundle.graph_path("float32", RESIDENT_GRAPH))
    with pytest.raises(BundleError, match=r"older version: tandem export .* --add float32"):
        OnnxGraphs(bundle, "float32", 1, resident=True)


@pytest.mark.slow
def test_narrow_graphs_decode_where_state_stays(one: Exported, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(one.bundle.path, tmp_path / "dpn"))
    add_precision(copy, "float16")
    bundle = Bundle.load(copy)
    assert "float16" in bundle.precisions
    assert {spec.dtype for spec in bundle.graph_specs("float16")["step"].of_kind("pool")} == {"float16"}
    plain, resident = (decoded(one, OnnxGraphs(bundle, "float16", 1, resident=kept)) for kept in (False, True))
    same(resident, plain)
    exact = decoded(one, OnnxGraphs(bundle, "float32", 1))
    assert sum(a[0].tokens == b[0].tokens for a, b in zip(plain, exact, strict=True)) > len(LENGTHS) / 2  # type: ignore[index]


@pytest.mark.gpu
@pytest.mark.skipif("CUDAExecutionProvider" not in ort.get_available_providers(), reason="built without CUDA")
def test_a_gpu_finds_what_the_cpu_finds(exported: Exported) -> None:
    found, expected = (
        decoded(exported, OnnxGraphs(exported.bundle, "float32", 1, where)) for where in ("cuda:0", "cpu")
    )
    for one, other in zip(found, expected, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]  # type: ignore[union-attr]


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU")
@pytest.mark.skipif("CUDAExecutionProvider" not in ort.get_available_providers(), reason="built without CUDA")
def test_a_gpu_that_cannot_be_used_is_no_reason_to_compute_elsewhere(one: Exported) -> None:
    with pytest.raises(ConfigError, match="cannot use cuda:0: look at nvidia-smi"):
        open_graphs(one.bundle, "onnx", "float32", 1, Placement("cuda:0"))
