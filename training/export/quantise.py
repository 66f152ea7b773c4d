"""Eight-bit graphs: constant products in integers, embedding tables as 8-bit rows.

    x --QuantizeLinear(constant)--> uint8 --MatMulIntegerToFloat(int8 weight, scale per output, bias)--> y

Recurrent layers stay as they are: one operator over a whole sequence, whose float32 rows are independent already.
Products stay exact integers until the last step, so a row's result does not depend on its batch-mates. Unsigned times
signed 8 bits is what the processors' integer instructions take; without them (x86 before VNNI) pairs of products may
saturate, which loses accuracy and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import onnx
from onnx import helper

from tandem.training.export.editing import CONTRIB, Array, Editor, node, setting

SMALL_TABLE = 1_024  # rows: as many positions; two nodes less at every step are worth the bytes


@dataclass(frozen=True, slots=True)
class Quantisation:
    """How the left side of a product becomes unsigned 8-bit numbers: ``q = round(x / scale) + zero_point``.

    Attributes:
        kind: ``static``, or ``row_max``: x is divided by the largest magnitude in its row first.
        scale: of x, or of x over its row maximum.
        zero_point: the number that stands for 0.
        error: root mean square over rows of |error| / |product| (or / its mean, if larger), 8-bit weights included.
    """

    kind: Literal["static", "row_max"]
    scale: float
    zero_point: int
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A weight in 8 bits that somebody has rounded already: outputs x inputs, or the rows of a table.

    Attributes:
        levels: signed, none of them -128.
        scales: of each output or row.
    """

    levels: Array
    scales: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """``rows @ weight_KN + bias``."""

    rows: str
    weight_KN: Array
    bias: str | None


def quantise(
    model: onnx.ModelProto, forms: Mapping[str, Quantisation], given: Mapping[str, Levels] = MappingProxyType({})
) -> list[str]:
    """Turn every constant product with a form, and every embedding table, of a float32 graph into 8 bits, in place.

    Args:
        model: the graph.
        forms: of what enters a product, by its weight's :func:`weight_key`.
        given: weights in 8 bits, by the same keys (a table's is that of its transpose); others are rounded here.

    Returns:
        The outputs of constant products that have no form and stay float32.
    """
    editor, left = Editor(model), list[str]()
    _narrow_tables(editor, given)
    quantised: dict[tuple[str, Quantisation], str] = {}
    readers, makers = editor.readers(), editor.makers()
    replaced: dict[int, list[onnx.NodeProto]] = {}
    for one in editor.nodes:
        product = _product(editor, one)
        if product is None:
            continue
        key = weight_key(product.weight_KN)
        form = forms.get(key)
        if form is None:
            left.append(one.output[0])
            continue
        result, add = one.output[0], _bias_after(editor, one, product, readers)
        bias = product.bias
        if add is not None and form.kind == "static":
            bias, result = add[1], add[0].output[0]
            replaced[id(add[0])] = []
        rows = _without_relu(product.rows, form, makers)
        weight = given.get(key) or _rounded(product.weight_KN.T)
        replaced[id(one)] = _integer_product(editor, _Integer(rows, weight, bias), form, result, quantised)
    editor.nodes = [new for old in editor.nodes for new in replaced.get(id(old), [old])]
    editor.finish()
    return left


@dataclass(frozen=True, slots=True, eq=False)
class _Integer:
    """The same with a weight in 8 bits."""

    rows: str
    weight: Levels
    bias: str | None


def _rounded(weight_NK: Array) -> Levels:
    return Levels(*quantise_weight(weight_NK))


def _product(editor: Editor, one: onnx.NodeProto) -> _Product | None:
    if one.op_type not in ("MatMul", "Gemm"):
        return None
    weight = editor.constant(one.input[1])
    if weight is None or weight.ndim != 2 or weight.dtype != np.float32:
        return None
    if one.op_type == "MatMul":
        return _Product(one.input[0], weight, None)
    plain = setting(one, "alpha", 1.0) == 1 and setting(one, "beta", 1.0) == 1 and not setting(one, "transA", 0)
    bias = one.input[2] if len(one.input) > 2 and one.input[2] else None
    if not plain or (bias is not None and editor.constant(bias) is None):
        return None
    return _Product(one.input[0], weight.T if setting(one, "transB", 0) else weight, bias)


def _bias_after(
    editor: Editor, one: onnx.NodeProto, product: _Product, readers: Mapping[str, list[onnx.NodeProto]]
) -> tuple[onnx.NodeProto, str] | None:
    """The addition of a constant vector that alone reads the product, and the name of the vector."""
    after = readers.get(one.output[0], [])
    if product.bias is not None or len(after) != 1 or after[0].op_type != "Add" or editor.is_output(one.output[0]):
        return None
    other = after[0].input[1] if after[0].input[0] == one.output[0] else after[0].input[0]
    vector = editor.constant(other)
    return (after[0], other) if vector is not None and vector.shape == product.weight_KN.shape[1:] else None


