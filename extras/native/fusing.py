"""Graphs of a bundle with our own operators in the place of what they compute, as they are opened; files stay.

Each pattern below is what :mod:`training.export` writes for one thing. Whatever is not found stays as it is, so that
any graph runs, with or without the operators (``src/kernels.h`` says what they compute).

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, H heads, E width of a head, S source positions,
P pool slots.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

DOMAIN = "tandem"
SWAPPED_HEADS = [0, 2, 1, 3]  # between B x K x H x E and B x H x K x E
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
        self._outputs = {value.name for value in model.graph.output}
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

    def readers(self, name: str, kind: str) -> list[Node]:
        """The nodes of a kind that read a value."""
        return [node for node in self._readers[name] if node.op_type == kind]

    def constant(self, name: str) -> NDArray[Any]:
        """The value of a constant. Raises NoMatch where it is none."""
        if name not in self._constants:
            raise NoMatch
        return numpy_helper.to_array(self._constants[name], str(self._folder))

    def number(self, name: str) -> float:
        """The value of a constant that is one number. Raises NoMatch where it is not."""
        value = self.constant(name)
        if value.size != 1:
            raise NoMatch
        return float(value.reshape(-1)[0])

    def replace(self, last: Node, kind: str, inputs: Sequence[str], outputs: Sequence[str], **settings: Any) -> None:
        """Put an operator where ``last`` stands; what else made its outputs is gone, and finish drops what fed that."""
        new = helper.make_node(kind, list(inputs), list(outputs), domain=DOMAIN, **settings)
        gone = {id(self.makers[name]) for name in outputs}
        self.nodes = [new if node is last else node for node in self.nodes if node is last or id(node) not in gone]
        self._index()

    def finish(self) -> None:
        """Write the nodes back, without those whose results nobody reads any more."""
        wanted, kept = set(self._outputs), list[Node]()
        for node in reversed(self.nodes):
            if wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        graph = self._model.graph
        del graph.node[:], graph.initializer[:]
        graph.node.extend(reversed(kept))
        graph.initializer.extend(tensor for name, tensor in self._constants.items() if name in wanted)
        self._model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def fuse(model: onnx.ModelProto, folder: Path) -> Counter[str]:
    """Write our operators into a graph, in place.

    Args:
        model: without its external data.
        folder: where that lies.

    Returns:
        How many of each operator it has now.
    """
    values = (*model.graph.input, *model.graph.output)
    if any(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for value in values):
        return Counter()  # graphs for a GPU; the operators read float32
    graph = Graph(model, folder)
    for begin, pattern in PATTERNS:
        for node in [node for node in graph.nodes if node.op_type == begin]:
            with suppress(NoMatch):
                pattern(graph, node)
    with suppress(NoMatch):
        _end_of_step(graph)
    found = Counter(node.op_type for node in graph.nodes if node.domain == DOMAIN)
    if found:
        graph.finish()
    return found


def _setting(node: Node, name: str, default: Any = None) -> Any:
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default


def _transposed(graph: Graph, node: Node, perm: Sequence[int]) -> str:
    """What a node turns by ``perm``. Raises NoMatch where it does not."""
    if node.op_type != "Transpose" or list(_setting(node, "perm", [])) != list(perm):
        raise NoMatch
    return str(node.input[0])


def _keys(graph: Graph, name: str) -> tuple[str, int]:
    """Keys by what their turned form is called, and their axes: B x S x E, or B x H x S x E."""
    node = graph.made_by(name, "Transpose")
    axes = len(_setting(node, "perm", []))
    if axes not in (3, 4):
        raise NoMatch
    return _transposed(graph, node, [*range(axes - 2), axes - 1, axes - 2]), axes


def _scaled_product(graph: Graph, name: str) -> tuple[Node, float]:
    """A product, and by what it is multiplied before the mask is added."""
    node = graph.made_by(name, "MatMul", "Div", "Mul")
    if node.op_type == "MatMul":
        return node, 1.0
    factor = graph.number(node.input[1])
    return graph.made_by(node.input[0], "MatMul"), 1 / factor if node.op_type == "Div" else factor


def _added(graph: Graph, add: Node) -> Iterator[tuple[str, str]]:
    """The two sides of an addition, either one first."""
    first, second = add.input
    yield first, second
    yield second, first


def _query(graph: Graph, name: str, axes: int) -> str:
    """Queries B x K x H x E, or B x K x E, by the name that they have where they meet the keys."""
    return name if axes == 3 else _transposed(graph, graph.made_by(name, "Transpose"), SWAPPED_HEADS)


def _source_attention(graph: Graph, softmax: Node) -> None:
    """softmax(q k^T scale + mask) v over a source (models/architectures/layers/attention.py, attend, attend_heads)."""
    add = graph.made_by(softmax.input[0], "Add")
    for product_name, mask_name in _added(graph, add):
        try:
            product, scale = _scaled_product(graph, product_name)
            mask = graph.made_by(mask_name, "Unsqueeze").input[0]
        except NoMatch:
            continue
        if graph.inputs.get(mask) != 2:
            raise NoMatch
        keys, axes = _keys(graph, product.input[1])
        if len(graph.constant(graph.makers[mask_name].input[1])) != axes - 2:
            raise NoMatch
        query = _query(graph, product.input[0], axes)
        context = graph.read_by(softmax.output[0], "MatMul")
        last = context if axes == 3 else graph.read_by(context.output[0], "Transpose")
        if axes == 4:
            _transposed(graph, last, SWAPPED_HEADS)
        inputs = [_unshaped(graph, query), keys, context.input[1], mask]
        last, flat = _flat(graph, last)
        return graph.replace(last, "SourceAttention", inputs, last.output, scale=scale, flat=flat)
    raise NoMatch


def _unshaped(graph: Graph, name: str) -> str:
    """The same numbers in the same order, in whatever shape they were made."""
    while (node := graph.makers.get(name)) is not None and node.op_type == "Reshape":
        name = node.input[0]
    return name


def _flat(graph: Graph, attended: Node) -> tuple[Node, int]:
    """What makes contexts R x 1 x D, and 1; or contexts by head, and 0, where somebody reads them in another shape.

    Rows may have any shape where only a product in bytes reads them, whose result is shaped anew.
    """
    try:
        shaped = graph.read_by(attended.output[0], "Reshape")
        with suppress(NoMatch):
            shape = list(graph.constant(shaped.input[1]))
            if len(shape) == 3 and shape[:2] == [-1, 1]:
                return shaped, 1
        levels = graph.read_by(shaped.output[0], "QuantizeLinear")
        graph.read_by(graph.read_by(levels.output[0], "MatMulIntegerToFloat").output[0], "Reshape")
    except NoMatch:
        return attended, 0
    return shaped, 1


def _history_attention(graph: Graph, softmax: Node) -> None:
    """The same over a pool and a row's own new position, in one softmax (SelfAttention.advance, of one position)."""
    past_name, own_name = graph.made_by(softmax.input[0], "Concat").input
    add = graph.made_by(past_name, "Add")
    product, scale = _scaled_product(graph, add.input[0])
    history = graph.made_by(add.input[1], "Reshape").input[0]
    if graph.inputs.get(history) != 2:
        raise NoMatch
    keys, axes = _keys(graph, product.input[1])
    if axes != 4:
        raise NoMatch
    asked = graph.made_by(_query(graph, product.input[0], axes), "Reshape").input[0]
    own = graph.made_by(_transposed(graph, graph.made_by(own_name, "Transpose"), SWAPPED_HEADS), "Reshape")
    own_scaled = graph.made_by(own.input[0], "Div")
    own_sum = graph.made_by(graph.made_by(own_scaled.input[0], "Reshape").input[0], "ReduceSum")
    sides = list(graph.made_by(own_sum.input[0], "Mul").input)
    if asked not in sides or not np.isclose(graph.number(own_scaled.input[1]) * scale, 1):
        raise NoMatch
    sides.remove(asked)

    past_context = own_context = None
    for part in graph.readers(softmax.output[0], "Slice"):
        reader = graph.read_by(part.output[0], "MatMul", "Transpose")
        if reader.op_type == "MatMul":
            past_context = reader
        else:
            own_context = graph.read_by(graph.read_by(reader.output[0], "Reshape").output[0], "Mul")
    if past_context is None or own_context is None or len(graph.readers(softmax.output[0], "Slice")) != 2:
        raise NoMatch
    turned = graph.read_by(past_context.output[0], "Transpose")
    _transposed(graph, turned, SWAPPED_HEADS)
    last = graph.read_by(graph.read_by(turned.output[0], "Reshape").output[0], "Add")
    if own_context.output[0] not in last.input:
        raise NoMatch
    key, value, values = sides[0], own_context.input[1], past_context.input[1]
    last, flat = _flat(graph, last)
    settings = {"scale": scale, "flat": flat}
    try:
        packed, appended = _side_by_side(graph, asked, key, value)
    except NoMatch:
        inputs = [asked, key, value, keys, values, history]
        return graph.replace(last, "HistoryAttention", inputs, last.output, **settings)
    outputs = [*last.output, *appended]
    return graph.replace(last, "PackedHistoryAttention", [packed, keys, values, history], outputs, **settings)


