"""Operators against the nodes whose place they take: products of bytes, and a recurrence's cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tandem.extras.native import fusing
from tandem.extras.native.fusing.graph import Graph, NoMatch
from tandem.extras.native.library import operators_of, products_of
from tandem.extras.native.tests.compiled import build_operators
from tandem.models.search import Array
from tandem.service.runtimes.sessions import Operators, open_session

ROWS = 11
_MICROSOFT = "com.microsoft"
_KINDS = {  # of what leaves an operator, where that is no float
    "QuantizeLinear": (TensorProto.UINT8,),
    "BestContinuations": (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT64, TensorProto.FLOAT),
}


@pytest.fixture(scope="module")
def operators() -> Operators:
    return operators_of(build_operators())


@pytest.fixture(scope="module")
def products(operators: Operators) -> Operators:
    if products_of(operators.library) is None:
        pytest.skip("this processor has no products of bytes that add in 32 bits")
    return operators


class Layer:
    """A graph that grows by one node after another, whose first input is what the last one made.

    Args:
        features, columns: of the product.
        turned: its weights lie columns first.
        biased: the product adds a bias itself.
    """

    def __init__(self, features: int = 70, columns: int = 50, *, turned: bool = False, biased: bool = True) -> None:
        self.features, self.columns, self._turned, self._biased = features, columns, turned, biased
        self._rng = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._outputs = list[str]()
        self._constants: list[onnx.TensorProto] = []
        self.inputs: dict[str, NDArray[Any]] = {"x": self.normal(ROWS, 1, features)}
        self.last = "x"

    def normal(self, *shape: int) -> Array:
        return self._rng.normal(size=shape).astype(np.float32)

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def then(self, kind: str, *others: str, domain: str = "", **settings: Any) -> Layer:
        return self._node(kind, [self.last, *others], domain, settings)

    def _node(self, kind: str, inputs: Sequence[str], domain: str, settings: dict[str, Any]) -> Layer:
        self.last = f"value{len(self._nodes)}"
        self._outputs = [self.last, *(f"{self.last}.{number}" for number in range(1, len(_KINDS.get(kind, " "))))]
        self._nodes.append(helper.make_node(kind, list(inputs), self._outputs, domain=domain, **settings))
        return self

    def number(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def quantised(self, name: str, scale: float, zero: int) -> Layer:
        return self.then("QuantizeLinear", self.number(f"{name}.scale", scale), self._byte(f"{name}.zero", zero))

    def _byte(self, name: str, value: int) -> str:
        return self.constant(name, np.array(value, np.uint8))

    def multiplied(self, scale: float, zero: int) -> Layer:
        weights = self._rng.integers(-128, 128, (self.features, self.columns)).astype(np.int8)
        levels = self.last
        name = self.constant("weights", weights.T.copy() if self._turned else weights)
        if self._turned:
            name = self._node("Transpose", [name], "", {"perm": [1, 0]}).last
        scales = self.constant("scales", np.abs(self.normal(self.columns)) / 100)
        bias = self.constant("bias", self.normal(self.columns)) if self._biased else ""
        given = [levels, name, self.number("scale", scale), scales, self._byte("zero", zero), "", bias]
        return self._node("MatMulIntegerToFloat", given, _MICROSOFT, {})

    def by_row(self) -> Layer:
        """Rows over their largest magnitude, a product, and back."""
        rows = self.last
        self.then("Abs").then("ReduceMax", self.constant("axes", np.array([-1])), keepdims=1)
        largest = self.then("Max", self.number("least", 1e-30)).last
        self._node("Div", [rows, largest], "", {}).quantised("unit", 1 / 127, 128).multiplied(1 / 127, 128)
        return self.then("Mul", largest)

    def added(self, *shape: int) -> Layer:
        self.inputs["residual"] = self.normal(*shape)
        return self.then("Add", "residual")

    def save(self, folder: Path) -> Path:
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
            for name, value in self.inputs.items()
        ]
        kinds = _KINDS.get(self._nodes[-1].op_type, (TensorProto.FLOAT,))
        outputs = [
            helper.make_tensor_value_info(name, kind, None) for name, kind in zip(self._outputs, kinds, strict=True)
        ]
        graph = helper.make_graph(self._nodes, "layer", inputs, outputs, self._constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
        path = folder / "layer.onnx"
        onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=9), path)
        return path


def plain() -> Layer:
    return Layer().quantised("x", 0.03, 120).multiplied(0.03, 120)


def hidden() -> Layer:
    return plain().quantised("hidden", 0.05, 0)


def rectified() -> Layer:
    return plain().then("Relu").quantised("hidden", 0.05, 128)


def residual() -> Layer:
    return plain().added(ROWS, 1, 50)


def flattened() -> Layer:
    layer = plain()
    return layer.then("Reshape", layer.constant("shape", np.array([-1, 1, 50]))).added(ROWS, 1, 50)


def broadcast() -> Layer:
    """The sum is larger than the product."""
    return plain().added(3, 1, 2, 50)


def broadcast_levels() -> Layer:
    return plain().added(1, 50).then("Relu").quantised("sum", 0.05, 100)


def rows() -> Layer:
    layer = Layer(128, 64, biased=False).by_row()
    layer.then("Add", layer.constant("bias", layer.normal(64))).added(ROWS, 1, 64)
    return layer.then("Mul", layer.number("half", 0.7))


def shared_rows() -> Layer:
    """Somebody else reads the rows' bytes, so that they are made once."""
    layer = Layer(64, 20, biased=False).by_row()
    levels = next(node.output[0] for node in layer._nodes if node.op_type == "QuantizeLinear")
    product, own = layer.last, layer._node("Cast", [levels], "", {"to": TensorProto.FLOAT})
    return own.then("ReduceSum", layer.constant("all", np.array([-1])), keepdims=1).then("Add", product)


