"""What the passes over ONNX graphs share: constants by name, who reads what, and nodes replaced in place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
CONTRIB = "com.microsoft"


class Editor:
    """One graph under edit. Nodes are only ever replaced where they stand, so the order stays topological.

    Attributes:
        model: the model, changed in place.
        nodes: its nodes; :meth:`finish` writes them back.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.nodes: list[onnx.NodeProto] = list(model.graph.node)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._arrays: dict[str, Array] = {}
        self._by_content: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._names: Counter[str] = Counter()
        self._outputs = {value.name for value in model.graph.output}

    def constant(self, name: str) -> Array | None:
        """The value of a constant, or None where the name is computed at run time."""
        if name not in self._constants:
            return None
        if name not in self._arrays:
            self._arrays[name] = numpy_helper.to_array(self._constants[name])
        return self._arrays[name]

    def readers(self) -> dict[str, list[onnx.NodeProto]]:
        """For each value the nodes that read it."""
        found: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                found[name].append(node)
        return found

    def makers(self) -> dict[str, onnx.NodeProto]:
        """For each computed value its node."""
        return {name: node for node in self.nodes for name in node.output}

    def is_output(self, name: str) -> bool:
        """Whether a value leaves the graph."""
        return name in self._outputs

    def has_constant(self, array: Array) -> bool:
        """Whether :meth:`add_constant` was given this content before."""
        return (array.dtype.str, array.shape, array.tobytes()) in self._by_content

    def add_constant(self, array: Array, hint: str) -> str:
        """The name of a constant with this content: a new one, or one that was added before."""
        array = np.asarray(array, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._by_content:
            name = self.fresh(hint)
            self._constants[name] = numpy_helper.from_array(array, name)
            self._by_content[key] = name
        return self._by_content[key]

    def fresh(self, hint: str) -> str:
        """A name that nothing has yet."""
        self._names[hint] += 1
        return f"{hint}#{self._names[hint]}"

    def finish(self) -> onnx.ModelProto:
        """Write nodes and constants back, without those that nothing reads any more."""
        wanted, kept = set(self._outputs), []
        for node in reversed(self.nodes):
            if wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        graph = self.model.graph
        del graph.node[:], graph.initializer[:]
        graph.node.extend(reversed(kept))
        graph.initializer.extend(tensor for name, tensor in self._constants.items() if name in wanted)
        if any(node.domain == CONTRIB for node in kept) and all(o.domain != CONTRIB for o in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(CONTRIB, 1))
        return self.model


def node(
    kind: str, inputs: Sequence[str], outputs: Iterable[str], *, domain: str = "", **settings: Any
) -> onnx.NodeProto:
    """A node without a name of its own."""
    return helper.make_node(kind, list(inputs), list(outputs), domain=domain, **settings)


def setting(of: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute of a node, or its default."""
    for attribute in of.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default


class Writer:
    """Writes nodes one after another; each call returns the name of what it makes.

    Attributes:
        nodes: those written so far, for the caller to put where they belong.
    """

    def __init__(self, editor: Editor, prefix: str) -> None:
        """``prefix`` begins the names of all that is written."""
        self.nodes: list[onnx.NodeProto] = []
        self._editor, self._prefix = editor, prefix

    def __call__(self, kind: str, *inputs: str, into: str = "", **settings: Any) -> str:
        """One node with one output, called ``into`` or afresh."""
        name = into or self.fresh(kind.lower())
        self.nodes.append(node(kind, inputs, [name], **settings))
        return name

    def two(self, kind: str, *inputs: str, into: tuple[str, str] = ("", ""), **settings: Any) -> tuple[str, str]:
        """One node with two outputs."""
        first, second = (name or self.fresh(kind.lower()) for name in into)
        self.nodes.append(node(kind, inputs, [first, second], **settings))
        return first, second

    def fresh(self, hint: str) -> str:
        """A name that nothing has yet."""
        return self._editor.fresh(f"{self._prefix}.{hint}")

    def number(self, value: float, shape: list[int] | None = None) -> str:
        """A constant: int64, or float32 where it is written with a point."""
        array = np.full(shape or [], value, np.int64 if isinstance(value, int) else np.float32)
        return self._editor.add_constant(array, f"{self._prefix}.number")

    def ints(self, *values: int) -> str:
        """A constant row of whole numbers."""
        return self._editor.add_constant(np.array(values, np.int64), f"{self._prefix}.numbers")
