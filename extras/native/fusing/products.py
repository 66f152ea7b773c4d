"""Products of bytes with constant weights, and what a layer does around them.

Shape suffixes: R rows, N columns.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tandem.extras.native.fusing.graph import Graph, Node, NoMatch, quantised, setting, transposed


def product_of_bytes(graph: Graph, product: Node) -> None:
    """A product of bytes with a constant, with what makes its rows bytes and what its result is added to."""
    levels, weights, scale, column_scales, zero, weights_zero, bias = [*product.input, "", ""][:7]
    turned = not graph.is_constant(weights)
    if turned:
        weights = transposed(graph, graph.made_by(weights, "Transpose"), [1, 0])
    kind_of_weights, shape = graph.form(weights)
    if weights_zero or kind_of_weights != np.int8 or len(shape) != 2 or graph.form(zero)[0] != np.uint8:
        raise NoMatch
    graph.form(column_scales)
    rows = _Rows(graph, levels, graph.number(scale), int(graph.number(zero)))
    end = _End(graph, product)
    if rows.largest:
        end.multiplied_by(rows.largest)
    bias = bias or end.added_constant(shape[0 if turned else 1])
    flat, residual = end.flattened(), end.added()
    factor = end.scaled() if residual else 1.0
    own = {"turned": int(turned), "flat": flat, "factor": factor, "rectified": end.rectified()}
    settings = {**rows.settings, **own, **end.quantised()}
    kind = f"Product{'' if rows.inside else 'OfLevels'}{'InLevels' if end.levels else ''}"
    inputs = [rows.source, weights, column_scales, bias, "" if rows.inside else rows.largest, residual]
    graph.replace(end.last, kind, inputs, end.last.output, **settings)


class _Rows:
    """What makes the rows of a product bytes.

    Attributes:
        source: the rows, in numbers where the product makes them bytes (``inside``), else in bytes.
        largest: what their numbers were divided by, where they were.
        settings: of the operator.
    """

    def __init__(self, graph: Graph, levels: str, scale: float, zero: int) -> None:
        self.source, self.largest, self.inside = levels, "", False
        self.settings = {"scale": scale, "zero": zero, "least": 0.0}
        maker = graph.makers.get(levels)
        if maker is None:
            return
        alone = graph.has_one_reader(levels)
        if maker.op_type == "QuantiseRows":
            self.largest = str(maker.output[1])
            if alone and graph.has_one_reader(self.largest):
                self.source, self.inside = str(maker.input[0]), True
                self.settings["least"] = float(setting(maker, "least"))
        elif maker.op_type == "QuantizeLinear" and alone and quantised(graph, maker) == {"scale": scale, "zero": zero}:
            self.source, self.inside = str(maker.input[0]), True


class _End:
    """What follows a product, one node after another, for as long as nobody else reads what is between.

    Attributes:
        last: the last node so far.
        levels: whether it makes bytes.
    """

    def __init__(self, graph: Graph, product: Node) -> None:
        self._graph, self.last, self.levels = graph, product, False

    def _next(self, kind: str) -> Node:
        return self._graph.read_by(self.last.output[0], kind)

    def multiplied_by(self, largest: str) -> None:
        """Step over the product with what rows were divided by. Raises NoMatch where there is none."""
        times = self._next("Mul")
        if self._graph.beside(times, self.last.output[0]) != largest:
            raise NoMatch
        self.last = times

    def added_constant(self, columns: int) -> str:
        """Step over a bias, by its name; nothing where there is none."""
        with suppress(NoMatch):
            add = self._next("Add")
            bias = self._graph.beside(add, self.last.output[0])
            if self._graph.form(bias)[1] == (columns,):
                self.last = add
                return bias
        return ""

    def flattened(self) -> int:
        """Step over a reshape to R x 1 x N: 1, or 0 where there is none."""
        with suppress(NoMatch):
            shaped = self._next("Reshape")
            shape = list(self._graph.constant(shaped.input[1]))
            if len(shape) == 3 and shape[:2] == [-1, 1]:
                self.last = shaped
                return 1
        return 0

    def added(self) -> str:
        """Step over the addition of what is no constant, by its name; nothing where there is none."""
        with suppress(NoMatch):
            add = self._next("Add")
            residual = self._graph.beside(add, self.last.output[0])
            if not self._graph.is_constant(residual):
                self.last = add
                return residual
        return ""

    def scaled(self) -> float:
        """Step over the product with one number; 1 where there is none."""
        with suppress(NoMatch):
            times = self._next("Mul")
            factor = self._graph.number(self._graph.beside(times, self.last.output[0]))
            self.last = times
            return factor
        return 1.0

    def rectified(self) -> int:
        """Step over a rectifier: 1, or 0 where there is none."""
        with suppress(NoMatch):
            self.last = self._next("Relu")
            return 1
        return 0

    def quantised(self) -> dict[str, Any]:
        """Step over what makes bytes of the result; the operator's settings, which say nothing where nothing does."""
        with suppress(NoMatch):
            levels = self._next("QuantizeLinear")
            settings = quantised(self._graph, levels)
            self.last, self.levels = levels, True
            return {"out_scale": settings["scale"], "out_zero": settings["zero"]}
        return {"out_scale": 1.0, "out_zero": 0}
