"""Attention of one position a row: to a source, and to what a row has written.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, H heads, E width of a head, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from tandem.extras.native.fusing.graph import Graph, Node, NoMatch, setting, transposed

SWAPPED_HEADS = [0, 2, 1, 3]  # between B x K x H x E and B x H x K x E
_TURNED_KEYS = [0, 2, 3, 1]  # B x H x E x S of keys B x S x H x E


def _keys(graph: Graph, name: str) -> tuple[str, int]:
    """Keys by what their turned form is called, and their axes: B x S x E, or B x H x S x E."""
    node = graph.made_by(name, "Transpose")
    axes = len(setting(node, "perm", []))
    if axes not in (3, 4):
        raise NoMatch
    return transposed(graph, node, [*range(axes - 2), axes - 1, axes - 2]), axes


def _scaled_product(graph: Graph, name: str) -> tuple[Node, float]:
    """A product, and by what it is multiplied before the mask is added."""
    node = graph.made_by(name, "MatMul", "Div", "Mul")
    if node.op_type == "MatMul":
        return node, 1.0
    factor = graph.number(node.input[1])
    return graph.made_by(node.input[0], "MatMul"), 1 / factor if node.op_type == "Div" else factor


def _masked_scores(graph: Graph, softmax: Node) -> tuple[Node, float, Node]:
    """What a softmax is of: the product of queries and keys, its factor, and the mask as it is added to that."""
    first, second = graph.made_by(softmax.input[0], "Add").input
    for product_name, mask_name in ((first, second), (second, first)):
        with suppress(NoMatch):
            return *_scaled_product(graph, product_name), graph.made_by(mask_name, "Unsqueeze")
    raise NoMatch


def _query(graph: Graph, name: str, axes: int) -> str:
    """Queries B x K x H x E, or B x K x E, by the name that they have where they meet the keys."""
    return name if axes == 3 else transposed(graph, graph.made_by(name, "Transpose"), SWAPPED_HEADS)


def source_attention(graph: Graph, softmax: Node) -> None:
    """softmax(q k^T scale + mask) v over a source (models/architectures/layers/attention.py, attend, attend_heads)."""
    product, scale, shown = _masked_scores(graph, softmax)
    mask = shown.input[0]
    if graph.inputs.get(mask) != 2:
        raise NoMatch
    keys, axes = _keys(graph, product.input[1])
    if len(graph.constant(shown.input[1])) != axes - 2:
        raise NoMatch
    query = _query(graph, product.input[0], axes)
    context = graph.read_by(softmax.output[0], "MatMul")
    last = context if axes == 3 else graph.read_by(context.output[0], "Transpose")
    if axes == 4:
        transposed(graph, last, SWAPPED_HEADS)
    inputs = [_unshaped(graph, query), keys, context.input[1], mask]
    last, flat = _flat(graph, last)
    graph.replace(last, "SourceAttention", inputs, last.output, scale=scale, flat=flat)


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


def history_attention(graph: Graph, softmax: Node) -> None:
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
    own = graph.made_by(transposed(graph, graph.made_by(own_name, "Transpose"), SWAPPED_HEADS), "Reshape")
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
    transposed(graph, turned, SWAPPED_HEADS)
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


def self_attention(graph: Graph, softmax: Node) -> None:
    """The same of a sequence in itself, from what one product gives as queries, keys and values (an encoder)."""
    product, scale, mask = _masked_scores(graph, softmax)
    if graph.axes_of_result(mask.input[0]) != 2 or list(graph.constant(mask.input[1])) not in ([1, 2], [-3, -2]):
        raise NoMatch
    context = graph.read_by(softmax.output[0], "MatMul")
    asked, keys, values = (_heads_of(graph, name) for name in (*product.input, context.input[1]))
    if (asked[1:], keys[1:], values[1:]) != ((asked[1], SWAPPED_HEADS), (asked[1], _TURNED_KEYS), asked[1:]):
        raise NoMatch
    packed = _packed(graph, [asked[0], keys[0], values[0]])
    back = graph.read_by(context.output[0], "Transpose")
    transposed(graph, back, SWAPPED_HEADS)
    last = graph.read_by(back.output[0], "Reshape")
    if len(graph.sizes(last.input[1])) != 3:
        raise NoMatch
    graph.replace(last, "SelfAttention", [packed, mask.input[0]], last.output, scale=scale, heads=asked[1])


def _heads_of(graph: Graph, name: str) -> tuple[str, int, list[int]]:
    """What was cut into heads and turned, how many heads, and the order of its axes B x S x H x E after that."""
    order = [0, 1, 2, 3]
    while (node := graph.made_by(name, "Transpose", "Reshape")).op_type == "Transpose":
        perm = list(setting(node, "perm", []))
        if len(perm) != len(order):
            raise NoMatch
        order, name = [perm[axis] for axis in order], node.input[0]
    sizes = graph.sizes(node.input[1])
    if len(sizes) != len(order) or min(sizes[2:]) < 1:
        raise NoMatch
    return str(node.input[0]), sizes[2], order


def _side_by_side(graph: Graph, *parts: str) -> tuple[str, list[str]]:
    """What one product gives as query, key and value, and what keys and values are called for the pools."""
    packed = _packed(graph, [graph.made_by(part, "Reshape").input[0] for part in parts])
    appended = [reader.output[0] for part in parts[1:] for reader in graph.readers(part, "Squeeze")]
    if len(appended) != 2:
        raise NoMatch
    return packed, appended


def _packed(graph: Graph, thirds: Sequence[str]) -> str:
    """What a node splits into these thirds of its features."""
    split = graph.made_by(thirds[0], "Split")
    if [*thirds] != list(split.output) or len(split.input) != 1 or setting(split, "axis", 0) not in (-1, 2):
        raise NoMatch
    return str(split.input[0])