def _side_by_side(graph: Graph, *parts: str) -> tuple[str, list[str]]:
    """What one product gives as query, key and value, and what keys and values are called for the pools."""
    thirds = [graph.made_by(part, "Reshape").input[0] for part in parts]
    split = graph.made_by(thirds[0], "Split")
    if thirds != list(split.output) or len(split.input) != 1 or _setting(split, "axis", 0) not in (-1, 2):
        raise NoMatch
    appended = [reader.output[0] for part in parts[1:] for reader in graph.readers(part, "Squeeze")]
    if len(appended) != 2:
        raise NoMatch
    return str(split.input[0]), appended


def _quantised(graph: Graph, node: Node) -> Mapping[str, Any]:
    """Scale and zero point of rows that become unsigned bytes."""
    if graph.constant(node.input[2]).dtype != np.uint8:
        raise NoMatch
    return {"scale": graph.number(node.input[1]), "zero": int(graph.number(node.input[2]))}


def _quantised_rows(graph: Graph, magnitude: Node) -> None:
    """Rows over their largest magnitude, in bytes (training/export/quantise.py, ``row_max``)."""
    rows = magnitude.input[0]
    peak = graph.read_by(magnitude.output[0], "ReduceMax")
    if list(graph.constant(peak.input[1])) != [-1] or not _setting(peak, "keepdims", 1):
        raise NoMatch
    largest = graph.read_by(peak.output[0], "Max")
    least = graph.number(largest.input[1])
    units = [node for node in graph.readers(largest.output[0], "Div") if list(node.input) == [rows, *largest.output]]
    if len(units) != 1:
        raise NoMatch
    levels = graph.read_by(units[0].output[0], "QuantizeLinear")
    outputs = [levels.output[0], largest.output[0]]
    graph.replace(levels, "QuantiseRows", [rows], outputs, least=least, **_quantised(graph, levels))