def turned() -> Layer:
    return Layer(turned=True, biased=False).quantised("x", 0.03, 120).multiplied(0.03, 120)


def beside_itself() -> Layer:
    """What is added is the product again."""
    layer = plain()
    return layer.then("Add", layer.last)


CASES = {
    plain: "Product",
    hidden: "ProductInLevels",
    rectified: "ProductInLevels",
    residual: "Product",
    flattened: "Product",
    broadcast: "Product",
    broadcast_levels: "ProductInLevels",
    rows: "Product",
    shared_rows: "ProductOfLevels",
    turned: "Product",
    beside_itself: "Product",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("layer", "kind"), CASES.items(), ids=lambda case: getattr(case, "__name__", case))
def test_operator_gives_what_the_nodes_give(
    tmp_path: Path, products: Operators, layer: Callable[[], Layer], kind: str, threads: int
) -> None:
    one = layer()
    path = one.save(tmp_path)
    (found, operators_of), (expected, none) = (open_session(path, threads, given) for given in (products, None))
    assert operators_of[kind] == 1 and not none
    ours, theirs = (session.run(None, one.inputs)[0] for session in (found, expected))
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    if ours.dtype == np.uint8:
        assert np.abs(ours.astype(int) - theirs).max() <= 1  # a half falls to either side
        assert len(np.unique(theirs)) > 20
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_weights_that_are_no_constants_stay_with_the_runtime(tmp_path: Path, products: Operators) -> None:
    layer = plain()
    path = layer.save(tmp_path)
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("weights", TensorProto.INT8, [70, 50]))
    kept = [tensor for tensor in model.graph.initializer if tensor.name != "weights"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    onnx.save(model, path)
    assert not open_session(path, 1, products)[1]


def test_rows_of_another_width_are_refused(tmp_path: Path, products: Operators) -> None:
    layer = plain()
    session, _ = open_session(layer.save(tmp_path), 1, products)
    with pytest.raises(Exception, match="rows do not have the weights' features"):
        session.run(None, {"x": layer.normal(2, 1, 71)})


def cell(*, read_twice: bool) -> onnx.ModelProto:
    """(1 - f) candidate + f previous with f = sigmoid(forget), and x + max(that, 0), as importers write it."""
    nodes = [
        helper.make_node("Sigmoid", ["forget"], ["kept"]),
        helper.make_node("Sub", ["one", "kept"], ["open"]),
        helper.make_node("Mul", ["open", "candidate"], ["taken"]),
        helper.make_node("Mul", ["kept", "previous"], ["remembered"]),
        helper.make_node("Add", ["taken", "remembered"], ["cell"]),
        helper.make_node("Relu", ["cell"], ["rectified"]),
        helper.make_node("Add", ["x", "rectified"], ["out"]),
    ]
    outputs = ["cell", "out"]
    if read_twice:
        nodes.insert(6, helper.make_node("Neg", ["cell"], ["negative"]))
        outputs.append("negative")
    names = ("forget", "candidate", "previous", "x")
    inputs, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in group]
        for group in (names, outputs)
    )
    one = [numpy_helper.from_array(np.array(1, np.float32), "one")]
    graph = helper.make_graph(nodes, "cell", inputs, made, one)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_cell_gives_what_the_nodes_give(tmp_path: Path, operators: Operators) -> None:
    onnx.save(cell(read_twice=False), tmp_path / "cell.onnx")
    (ours, found), (theirs, _) = (open_session(tmp_path / "cell.onnx", 1, given) for given in (operators, None))
    assert found == {"Cell": 1}
    rng = np.random.default_rng(0)
    shape = 3, 21
    inputs = {name: rng.normal(size=shape).astype(np.float32) * 3 for name in ("forget", "candidate", "previous", "x")}
    for mine, other in zip(ours.run(None, inputs), theirs.run(None, inputs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
    with pytest.raises(Exception, match="Cell: what it reads differs in shape"):
        ours.run(None, {**inputs, "x": inputs["x"][:2]})


def test_a_cell_that_somebody_else_reads_stays(tmp_path: Path, operators: Operators) -> None:
    onnx.save(cell(read_twice=True), tmp_path / "cell.onnx")
    assert not open_session(tmp_path / "cell.onnx", 1, operators)[1]


def searched(layer: Layer, sentences: int, count: int) -> Layer:
    """A product of rows, and the best of it: a row is forced, tokens are banned, and scores differ."""
    rng = np.random.default_rng(layer.columns)
    rows = len(layer.inputs["x"])
    banned = rng.integers(0, layer.columns + 1, (rows, 3))
    forced = np.full(rows, -1)
    forced[1] = layer.columns // 2
    memory = np.zeros((sentences, 4), np.float32)
    layer.inputs |= {"score": layer.normal(rows), "banned": banned, "forced": forced, "count": np.array(count)}
    layer.inputs["memory"] = memory
    return layer.then("BestContinuations", *list(layer.inputs)[1:], domain="tandem")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [3, 512, 1300])
@pytest.mark.parametrize(
    ("product", "kind"),
    [
        (lambda one: one.quantised("x", 0.03, 120).multiplied(0.03, 120), "BestOfProduct"),
        (lambda one: one.multiplied(0.03, 120), "BestOfProductOfLevels"),
        (Layer.by_row, "BestOfProduct"),
    ],
    ids=["numbers", "bytes", "rows"],
)
def test_best_of_a_product_are_the_best_of_its_logits(
    tmp_path: Path,
    products: Operators,
    monkeypatch: pytest.MonkeyPatch,
    product: Callable[[Layer], Layer],
    kind: str,
    columns: int,
    threads: int,
) -> None:
    layer = Layer(70, columns, biased=product is not Layer.by_row)
    layer.inputs["x"] = layer.normal(12, 70)
    if kind == "BestOfProductOfLevels":
        layer.inputs["x"] = np.random.default_rng(1).integers(0, 256, (12, 70)).astype(np.uint8)
    path = searched(product(layer), 3, min(8, 4 * columns)).save(tmp_path)
    (fused, found) = open_session(path, threads, products)
    monkeypatch.setattr(fusing, "best_of_product", no_match)
    (apart, parts) = open_session(path, threads, products)
    assert found[kind] == 1 and parts["BestContinuations"] == 1
    for ours, theirs in zip(*(session.run(None, layer.inputs) for session in (fused, apart)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert len(np.unique(theirs)) > 1


def no_match(graph: Graph, node: onnx.NodeProto) -> None:
    raise NoMatch
