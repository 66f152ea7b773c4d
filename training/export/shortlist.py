"""``step_shortlist`` from ``step_logits``: the output product over some rows of its weight, and the search over those.

The graph that returns all logits holds the model in its precision, 8 bits included, so the one derived from it needs
neither the model nor calibration. Looking ``entries`` up is pushed through the product: rows of its weight, its scales
and its bias are looked up instead, and the product shrinks with the list. The mean of all logits, which the tokens that
are not listed count with, is a product with the mean of those rows. Where no product makes the logits (an average of
probabilities), they are looked up themselves, and their mean is taken. The search over them is that of
:mod:`models.steps.shortlisted`.

What is looked up depends on the entries alone, which are the same from step to step, so that a graph of its own does
it: ``entries``, whose outputs are further inputs of ``step_shortlist``. That is the ONNX runtime's own affair
(:mod:`service.runtimes.onnx`): no spec has them.

Shape suffixes as there; D inputs of the product, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from tandem.models.search.graphs import GraphSpec, TensorSpec
from tandem.models.steps.numbers import GRID
from tandem.training.export.editing import CONTRIB, Array, Editor, Writer, node, setting
from tandem.training.export.quantise import quantise_weight
from tandem.training.export.searching import declare, write_best_listed

SHORTLIST_GRAPH, LOGITS_GRAPH, ENTRIES_GRAPH = "step_shortlist", "step_logits", "entries"
_PRODUCTS = ("Gemm", "MatMul", "MatMulIntegerToFloat")
_BY_ELEMENT = ("Add", "Mul", "Sub", "Div", "Cast", "Identity")


def shortlist_spec(step: GraphSpec) -> GraphSpec:
    """What ``step_shortlist`` declares beside a ``step`` graph: the same, and the lists."""
    lists = (
        TensorSpec("entries", "int64", ("entry",), 0.0, "control"),
        TensorSpec("listed", "float32", ("sentence", "entry"), -np.inf, "control"),
    )
    after = 1 + [tensor.name for tensor in step.inputs].index("count")
    return replace(step, inputs=(*step.inputs[:after], *lists, *step.inputs[after:]))


def add_shortlist_graph(graphs: dict[str, onnx.ModelProto], spec: GraphSpec) -> None:
    """Add ``step_shortlist`` to the graphs of one precision, or replace it: made from their ``step_logits``. With
    ``entries``, where it looks constants up.

    An output weight that is stored by columns, one for each token, is stored by rows in all graphs from then on: so it
    can be looked up, and is still stored once.

    Args:
        graphs: by name.
        spec: what the new graph is to declare.
    """
    by_columns = _stored_by_columns(graphs[LOGITS_GRAPH])
    if by_columns is not None:
        for graph in graphs.values():
            _store_by_rows(graph, by_columns)
    graphs[SHORTLIST_GRAPH], looked_up = parted(shortlist_graph(graphs[LOGITS_GRAPH], spec))
    graphs.pop(ENTRIES_GRAPH, None)
    if looked_up.graph.output:
        graphs[ENTRIES_GRAPH] = looked_up


def parted(step_shortlist: onnx.ModelProto) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A ``step_shortlist`` graph, changed in place: what it looks up of constants is given to it; and the graph that
    looks it up.
    """
    looked_up = onnx.ModelProto.FromString(step_shortlist.SerializeToString())
    step = Editor(step_shortlist)
    sizes: dict[str, tuple[Array, list[int | str]]] = {}
    for one in step.nodes:
        constant = step.constant(one.input[0]) if one.input else None
        if one.op_type in ("Gather", "GatherElements") and one.input[1] == "entries" and constant is not None:
            sizes[one.output[0]] = constant, ["entry", *constant.shape[1:]]
        elif one.op_type == "Transpose" and one.input[0] in sizes:
            held, rows = sizes[one.input[0]]
            sizes[one.output[0]] = held, rows[::-1]
    step.nodes = [one for one in step.nodes if one.output[0] not in sizes]
    read = {name for one in step.nodes for name in one.input}
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(constant.dtype), shape)
        for name, (constant, shape) in sizes.items()
        if name in read
    ]
    step.model.graph.input.extend(values)
    graph = looked_up.graph
    entries = [one for one in graph.input if one.name == "entries"]
    del graph.input[:], graph.output[:]
    graph.input.extend(entries)
    graph.output.extend(values)
    return step.finish(), Editor(looked_up).finish()


