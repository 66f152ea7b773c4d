"""Graphs of a bundle with our own operators in the place of what they compute, as they are opened; files stay.

Each pattern is what :mod:`training.export` writes for one thing. Whatever is not found stays as it is, so that any
graph runs, with or without the operators (``src/kernels.h`` and ``src/products.h`` say what they compute).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import onnx

from tandem.extras.native.fusing.attention import history_attention, self_attention, source_attention
from tandem.extras.native.fusing.graph import DOMAIN, Graph, Node, NoMatch
from tandem.extras.native.fusing.lists import listed_product, packed_rows
from tandem.extras.native.fusing.products import product_of_bytes
from tandem.extras.native.fusing.rows import cell, gate, quantised_norm, quantised_rows
from tandem.extras.native.fusing.search import best_of_product, end_of_step

_PATTERNS: tuple[tuple[str, Callable[[Graph, Node], None]], ...] = (
    ("Softmax", source_attention),
    ("Softmax", history_attention),
    ("Softmax", self_attention),
    ("Abs", quantised_rows),
    ("Split", gate),
    ("Sigmoid", cell),
    ("LayerNormalization", quantised_norm),
)
"""The kind of node that a pattern is looked for from, and what puts an operator there."""


def fuse(model: onnx.ModelProto, folder: Path, *, products: bool) -> Counter[str]:
    """Write our operators into a graph, in place.

    Args:
        model: without its external data.
        folder: where that lies.
        products: whether this processor has our products of bytes.

    Returns:
        How many of each operator it has now.
    """
    values = (*model.graph.input, *model.graph.output)
    if any(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for value in values):
        return Counter()  # graphs for a GPU; the operators read float32
    graph = Graph(model, folder)
    for begin, pattern in _PATTERNS:
        _everywhere(graph, begin, pattern)
    with suppress(NoMatch):
        end_of_step(graph)
    if products:
        graph.drop_unread()  # what reads a product's rows counts
        _everywhere(graph, "Transpose", packed_rows)
        _everywhere(graph, "MatMulIntegerToFloat", listed_product)
        _everywhere(graph, "MatMulIntegerToFloat", product_of_bytes)
        _everywhere(graph, "BestContinuations", best_of_product)
    graph.drop_unread()
    found = Counter(node.op_type for node in graph.nodes if node.domain == DOMAIN)
    if found:
        graph.finish()
    return found


def _everywhere(graph: Graph, begin: str, pattern: Callable[[Graph, Node], None]) -> None:
    for node in [node for node in graph.nodes if node.op_type == begin]:
        with suppress(NoMatch):
            pattern(graph, node)
