"""Rows that become bytes, by their largest magnitude or a norm, and gates."""

from __future__ import annotations

from tandem.service.runtimes.fusing.graph import Graph, Node, NoMatch, quantised, setting


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