def shortlist_graph(step_logits: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """A ``step_shortlist`` graph as ``spec`` declares it; ``step_logits`` stays as it is."""
    model = onnx.ModelProto.FromString(step_logits.SerializeToString())
    by_columns = _stored_by_columns(model)
    if by_columns is not None:
        _store_by_rows(model, by_columns)
    declare(model, spec)
    editor = Editor(model)
    write = Writer(editor, "shortlist")
    size = int(spec.input("banned").padding)
    logits_RW, mean_R1 = (kind(editor, write, size).of("logits") for kind in (_Entries, _Mean))
    write_best_listed(write, logits_RW, mean_R1, size)
    editor.nodes += write.nodes
    return editor.finish()


class _Cut(ABC):
    """Cuts a value over the vocabulary down to a part of it, as near to its origin as can be."""

    def __init__(self, editor: Editor, write: Writer, size: int) -> None:
        self._editor, self._makers, self._write, self._size = editor, editor.makers(), write, size
        self._found: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The name of the part of a value R x V."""
        maker = self._makers[name]
        weight = self._weight(maker)
        if weight is not None:
            return self._integer(maker, weight) if maker.domain == CONTRIB else self._float(maker, weight)
        if self._by_element(maker) and self._from_product(name):
            return self._copy(maker, [self._operand(one) for one in maker.input])
        return self._whole(name)

    @abstractmethod
    def _look_up(self, name: str) -> str:
        """The part of a constant: its rows, or its numbers."""

    @abstractmethod
    def _integer(self, maker: onnx.NodeProto, weight: str) -> str:
        """The part of an integer product."""

    @abstractmethod
    def _float(self, maker: onnx.NodeProto, weight: str) -> str:
        """The part of a float product."""

    @abstractmethod
    def _whole(self, name: str) -> str:
        """The part of a value that no product makes."""

    def _by_element(self, maker: onnx.NodeProto) -> bool:
        """Whether the part of the result follows from the parts of the operands."""
        return maker.op_type in _BY_ELEMENT

    def _from_product(self, name: str) -> bool:
        """Whether a product with a constant weight makes the value, up to what goes element by element."""
        maker = self._makers.get(name)
        if maker is None:
            return False
        if self._by_element(maker):
            return any(self._from_product(one) for one in maker.input)
        return self._weight(maker) is not None

    def _weight(self, maker: onnx.NodeProto) -> str | None:
        """The constant V x D of a product ``rows @ weight.T``; None of other operators, and of other products."""
        if maker.op_type not in _PRODUCTS or not _plain(maker):
            return None
        weight = maker.input[1]
        if maker.op_type != "Gemm" or not setting(maker, "transB", 0):
            turned = self._makers.get(weight)
            weight = turned.input[0] if turned is not None and turned.op_type == "Transpose" else ""
        constant = self._editor.constant(weight)
        return weight if constant is not None and len(constant) == self._size else None

    def _is_numbers(self, name: str) -> bool:
        """Whether it is a constant with a number for each token."""
        constant = self._editor.constant(name) if name else None
        return constant is not None and constant.size == self._size

    def _operand(self, name: str) -> str:
        if self._is_numbers(name):
            return self._look_up(name)
        return self.of(name) if self._from_product(name) else name  # else it is a number for each row

    def _gemm(self, maker: onnx.NodeProto, weight: str) -> str:
        """Over two rows at least, the first once more: the kernel for a single row sums in another order."""
        zero, one, end = (self._write.number(at, [1]) for at in (0, 1, -1))
        rows = self._write("Concat", maker.input[0], self._write("Slice", maker.input[0], zero, one), axis=0)
        bias = [self._look_up(name) for name in maker.input[2:] if name]
        product = self._write("Gemm", rows, weight, *bias, transB=1)
        return self._write("Slice", product, zero, end)

    def _copy(self, maker: onnx.NodeProto, inputs: list[str]) -> str:
        settings = {one.name: helper.get_attribute_value(one) for one in maker.attribute}
        name = self._write.fresh(maker.op_type.lower())
        self._write.nodes.append(node(maker.op_type, inputs, [name], domain=maker.domain, **settings))
        return name


class _Entries(_Cut):
    """R x W: the entries."""

    def _look_up(self, name: str) -> str:
        if name not in self._found:
            constant = self._editor.constant(name)
            assert constant is not None
            if constant.ndim == 2 and min(constant.shape) > 1:
                self._found[name] = self._write("Gather", name, "entries", axis=0)
            else:  # number by number, this operator is several times faster than the other
                vector = self._editor.add_constant(constant.reshape(-1), name) if constant.ndim > 1 else name
                self._found[name] = self._write("GatherElements", vector, "entries", axis=0)
        return self._found[name]

    def _integer(self, maker: onnx.NodeProto, weight: str) -> str:
        columns_DW = self._write("Transpose", self._look_up(weight), perm=[1, 0])
        rows, _, scale, scales, *zeros_and_bias = maker.input
        bias = [self._operand(name) for name in zeros_and_bias[2:]]
        return self._copy(maker, [rows, columns_DW, scale, self._operand(scales), *zeros_and_bias[:2], *bias])

    def _float(self, maker: onnx.NodeProto, weight: str) -> str:
        return self._gemm(maker, self._look_up(weight))

    def _whole(self, name: str) -> str:
        return self._write("Gather", name, "entries", axis=-1)


class _Mean(_Cut):
    """R x 1: the mean over the vocabulary."""

    def _look_up(self, name: str) -> str:
        """Of a constant's numbers."""
        constant = self._editor.constant(name)
        assert constant is not None
        return self._editor.add_constant(constant.mean(dtype=np.float64).astype(np.float32).reshape(1), name)

    def _integer(self, maker: onnx.NodeProto, weight: str) -> str:
        """In 16 bits: a column of the mean in 8, and one of what that leaves."""
        rows, _, scale, scales, *zeros_and_bias = maker.input
        stored, by_row = self._editor.constant(weight), self._editor.constant(scales)
        assert stored is not None
        assert by_row is not None
        mean_1D = (stored * by_row.reshape(-1, 1)).mean(0, dtype=np.float64, keepdims=True)
        high_1D, high = quantise_weight(mean_1D)
        low_1D, low = quantise_weight(mean_1D - high_1D * high)
        columns_D2 = self._editor.add_constant(np.concatenate([high_1D, low_1D]).T, weight)
        own = self._editor.add_constant(np.concatenate([high, low]), scales)
        product = self._copy(maker, [rows, columns_D2, scale, own, *zeros_and_bias[:2]])
        sum_R1 = self._write("ReduceSum", product, self._write.number(-1, [1]), keepdims=1)
        return self._write("Add", sum_R1, self._operand(zeros_and_bias[2])) if len(zeros_and_bias) > 2 else sum_R1

    def _float(self, maker: onnx.NodeProto, weight: str) -> str:
        """Twice, for one column has a kernel of its own too."""
        stored = self._editor.constant(weight)
        assert stored is not None
        mean_D = stored.mean(0, dtype=np.float64).astype(stored.dtype)
        product = self._gemm(maker, self._editor.add_constant(np.stack([mean_D, mean_D]), weight))
        first, second = (self._write.number(at, [1]) for at in (0, 1))
        return self._write("Slice", product, first, second, second)

    def _whole(self, name: str) -> str:
        levels_RV = self._write("Round", self._write("Mul", name, self._write.number(GRID)))
        wide_RV = self._write("Cast", levels_RV, to=onnx.TensorProto.DOUBLE)
        sum_R1 = self._write("ReduceSum", wide_RV, self._write.number(-1, [1]), keepdims=1)
        narrow_R1 = self._write("Cast", sum_R1, to=onnx.TensorProto.FLOAT)
        return self._write("Mul", narrow_R1, self._write.number(1 / (GRID * self._size)))

    def _by_element(self, maker: onnx.NodeProto) -> bool:
        """The mean of products is not the product of means."""
        scaled = maker.op_type in ("Mul", "Div") and any(map(self._is_numbers, maker.input))
        return super()._by_element(maker) and not scaled


def _plain(product: onnx.NodeProto) -> bool:
    """A product with no factors and no turned rows, the only kind there is."""
    return (
        setting(product, "alpha", 1.0) == 1 and setting(product, "beta", 1.0) == 1 and not setting(product, "transA", 0)
    )


def _stored_by_columns(step_logits: onnx.ModelProto) -> Array | None:
    """The weight D x V of the product that makes the logits, where it is a constant of this form."""
    editor = Editor(step_logits)
    makers, pending = editor.makers(), ["logits"]
    while pending:
        maker = makers.get(pending.pop())
        if maker is None:
            continue
        if maker.op_type in _BY_ELEMENT:
            pending += maker.input
        elif maker.op_type in _PRODUCTS and not (maker.op_type == "Gemm" and setting(maker, "transB", 0)):
            weight = editor.constant(maker.input[1])
            return weight if weight is not None and weight.ndim == 2 else None
    return None


def _store_by_rows(graph: onnx.ModelProto, columns_DV: Array) -> None:
    """Replace a constant by its transpose, turned back at the start: runtimes do that once, when they load a graph."""
    kind, shape, content = helper.np_dtype_to_tensor_dtype(columns_DV.dtype), columns_DV.shape, columns_DV.tobytes()
    same = [
        tensor.name
        for tensor in graph.graph.initializer
        if tensor.data_type == kind and tuple(tensor.dims) == shape and tensor.raw_data == content
    ]
    if not same:
        return
    editor = Editor(graph)
    turned = editor.fresh("output.columns")
    for one in editor.nodes:
        for place, name in enumerate(one.input):
            if name in same:
                one.input[place] = turned
    rows = editor.add_constant(columns_DV.T, "output.rows")
    editor.nodes.insert(0, node("Transpose", [rows], [turned], perm=[1, 0]))
    editor.finish()
