"""Traced TorchScript graphs: for places that run libtorch. Tested for equality, not tuned."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping

import torch

from tandem.models.bundle import Bundle
from tandem.models.search import Array, GraphSpecs


class TorchScriptGraphs:
    """One traced module per graph; inputs and outputs are positional, in the order of the graph's spec."""

    def __init__(self, bundle: Bundle, threads: int) -> None:
        torch.set_num_threads(threads)
        self.specs: GraphSpecs = bundle.graph_specs("torchscript")
        self._bundle = bundle
        self._modules: dict[str, torch.jit.ScriptModule] = {}
        self._opening = threading.Lock()
        for graph in ("encode", "step"):
            self._module(graph)

    @torch.inference_mode()
    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every output of a graph, by name."""
        spec = self.specs[graph]
        outputs = self._module(graph)(*(torch.as_tensor(inputs[tensor.name]) for tensor in spec.inputs))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return {tensor.name: value.numpy() for tensor, value in zip(spec.outputs, outputs, strict=True)}

    def _module(self, graph: str) -> torch.jit.ScriptModule:
        with self._opening:
            if graph not in self._modules:
                path = self._bundle.file(f"torchscript/{graph}.pt")  # built here: shipped bundles never hold code
                with warnings.catch_warnings():  # it is offered for libtorch, knowing where it is going
                    warnings.filterwarnings("ignore", r"`torch\.jit\.load` is deprecated", DeprecationWarning)
                    self._modules[graph] = torch.jit.load(str(path), map_location="cpu").eval()
            return self._modules[graph]
