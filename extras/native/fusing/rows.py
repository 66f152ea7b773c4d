"""Rows that become bytes, by their largest magnitude or a norm; gates, and a recurrence's cell."""

from __future__ import annotations

from tandem.extras.native.fusing.graph import Graph, Node, NoMatch, quantised, setting


def quantised_rows(graph: Graph, magnitude: Node) -> None:
    """Rows over their largest magnitude, in bytes (training/export/quantise.py, ``row_max``)."""
    rows = magnitude.input[0]
    peak = graph.read_by(magnitude.output[0], "ReduceMax")
    if list(graph.constant(peak.input[1])) != [-1] or not setting(peak, "keepdims", 1):
        raise NoMatch
    largest = graph.read_by(peak.output[0], "Max")
    least = graph.number(largest.input[1])
    units = [node for node in graph.readers(largest.output[0], "Div") if list(node.input) == [rows, *largest.output]]
    if len(units) != 1:
        raise NoMatch
    levels = graph.read_by(units[0].output[0], "QuantizeLinear")
    outputs = [levels.output[0], largest.output[0]]
    graph.replace(levels, "QuantiseRows", [rows], outputs, least=least, **quantised(graph, levels))


def gate(graph: Graph, split: Node) -> None:
    """A gated linear unit."""
    if len(split.output) != 2 or len(split.input) != 1 or setting(split, "axis", 0) != -1:
        raise NoMatch
    opened = graph.read_by(split.output[1], "Sigmoid")
    gated = graph.read_by(opened.output[0], "Mul")
    if graph.read_by(split.output[0], "Mul") is not gated:
        raise NoMatch
    graph.replace(gated, "Gate", [split.input[0]], gated.output)


def quantised_norm(graph: Graph, norm: Node) -> None:
    """A layer's norm that is read in bytes, and perhaps as it is too."""
    (normed, *further), readers = norm.output, graph.readers(norm.output[0], "QuantizeLinear")
    if further or len(readers) != 1 or len(norm.input) != 3 or setting(norm, "axis", -1) != -1:
        raise NoMatch
    (levels,) = readers
    settings = {"epsilon": float(setting(norm, "epsilon", 1e-5)), **quantised(graph, levels)}
    try:
        graph.read_by(normed, "QuantizeLinear")
    except NoMatch:
        outputs = [*levels.output, normed]
        return graph.replace(norm, "QuantiseKeptNorm", norm.input, outputs, **settings)
    graph.replace(levels, "QuantiseNormed", norm.input, levels.output, **settings)


def cell(graph: Graph, sigmoid: Node) -> None:
    """A recurrence without products (models/architectures/layers/ssru.py) and the sum with what it read."""
    (kept,) = sigmoid.output
    opposite = [node for node in graph.readers(kept, "Sub") if node.input[1] == kept]
    remembered = graph.readers(kept, "Mul")
    if len(opposite) != 1 or len(remembered) != 1 or graph.number(opposite[0].input[0]) != 1:
        raise NoMatch
    taken = graph.read_by(opposite[0].output[0], "Mul")
    mixed = graph.read_by(remembered[0].output[0], "Add")
    if graph.read_by(taken.output[0], "Add") is not mixed:
        raise NoMatch
    readers = graph.readers(mixed.output[0])  # and it may be a state, which leaves the graph
    if [node.op_type for node in readers] != ["Relu"]:
        raise NoMatch
    (rectified,) = readers
    out = graph.read_by(rectified.output[0], "Add")
    candidate, previous, x = (
        graph.beside(node, name)
        for node, name in ((taken, opposite[0].output[0]), (remembered[0], kept), (out, rectified.output[0]))
    )
    outputs = [*mixed.output, *out.output]
    graph.replace(out, "Cell", [sigmoid.input[0], candidate, previous, x], outputs)
