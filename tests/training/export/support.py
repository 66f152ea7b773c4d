"""A small ONNX Runtime, and inputs for graphs, so that these tests need nothing of the service."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tandem.models.search.graphs import Array, GraphSpecs
from tandem.models.steps.torch_graphs import GraphModule
from tandem.training.export.onnx_graphs import sample_inputs

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when the library loads

import onnxruntime as ort

# Sizes that differ from those traced, ones and nothing banned among them.
SIZES = (
    {"sentence": 1, "row": 1, "old_row": 1, "slot": 1, "ban": 1, "target": 1, "entry": 1}
    | {"source0": 1, "source1": 1, "source2": 1},
    {"sentence": 2, "row": 10, "old_row": 2, "slot": 16, "ban": 3, "target": 4, "entry": 9}
    | {"source0": 13, "source1": 3, "source2": 8},
    {"sentence": 5, "row": 5, "old_row": 25, "slot": 32, "ban": 0, "target": 9, "entry": 4}
    | {"source0": 7, "source1": 11, "source2": 2},
)

HAS_VNNI = "vnni" in (Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else "")


def session(path: Path, optimised: Path | None = None, *, exact: bool = False) -> ort.InferenceSession:
    """One graph on one thread.

    Args:
        path: of the graph.
        optimised: where the runtime writes what it makes of it.
        exact: 8-bit sums without overflow on processors without VNNI, as the service has them.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class OnnxGraphs:
    """The graphs of a folder of ONNX files; outputs go by order. What entries need is looked up at every step.

    ``opener`` opens them instead of :func:`session`.
    """

    def __init__(
        self,
        folder: Path,
        specs: GraphSpecs,
        *,
        exact: bool = False,
        opener: Callable[[Path], ort.InferenceSession] | None = None,
    ) -> None:
        self.specs = specs
        names = [*specs, *(["entries"] if (folder / "entries.onnx").is_file() else [])]
        opener = opener or partial(session, exact=exact)
        self._sessions = {name: opener(folder / f"{name}.onnx") for name in names}

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        given = {spec.name: inputs[spec.name] for spec in self.specs[graph].inputs}
        if graph == "step_shortlist" and "entries" in self._sessions:
            entries = self._sessions["entries"]
            found = entries.run(None, {"entries": inputs["entries"]})
            given |= dict(zip((output.name for output in entries.get_outputs()), found, strict=True))
        results = self._sessions[graph].run(None, given)
        return {spec.name: result for spec, result in zip(self.specs[graph].outputs, results, strict=True)}


class ScriptGraphs:
    """The content of TorchScript files by file name."""

    def __init__(self, files: Mapping[str, bytes], specs: GraphSpecs) -> None:
        self.specs = specs
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`torch\.jit\.load` is deprecated", DeprecationWarning)
            self._modules = {name: torch.jit.load(io.BytesIO(files[f"{name}.pt"])) for name in specs}

    @torch.inference_mode()
    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        spec = self.specs[graph]
        results = self._modules[graph](*(torch.as_tensor(inputs[tensor.name]) for tensor in spec.inputs))
        results = results if isinstance(results, tuple) else (results,)
        return {tensor.name: result.numpy() for tensor, result in zip(spec.outputs, results, strict=True)}


def arrays(module: GraphModule, sizes: Mapping[str, int], *, count: int = 3, seed: int = 0) -> dict[str, Array]:
    """Inputs of a graph by name."""
    tensors = sample_inputs(module.spec, sizes, count=count, seed=seed)
    return {spec.name: tensor.numpy() for spec, tensor in zip(module.spec.inputs, tensors, strict=True)}


def reference(module: GraphModule, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What PyTorch makes of them."""
    with torch.inference_mode():
        results = module(*(torch.as_tensor(inputs[spec.name]) for spec in module.spec.inputs))
    return {spec.name: result.numpy() for spec, result in zip(module.spec.outputs, results, strict=True)}


def possible(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a step; where fewer continuations are possible than wanted, what fills up is any."""
    if "scores" not in outputs:
        return dict(outputs)
    impossible = np.isneginf(outputs["scores"])
    filled = {name: np.where(impossible, 0, outputs[name]) for name in ("tokens", "parents")}
    return {**outputs, **filled}


def assert_close(found: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float) -> None:
    """Every output of the same type and shape, and within the tolerance; infinities must agree."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance, err_msg=name)
