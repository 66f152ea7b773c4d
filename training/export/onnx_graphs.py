"""The four graphs of a model as ONNX, in float32, with every axis dynamic that the contract names.

Everything here keeps ``ModelProto`` in memory; :mod:`training.export.external` writes files.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import torch
from torch import Tensor

from tandem.models.architectures.protocol import max_positions
from tandem.models.search.graphs import GraphSpec, TensorSpec
from tandem.models.steps.torch_graphs import AnyModel, GraphModule, graph_modules
from tandem.training.export.searching import search_graph
from tandem.training.export.shortlist import SHORTLIST_GRAPH, shortlist_graph
from tandem.training.export.tracing import traced

# Every axis has its own size, so that no two are taken for the same; a pool has at least one slot.
TRACED_SIZES = {"sentence": 3, "row": 6, "old_row": 9, "slot": 7, "ban": 4, "target": 8, "entry": 11}
TRACED_SOURCE, TRACED_COUNT = 5, 10


def export_graphs(model: AnyModel) -> tuple[dict[str, onnx.ModelProto], dict[str, GraphSpec]]:
    """Export the graphs of a model that is prepared for inference.

    Inputs and outputs are ordered as in the specs, outputs named by :func:`output_names`; the number of rows must be a
    multiple of the number of sentences, and ``count`` is free.

    Returns:
        The graphs by name with their weights inside, and their specs.
    """
    modules = graph_modules(model)
    specs = {name: module.spec for name, module in modules.items()}
    longest = max_positions(model.config)
    derived = {"step": search_graph, SHORTLIST_GRAPH: shortlist_graph}
    graphs = {
        name: _tidied(_export(module, longest), specs[name]) for name, module in modules.items() if name not in derived
    }
    for name, derive in derived.items():
        graphs[name] = derive(graphs["step_logits"], specs[name])
        onnx.checker.check_model(graphs[name], full_check=True)
    return {name: graphs[name] for name in specs}, specs


def output_names(spec: GraphSpec) -> list[str]:
    """The names of a graph's outputs in its file.

    State that a step replaces has one name in the spec, but a file may not name an input and an output alike: such an
    output gets the prefix ``next.``. Runtimes therefore match outputs by their order.
    """
    inputs = {tensor.name for tensor in spec.inputs}
    return [f"next.{tensor.name}" if tensor.name in inputs else tensor.name for tensor in spec.outputs]


def sample_inputs(
    spec: GraphSpec, sizes: Mapping[str, int], *, count: int = TRACED_COUNT, seed: int = 0
) -> tuple[Tensor, ...]:
    """Inputs that a graph accepts, of the given axis sizes: random features, valid ids, some slots visible.

    Args:
        spec: of the graph.
        sizes: of every axis the graph has.
        count: candidates, for the step graph.
        seed: of the random values.
    """
    generator = torch.Generator().manual_seed(seed)
    return tuple(_sample(tensor, sizes, count, generator) for tensor in spec.inputs)


def _sample(tensor: TensorSpec, sizes: Mapping[str, int], count: int, generator: torch.Generator) -> Tensor:
    shape = [int(axis[6:]) if axis.startswith("fixed:") else sizes[axis] for axis in tensor.axes]
    if tensor.name == "count":
        return torch.tensor(count)
    if tensor.name.endswith(".length"):
        return torch.full(shape, sizes[tensor.name.removesuffix(".length")])
    if tensor.name == "entries":
        return torch.arange(*shape)
    if tensor.dtype == "int64":
        highest = {"parent": sizes.get("old_row", 1), "position": 3, "banned": int(tensor.padding) + 1}
        ids = torch.randint(0, highest.get(tensor.name, 4), shape, generator=generator)
        return ids.fill_(-1) if tensor.name == "forced" else ids
    values = torch.randn(shape, generator=generator).to(getattr(torch, tensor.dtype))
    if tensor.padding == -torch.inf:  # an additive mask: the first position is always visible
        return torch.where((values > 1) & (torch.arange(shape[-1]) > 0), -torch.inf, 0.0)
    return values.abs() if tensor.kind == "memory" and shape[1:] == [1] else values


def _export(module: GraphModule, longest: int | None) -> onnx.ModelProto:
    spec = module.spec
    axes = {axis for tensor in spec.inputs for axis in tensor.axes if not axis.startswith("fixed:")}
    sizes = {axis: TRACED_SIZES.get(axis, TRACED_SOURCE) for axis in axes}
    bounded = {axis for axis in axes if axis == "target" or axis.startswith("source")}
    # One symbol for each role: the exporter then has no equalities of sizes to prove.
    symbols = {
        a: torch.export.Dim(a, min=1 if a == "slot" else None, max=longest if a in bounded else None) for a in axes
    }
    inputs = {
        tensor.name: (sample, {place: symbols[axis] for place, axis in enumerate(tensor.axes) if axis in symbols})
        for tensor, sample in zip(spec.inputs, sample_inputs(spec, sizes), strict=True)
    }
    return traced(module, inputs, output_names(spec))


def _tidied(model: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """Axes named by role; nothing left of how and where the graph was made."""
    graph = model.graph
    del graph.value_info[:], graph.metadata_props[:], model.metadata_props[:]
    for node in graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    model.producer_name, model.producer_version, model.doc_string, graph.doc_string = "tandem", "", "", ""
    graph.name = "graph"
    wanted = ([tensor.name for tensor in spec.inputs], output_names(spec))
    for values, names, tensors in zip((graph.input, graph.output), wanted, (spec.inputs, spec.outputs), strict=True):
        found = [value.name for value in values]
        if found != names:
            raise RuntimeError(f"the exporter changed the graph's tensors to {found}")
        for value, tensor in zip(values, tensors, strict=True):
            del value.metadata_props[:]
            value.doc_string = ""
            _name_axes(value, tensor)
    onnx.checker.check_model(model, full_check=True)
    return model


def _name_axes(value: onnx.ValueInfoProto, tensor: TensorSpec) -> None:
    dims = value.type.tensor_type.shape.dim
    if len(dims) != len(tensor.axes):
        raise RuntimeError(f"{tensor.name} was exported with {len(dims)} axes instead of {tensor.axes}")
    for dim, axis in zip(dims, tensor.axes, strict=True):
        if axis.startswith("fixed:"):
            dim.dim_value = int(axis[6:])
        elif dim.HasField("dim_value"):
            raise RuntimeError(f"{tensor.name}: the exporter fixed the axis {axis!r} at {dim.dim_value}")
        else:
            dim.dim_param = axis
