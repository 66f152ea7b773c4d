"""ONNX Runtime on the CPU: the default, and all that a small installation needs."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when the library loads: this service phones nobody

import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]

from models.bundle import Bundle
from models.errors import BundleError
from models.search import Array, GraphSpec, GraphSpecs

_AT_ONCE = ("encode", "step")
_PROVIDERS = ["CPUExecutionProvider"]


class OnnxGraphs:
    """One inference session per graph; ``run`` may be called from several threads at once.

    The graphs of a bundle keep their weights in one external file, which the runtime maps into memory: its pages are
    shared by the sessions, and only what is repacked for the matrix kernels exists per session. What few requests
    need (sampling, alignments) is opened when first used.
    """

    def __init__(self, bundle: Bundle, precision: str, threads: int) -> None:
        self.specs: GraphSpecs = bundle.graph_specs(precision)
        self._bundle, self._precision = bundle, precision
        self._threads = threads
        self._sessions: dict[str, _Session] = {}
        self._opening = threading.Lock()
        for graph in _AT_ONCE:
            self._session(graph)

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every output of a graph, by name."""
        return (self._sessions.get(graph) or self._session(graph)).run(inputs)

    def _session(self, graph: str) -> _Session:
        with self._opening:
            if graph not in self._sessions:
                path = self._bundle.graph_path(self._precision, graph)
                self._sessions[graph] = _Session(path, self.specs[graph], self._threads)
            return self._sessions[graph]


class _Session:
    def __init__(self, path: Path, spec: GraphSpec, threads: int) -> None:
        self._session = _open(path, threads)
        # An exporter drops inputs that the architecture does not use, and feeding one of those is an error.
        self._inputs = [item.name for item in self._session.get_inputs()]
        # Outputs go by their order: a file cannot give the new state the name that the old one has among the inputs.
        self._outputs = [tensor.name for tensor in spec.outputs]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        results = self._session.run(None, {name: inputs[name] for name in self._inputs})
        return dict(zip(self._outputs, results, strict=True))


def _open(path: Path, threads: int) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(str(path), session_options(threads, exact=True), providers=_PROVIDERS)
    except Exception:  # the runtime's own exceptions share no base
        # It cannot make a weight unsigned that several products share: then their sums are not exact without VNNI.
        pass
    try:
        return ort.InferenceSession(str(path), session_options(threads), providers=_PROVIDERS)
    except Exception as error:
        raise BundleError(path, [f"ONNX Runtime cannot load the graph: {error}"]) from error


def session_options(threads: int, *, exact: bool = False) -> ort.SessionOptions:
    """How sessions run: in order, on so many threads, without plans for shapes that change at every step.

    Args:
        threads: of one call.
        exact: make weights unsigned where a processor lacks VNNI, as a graph is loaded. There products of signed bytes
            are added in pairs in 16 bits, which overflow; those of a shortlist's entries still do. (Measured with AVX2
            on the Tatoeba test set: BLEU 47.73 without, and with it the 48.04 of VNNI.)
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_mem_pattern = False  # shapes change at every step: a plan per shape would only be made and kept
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores belong to other workers too
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options