def _without_relu(rows: str, form: Quantisation, makers: Mapping[str, onnx.NodeProto]) -> str:
    """What lies below 0 becomes 0 in unsigned numbers anyway."""
    maker = makers.get(rows)
    saturates = form.kind == "static" and form.zero_point == 0
    return maker.input[0] if maker is not None and maker.op_type == "Relu" and saturates else rows


def _integer_product(
    editor: Editor, product: _Integer, form: Quantisation, result: str, quantised: dict[tuple[str, Quantisation], str]
) -> list[onnx.NodeProto]:
    """The nodes that replace a product. Products that share their rows in one form share its quantisation."""
    stored, scales = product.weight.levels, product.weight.scales
    nodes, rows = list[onnx.NodeProto](), product.rows
    scale = editor.add_constant(np.asarray(form.scale, np.float32), "scale")
    zero = editor.add_constant(np.asarray(form.zero_point, np.uint8), "zero")
    largest, bias = "", product.bias or ""
    if form.kind == "row_max":
        largest, scaled, magnitude, peak = (editor.fresh(f"{result}.{part}") for part in ("max", "unit", "abs", "peak"))
        axis = editor.add_constant(np.array([-1], np.int64), "axis")
        floor = editor.add_constant(np.asarray(1e-30, np.float32), "floor")
        nodes += [
            node("Abs", [rows], [magnitude]),
            node("ReduceMax", [magnitude, axis], [peak], keepdims=1),
            node("Max", [peak, floor], [largest]),
            node("Div", [rows, largest], [scaled]),
        ]
        rows, bias = scaled, ""
    key = (product.rows, Quantisation(form.kind, form.scale, form.zero_point, 0.0))
    if form.kind == "row_max" or key not in quantised:
        quantised[key] = editor.fresh(f"{rows}.q")
        nodes.append(node("QuantizeLinear", [rows, scale, zero], [quantised[key]]))
    if editor.has_constant(stored):  # tied with an embedding table: the runtime transposes constants when it loads
        weight = editor.fresh(f"{result}.weight")
        nodes.append(node("Transpose", [editor.add_constant(stored, "weight8")], [weight], perm=[1, 0]))
    else:
        weight = editor.add_constant(stored.T, "weight8")
    outputs = editor.fresh(f"{result}.product") if largest else result
    inputs = [quantised[key], weight, scale, editor.add_constant(scales, "scales"), zero, "", bias]
    nodes.append(node("MatMulIntegerToFloat", inputs if bias else inputs[:5], [outputs], domain=CONTRIB))
    if largest:
        summed = editor.fresh(f"{result}.scaled") if product.bias else result
        nodes.append(node("Mul", [outputs, largest], [summed]))
        nodes += [node("Add", [summed, product.bias], [result])] if product.bias else []
    return nodes


def _narrow_tables(editor: Editor, given: Mapping[str, Levels]) -> None:
    """Tables that are looked up become 8-bit rows with a scale each; small ones, and those that are sliced, fp16."""
    nodes: list[onnx.NodeProto] = []
    for one in editor.nodes:
        table = editor.constant(one.input[0]) if one.op_type in ("Gather", "Slice") else None
        if table is None or table.ndim != 2 or table.dtype != np.float32 or setting(one, "axis", 0) != 0:
            nodes.append(one)
        elif one.op_type == "Gather" and len(table) > SMALL_TABLE:
            nodes += _lookup(editor, one, given.get(weight_key(table.T)) or _rounded(table))
        else:
            narrow = editor.fresh(f"{one.output[0]}.half")
            half = editor.add_constant(table.astype(np.float16), "table16")
            kept = {attribute.name: helper.get_attribute_value(attribute) for attribute in one.attribute}
            nodes.append(node(one.op_type, [half, *one.input[1:]], [narrow], **kept))
            nodes.append(node("Cast", [narrow], [one.output[0]], to=onnx.TensorProto.FLOAT))
    editor.nodes = nodes


def _lookup(editor: Editor, one: onnx.NodeProto, table: Levels) -> list[onnx.NodeProto]:
    stored, scales = table.levels, table.scales
    levels, wide, scale = (editor.fresh(f"{one.output[0]}.{part}") for part in ("levels", "wide", "scale"))
    return [
        node("Gather", [editor.add_constant(stored, "weight8"), one.input[1]], [levels], axis=0),
        node("Cast", [levels], [wide], to=onnx.TensorProto.FLOAT),
        node("Gather", [editor.add_constant(scales[:, None], "scales"), one.input[1]], [scale], axis=0),
        node("Mul", [wide, scale], [one.output[0]]),
    ]


def weight_key(weight_KN: Array) -> str:
    """Names a product by the content of its weight, inputs x outputs."""
    return hashlib.sha256(np.ascontiguousarray(weight_KN, np.float32).tobytes()).hexdigest()


def quantise_weight(weight_NK: Array) -> tuple[Array, Array]:
    """Signed 8-bit weights, outputs x inputs, and the scale of each output: symmetric, the largest becomes 127."""
    largest = np.abs(weight_NK).max(axis=1)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(weight_NK / scale[:, None]).astype(np.int8), scale