def _gate(graph: Graph, split: Node) -> None:
    """A gated linear unit."""
    if len(split.output) != 2 or len(split.input) != 1 or _setting(split, "axis", 0) != -1:
        raise NoMatch
    opened = graph.read_by(split.output[1], "Sigmoid")
    gated = graph.read_by(opened.output[0], "Mul")
    if graph.read_by(split.output[0], "Mul") is not gated:
        raise NoMatch
    graph.replace(gated, "Gate", [split.input[0]], gated.output)


def _quantised_norm(graph: Graph, norm: Node) -> None:
    """A layer's norm that is read in bytes, and perhaps as it is too."""
    (normed, *further), readers = norm.output, graph.readers(norm.output[0], "QuantizeLinear")
    if further or len(readers) != 1 or len(norm.input) != 3 or _setting(norm, "axis", -1) != -1:
        raise NoMatch
    (levels,) = readers
    settings = {"epsilon": float(_setting(norm, "epsilon", 1e-5)), **_quantised(graph, levels)}
    try:
        graph.read_by(normed, "QuantizeLinear")
    except NoMatch:
        outputs = [*levels.output, normed]
        return graph.replace(norm, "QuantiseKeptNorm", norm.input, outputs, **settings)
    graph.replace(levels, "QuantiseNormed", norm.input, levels.output, **settings)


PATTERNS: tuple[tuple[str, Callable[[Graph, Node], None]], ...] = (
    ("Softmax", _source_attention),
    ("Softmax", _history_attention),
    ("Abs", _quantised_rows),
    ("Split", _gate),
    ("LayerNormalization", _quantised_norm),
)
"""The kind of node that a pattern is looked for from, and what puts an operator there."""

_SEARCHED = ("scores", "tokens", "parents", "logsumexp")


def _end_of_step(graph: Graph) -> None:
    """From logits to the best continuations, whatever nodes that is."""
    if not {*_SEARCHED} <= graph.makers.keys():
        raise NoMatch
    last = graph.makers["parents"]
    inputs, kind, settings = _listed(graph) if "entries" in graph.inputs else _among_all(graph)
    graph.nodes = [*(node for node in graph.nodes if node is not last), last]
    graph.replace(last, kind, inputs, _SEARCHED, **settings)


def _among_all(graph: Graph) -> tuple[list[str], str, dict[str, Any]]:
    """models/steps/continuations.py, best_continuations."""
    if "logits" not in graph.makers:
        raise NoMatch
    sentences = next(name for name in graph.inputs if name.startswith("memory."))
    return ["logits", "score", "banned", "forced", "count", sentences], "BestContinuations", {}


def _listed(graph: Graph) -> tuple[list[str], str, dict[str, Any]]:
    """models/steps/shortlisted.py, best_listed: from the sum with the lists, and what tokens beyond them count with."""
    masks = [node.output[0] for node in graph.readers("listed", "Unsqueeze")]
    powers = graph.readers("listed", "Exp")
    if len(masks) != 1 or len(powers) != 1:
        raise NoMatch
    masked = graph.read_by(masks[0], "Add")
    by_sentence = next(name for name in masked.input if name != masks[0])
    logits = graph.made_by(by_sentence, "Reshape").input[0]
    left = graph.read_by(graph.read_by(powers[0].output[0], "ReduceSum").output[0], "Sub")
    spread = graph.read_by(graph.read_by(left.output[0], "ReduceLogSum").output[0], "Add")
    rest = graph.read_by(spread.output[0], "Add")
    mean = graph.made_by(next(name for name in rest.input if name != spread.output[0]), "Reshape").input[0]
    settings = {"size": int(graph.number(left.input[0])), "spread": graph.number(spread.input[1])}
    inputs = [logits, mean, "score", "banned", "forced", "count", "entries", "listed"]
    return inputs, "BestListed", settings
