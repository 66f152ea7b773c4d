"""A graph as patterns look at it: nodes with who makes and who reads each value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

DOMAIN = "tandem"
Node = onnx.NodeProto


class NoMatch(Exception):
    """What was looked at is not the pattern."""


class Graph:
    """A graph's nodes with who makes and who reads each value.

    Args:
        model: changed in place by :meth:`replace` and :meth:`finish`.
        folder: of its file, where its constants lie.
    """

    def __init__(self, model: onnx.ModelProto, folder: Path) -> None:
        self._model, self._folder = model, folder
        self.nodes = list(model.graph.node)
        self.inputs = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.input}
        self._outputs = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.output}
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._index()

    def _index(self) -> None:
        self.makers: dict[str, Node] = {name: node for node in self.nodes for name in node.output}
        self._readers: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                self._readers[name].append(node)

    def made_by(self, name: str, *kinds: str) -> Node:
        """The node that makes a value. Raises NoMatch where it is of no such kind."""
        node = self.makers.get(name)
        if node is None or node.op_type not in kinds:
            raise NoMatch
        return node

    def read_by(self, name: str, *kinds: str) -> Node:
        """The only node that reads a value. Raises NoMatch where it is of no such kind, or more is done with it."""
        readers = self._readers[name]
        if len(readers) != 1 or readers[0].op_type not in kinds or name in self._outputs:
            raise NoMatch
        return readers[0]

    def readers(self, name: str, kind: str = "") -> list[Node]:
        """The nodes that read a value, of one kind or any."""
        return [node for node in self._readers[name] if kind in ("", node.op_type)]

    @staticmethod
    def beside(node: Node, name: str) -> str:
        """The other input of a node that has two. Raises NoMatch where both are the same, or it has more."""
        others = [str(given) for given in node.input if given != name]
        if len(others) != 1:
            raise NoMatch
        return others[0]

    def has_one_reader(self, name: str) -> bool:
        """Whether one node reads a value, and nobody outside."""
        return len(self._readers[name]) == 1 and name not in self._outputs

    def is_constant(self, name: str) -> bool:
        """Whether a value is known before the graph runs."""
        return name in self._constants

    def constant(self, name: str) -> NDArray[Any]:
        """The value of a constant. Raises NoMatch where it is none."""
        if name not in self._constants:
            raise NoMatch
        return numpy_helper.to_array(self._constants[name], str(self._folder))

    def form(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Type and shape of a constant, whose numbers are not read. Raises NoMatch where it is none."""
        if name not in self._constants:
            raise NoMatch
        tensor = self._constants[name]
        return np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)

    def number(self, name: str) -> float:
        """The value of a constant that is one number. Raises NoMatch where it is not."""
        value = self.constant(name)
        if value.size != 1:
            raise NoMatch
        return float(value.reshape(-1)[0])

    def axes_of_result(self, name: str) -> int | None:
        """How many axes what leaves the graph by this name has; None where nothing does."""
        return self._outputs.get(name)

    def sizes(self, name: str) -> list[int]:
        """The shape that a value holds, of which some sizes may be known only when the graph runs: -1 for those."""
        if self.is_constant(name):
            return [int(size) for size in self.constant(name)]
        sizes = list[int]()
        for part in self.made_by(name, "Concat").input:
            sizes += [int(size) for size in self.constant(part)] if self.is_constant(part) else [-1]
        return sizes

    def replace(self, last: Node, kind: str, inputs: Sequence[str], outputs: Sequence[str], **settings: Any) -> None:
        """Put an operator where ``last`` stands; what else made its outputs is gone, and finish drops what fed that."""
        new = helper.make_node(kind, list(inputs), list(outputs), domain=DOMAIN, **settings)
        gone = {id(self.makers[name]) for name in outputs}
        self.nodes = [new if node is last else node for node in self.nodes if node is last or id(node) not in gone]
        self._index()

    def flatten(self, name: str) -> None:
        """Let an input or output of the graph have one axis of any length."""
        for value in (*self._model.graph.input, *self._model.graph.output):
            if value.name == name:
                of = value.type.tensor_type
                value.CopyFrom(helper.make_tensor_value_info(name, of.elem_type, [f"{name}.length"]))

    def drop_unread(self) -> None:
        """Let go of nodes and constants whose results nobody reads any more."""
        wanted, kept = set(self._outputs), list[Node]()
        for node in reversed(self.nodes):
            if wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self._constants = {name: tensor for name, tensor in self._constants.items() if name in wanted}
        self._index()

    def finish(self) -> None:
        """Write the nodes back that are read."""
        self.drop_unread()
        graph = self._model.graph
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(self._constants.values())
        self._model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def setting(node: Node, name: str, default: Any = None) -> Any:
    """An attribute of a node, or the default where it has none of this name."""
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default


def transposed(graph: Graph, node: Node, perm: Sequence[int]) -> str:
    """What a node turns by ``perm``. Raises NoMatch where it does not."""
    if node.op_type != "Transpose" or list(setting(node, "perm", [])) != list(perm):
        raise NoMatch
    return str(node.input[0])


def quantised(graph: Graph, node: Node) -> Mapping[str, Any]:
    """Scale and zero point of rows that become unsigned bytes."""
    if graph.constant(node.input[2]).dtype != np.uint8:
        raise NoMatch
    return {"scale": graph.number(node.input[1]), "zero": int(graph.number(node.input[2]))}
