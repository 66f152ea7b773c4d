"""The beam step behind the logits: :mod:`models.steps.continuations` and :mod:`models.steps.shortlisted`, traced,
joined to a graph.

It depends on the vocabulary's size alone, so it is traced once for each, and the graphs that search are made of the one
that returns all logits, in whatever precision that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from models.search.graphs import GraphSpec, TensorSpec
from models.steps.continuations import best_continuations
from models.steps.shortlisted import best_listed
from training.export.editing import Editor
from training.export.tracing import SEARCH_TRANSLATIONS, Given, traced


def search_graph(step_logits: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """A ``step`` graph as ``spec`` declares it; ``step_logits`` stays as it is."""
    model = onnx.ModelProto.FromString(step_logits.SerializeToString())
    declare(model, spec)
    editor = Editor(model)
    sentences = next(tensor.name for tensor in spec.inputs if tensor.kind == "memory")
    join_search(editor, searched(int(spec.input("banned").padding)), {"sentences": sentences})
    return editor.finish()


def declare(model: onnx.ModelProto, spec: GraphSpec) -> None:
    """Give a ``step_logits`` graph the inputs and outputs of one that searches; what makes them is still to come."""
    inputs = {value.name: value for value in model.graph.input}
    new_state = [value for value in model.graph.output if value.name != "logits"]
    results = spec.outputs[: len(spec.outputs) - len(new_state)]
    del model.graph.input[:], model.graph.output[:]
    model.graph.input.extend(inputs[t.name] if t.name in inputs else _declared(t) for t in spec.inputs)
    model.graph.output.extend([*map(_declared, results), *new_state])


def _declared(tensor: TensorSpec) -> onnx.ValueInfoProto:
    """An input or output as the spec describes it."""
    sizes = [int(axis[6:]) if axis.startswith("fixed:") else axis for axis in tensor.axes]
    return helper.make_tensor_value_info(tensor.name, helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), sizes)


def join_search(editor: Editor, search: onnx.ModelProto, given: Mapping[str, str]) -> None:
    """Put a traced search behind the nodes of a graph, whose inputs and outputs are declared.

    ``given``: what the search's inputs are called there, where not the same.
    """
    names = {value.name: value.name for value in (*search.graph.input, *search.graph.output)} | dict(given)
    for tensor in search.graph.initializer:
        names[tensor.name] = editor.add_constant(numpy_helper.to_array(tensor), "search.constant")
    for one in search.graph.node:
        one = onnx.NodeProto.FromString(one.SerializeToString())
        del one.metadata_props[:]
        one.name, one.doc_string = "", ""
        one.input[:] = [names.get(name, name and f"search.{name}") for name in one.input]
        one.output[:] = [names.get(name, name and f"search.{name}") for name in one.output]
        editor.nodes.append(one)


class _Search(nn.Module):
    """A function of tensors by name as a module."""

    def __init__(self, names: Sequence[str], search: Callable[[dict[str, Tensor]], tuple[Tensor, ...]]) -> None:
        super().__init__()
        self._names, self._search = names, search

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return self._search(dict(zip(self._names, tensors, strict=True)))


@lru_cache(maxsize=8)
def searched(size: int, *, shortlist: bool = False) -> onnx.ModelProto:
    """The search over a vocabulary, or over some of it, as a graph of its own; not to be changed.

    Of ``sentences`` only their number counts; ``mean`` is that of all logits.
    """
    row, ban, sentence, entry = (torch.export.Dim(name, min=1) for name in ("row", "ban", "sentence", "entry"))
    controls: Given = {
        "score": (torch.randn(6), {0: row}),
        "banned": (torch.zeros(6, 4, dtype=torch.int64), {0: row, 1: ban}),
        "forced": (torch.full((6,), -1), {0: row}),
        "count": (torch.tensor(10), {}),
    }
    if shortlist:
        given: Given = {
            "logits": (torch.randn(6, 11), {0: row, 1: entry}),
            "mean": (torch.randn(6, 1), {0: row}),
            **controls,
            "entries": (torch.arange(11), {0: entry}),
            "listed": (torch.zeros(3, 11), {0: sentence, 1: entry}),
        }
        module = _Search(tuple(given), lambda own: best_listed(own["logits"], own["mean"], own, size))
    else:
        given = {"logits": (torch.randn(6, size), {0: row}), **controls, "sentences": (torch.zeros(3), {0: sentence})}
        module = _Search(tuple(given), lambda own: best_continuations(own["logits"], own, own["sentences"].size(0)))
    return traced(module, given, ("scores", "tokens", "parents", "logsumexp"), SEARCH_TRANSLATIONS)
