"""What a bundle's ONNX graphs are on a GPU, and the narrow ones that are built for it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tandem.models.bundle import GRAPHS, Bundle, add_built
from tandem.models.errors import ConfigError
from tandem.models.search import OfflineDecoder, SearchOptions
from tandem.models.search.graphs import specs_to_json
from tandem.models.search.offline import NBest
from tandem.service.runtimes import Placement, open_graphs
from tandem.service.runtimes.onnx import OnnxGraphs
from tandem.training.export.bundle import add_precision
from tests.training.export.conftest import Exported

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


def test_what_an_older_version_has_added_is_left_alone(one: Exported, tmp_path: Path) -> None:
    """It put another form of the step beside the others for a GPU."""
    copy = Path(shutil.copytree(one.bundle.path, tmp_path / "dpn"))
    files = {path.name: path for path in (copy / "onnx/float32").iterdir()}
    described = specs_to_json(one.bundle.graph_specs("float32")).encode()
    add_built(copy, "onnx/float16", {**files, "step_resident.onnx": files["step.onnx"], GRAPHS: described})
    bundle = Bundle.load(copy)
    assert "float16" in bundle.precisions
    assert OnnxGraphs(bundle, "float16", 1).specs == bundle.graph_specs("float16")


@pytest.mark.slow
def test_narrow_graphs_decode(one: Exported, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(one.bundle.path, tmp_path / "dpn"))
    add_precision(copy, "float16")
    bundle = Bundle.load(copy)
    assert "float16" in bundle.precisions
    assert {spec.dtype for spec in bundle.graph_specs("float16")["step"].of_kind("pool")} == {"float16"}
    narrow, exact = (decoded(one, OnnxGraphs(bundle, precision, 1)) for precision in ("float16", "float32"))
    assert sum(a[0].tokens == b[0].tokens for a, b in zip(narrow, exact, strict=True)) > len(LENGTHS) / 2  # type: ignore[index]


@pytest.mark.gpu
@pytest.mark.skipif("CUDAExecutionProvider" not in ort.get_available_providers(), reason="built without CUDA")
def test_a_gpu_finds_what_the_cpu_finds(exported: Exported) -> None:
    found, expected = (
        decoded(exported, OnnxGraphs(exported.bundle, "float32", 1, Placement(where))) for where in ("cuda:0", "cpu")
    )
    for one, other in zip(found, expected, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]  # type: ignore[union-attr]


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU")
@pytest.mark.skipif("CUDAExecutionProvider" not in ort.get_available_providers(), reason="built without CUDA")
def test_a_gpu_that_cannot_be_used_is_no_reason_to_compute_elsewhere(one: Exported) -> None:
    with pytest.raises(ConfigError, match="cannot use cuda:0: look at nvidia-smi"):
        open_graphs(one.bundle, "onnx", "float32", 1, Placement("cuda:0"))
