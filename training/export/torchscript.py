"""The four graphs as traced TorchScript, for places that run libtorch: served and tested for equality, not tuned.

TorchScript is deprecated; its warnings, and the tracer's about the few sizes that are constants of the architecture,
are silenced here by name and nowhere else.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from tandem.models.bundle import GRAPHS
from tandem.models.search.graphs import specs_to_json
from tandem.models.steps.torch_graphs import AnyModel, GraphModule, graph_modules
from tandem.training.export.onnx_graphs import TRACED_SIZES, TRACED_SOURCE, sample_inputs


def trace_graphs(model: AnyModel) -> dict[str, bytes]:
    """Trace a model that is prepared for inference.

    Returns:
        The content of ``<graph>.pt`` by file name, and of the file that describes them. Inputs and outputs are
        positional, in the order of the specs.
    """
    modules = graph_modules(copy.deepcopy(model).requires_grad_(False))
    described = specs_to_json({name: module.spec for name, module in modules.items()})
    return {GRAPHS: described.encode(), **{f"{name}.pt": _traced(module) for name, module in modules.items()}}


def _traced(module: GraphModule) -> bytes:
    axes = {axis for tensor in module.spec.inputs for axis in tensor.axes}
    inputs = sample_inputs(module.spec, {axis: TRACED_SIZES.get(axis, TRACED_SOURCE) for axis in axes})

    def graph(*tensors: Tensor) -> tuple[Tensor, ...]:
        # A function, unlike a module, may use one weight twice, and its file holds the weights it uses and no others.
        outputs: tuple[Tensor, ...] = module(*tensors)
        return outputs

    buffer = io.BytesIO()
    with _silenced(), torch.no_grad():
        torch.jit.save(torch.jit.trace(graph, inputs, check_trace=False), buffer)
    return buffer.getvalue()


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated", DeprecationWarning)
        # Head counts, the pool that is not empty, and the one position of a step: constants of each graph.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        yield
