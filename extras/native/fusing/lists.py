"""Products with those rows of a weight that a shortlist names: packed where the list changes, in a graph of its own.

:mod:`training.export.shortlist` writes that graph, ``entries``, which looks the rows up and turns them, and
``step_shortlist``, which is given them. What one packs the other reads, so that both are written or neither.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tandem.extras.native.fusing.graph import Graph, Node, NoMatch, transposed


def packed_rows(graph: Graph, turned: Node) -> None:
    """Rows of a weight in bytes that are looked up, turned, and leave the graph."""
    found = graph.made_by(transposed(graph, turned, [1, 0]), "Gather")
    weight, entries = found.input
    leaves = graph.axes_of_result(turned.output[0]) is not None
    if not leaves or entries not in graph.inputs or graph.form(weight)[0] != np.int8 or len(graph.form(weight)[1]) != 2:
        raise NoMatch
    graph.replace(turned, "PackListed", [weight, entries], turned.output)
    graph.flatten(turned.output[0])


def listed_product(graph: Graph, product: Node) -> None:
    """A product of bytes with rows that another graph looks up."""
    levels, rows, scale, scales, zero, weights_zero, bias = [*product.input, "", ""][:7]
    if rows not in graph.inputs or scales not in graph.inputs or weights_zero or graph.form(zero)[0] != np.uint8:
        raise NoMatch
    settings: dict[str, Any] = {"scale": graph.number(scale), "zero": int(graph.number(zero))}
    last, largest = product, ""
    with suppress(NoMatch):  # rows that were divided by their largest magnitude
        times = graph.read_by(product.output[0], "Mul")
        if graph.beside(times, product.output[0]) == graph.made_by(levels, "QuantiseRows").output[1] and not bias:
            last, largest = times, graph.beside(times, product.output[0])
    with suppress(NoMatch):
        add = graph.read_by(last.output[0], "Add")
        added = graph.beside(add, last.output[0])
        if added in graph.inputs and not bias:
            last, bias = add, added
    graph.replace(last, "ListedProduct", [levels, rows, scales, bias, largest], last.output, **settings)
    graph.flatten(rows)
