"""Products with the rows that a shortlist names, which one graph packs and another reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tandem.extras.native.library import operators_of, products_of
from tandem.extras.native.tests.compiled import build_operators
from tandem.service.runtimes.sessions import Operators, open_session

ROWS, FEATURES, TYPES = 13, 70, 300
_VERSIONS = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def products() -> Operators:
    operators = operators_of(build_operators())
    if products_of(operators.library) is None:
        pytest.skip("this processor has no products of bytes that add in 32 bits")
    return operators


def _saved(path: Path, nodes: list[onnx.NodeProto], inputs: Arrays, outputs: Arrays, constants: Arrays) -> Path:
    given, made = (
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
            for name, value in group.items()
        ]
        for group in (inputs, outputs)
    )
    kept = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, path.stem, given, made, kept)
    onnx.save(helper.make_model(graph, opset_imports=_VERSIONS, ir_version=9), path)
    return path


def entries_graph(folder: Path, weight_VK: NDArray[np.int8]) -> Path:
    nodes = [
        helper.make_node("Gather", ["weight", "entries"], ["rows"], axis=0),
        helper.make_node("Transpose", ["rows"], ["turned"], perm=[1, 0]),
    ]
    given, made = {"entries": np.zeros(1, np.int64)}, {"turned": weight_VK}
    return _saved(folder / "entries.onnx", nodes, given, made, {"weight": weight_VK})


def step_graph(folder: Path, inputs: Arrays, *, by_row: bool, biased: bool) -> Path:
    """A product with looked-up rows: of rows in bytes by one scale, or over their largest magnitude."""
    constants: Arrays = {"scale": np.array(1 / 127 if by_row else 0.03, np.float32)}
    constants["zero"] = np.array(128 if by_row else 117, np.uint8)
    product = ["levels", "turned", "scale", "scales", "zero"]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["levels"])]
    inside = biased and not by_row
    made = ["logits" if inside or not (biased or by_row) else "sums"]
    last = helper.make_node(
        "MatMulIntegerToFloat", [*product, *(["", "bias"] if inside else [])], made, domain="com.microsoft"
    )
    if by_row:
        constants |= {"axes": np.array([-1]), "least": np.array(1e-30, np.float32)}
        nodes = [
            helper.make_node("Abs", ["x"], ["magnitudes"]),
            helper.make_node("ReduceMax", ["magnitudes", "axes"], ["most"], keepdims=1),
            helper.make_node("Max", ["most", "least"], ["largest"]),
            helper.make_node("Div", ["x", "largest"], ["units"]),
            helper.make_node("QuantizeLinear", ["units", "scale", "zero"], ["levels"]),
            last,
            helper.make_node("Mul", ["sums", "largest"], ["scaled" if biased else "logits"]),
            *([helper.make_node("Add", ["scaled", "bias"], ["logits"])] if biased else []),
        ]
    else:
        nodes.append(last)
    given = {name: value for name, value in inputs.items() if biased or name != "bias"}
    return _saved(folder / "step.onnx", nodes, given, {"logits": np.zeros((1, 1), np.float32)}, constants)


@pytest.mark.parametrize("columns", [1, 64, 150])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("by_row", [True, False])
def test_what_one_graph_packs_the_other_multiplies(
    tmp_path: Path, products: Operators, by_row: bool, biased: bool, columns: int
) -> None:
    rng = np.random.default_rng(columns)
    weight_VK = rng.integers(-128, 128, (TYPES, FEATURES)).astype(np.int8)
    entries_W = np.sort(rng.choice(TYPES, columns, replace=False))
    x, scales, bias = (rng.normal(size=shape).astype(np.float32) for shape in ((ROWS, FEATURES), columns, columns))
    inputs: Arrays = {"x": x, "scales": np.abs(scales) / 100, "bias": bias, "turned": weight_VK}
    paths = entries_graph(tmp_path, weight_VK), step_graph(tmp_path, inputs, by_row=by_row, biased=biased)
    results = []
    for operators in (products, None):
        (entries, packed), (step, multiplied) = (open_session(path, 1, operators) for path in paths)
        if operators:
            assert packed == {"PackListed": 1} and multiplied["ListedProduct"] == 1
        inputs["turned"] = entries.run(None, {"entries": entries_W})[0]
        results.append(step.run(None, {given.name: inputs[given.name] for given in step.get_inputs()})[0])
    ours, theirs = results
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert ours.shape == (ROWS, columns)


def test_entries_that_are_not_there_are_refused(tmp_path: Path, products: Operators) -> None:
    session, _ = open_session(entries_graph(tmp_path, np.ones((TYPES, FEATURES), np.int8)), 1, products)
    with pytest.raises(Exception, match="PackListed: there is no such entry"):
        session.run(None, {"entries": np.array([3, TYPES])})


def test_packed_rows_of_another_list_are_refused(tmp_path: Path, products: Operators) -> None:
    weight_VK = np.ones((TYPES, FEATURES), np.int8)
    inputs: Arrays = {"x": np.ones((2, FEATURES), np.float32), "scales": np.ones(70, np.float32), "turned": weight_VK}
    entries, _ = open_session(entries_graph(tmp_path, weight_VK), 1, products)
    step, _ = open_session(step_graph(tmp_path, inputs, by_row=False, biased=False), 1, products)
    inputs["turned"] = entries.run(None, {"entries": np.arange(3)})[0]
    with pytest.raises(Exception, match="ListedProduct: rows, packed weights and scales do not fit together"):
        step.run(None, inputs)


def test_rows_that_are_read_where_they_are_looked_up_stay(tmp_path: Path, products: Operators) -> None:
    """An older bundle's graph looks them up and multiplies with them itself."""
    weight_VK = np.ones((TYPES, FEATURES), np.int8)
    path = entries_graph(tmp_path, weight_VK)
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("Cast", ["turned"], ["numbers"], to=TensorProto.FLOAT))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("numbers", TensorProto.FLOAT, [None, None]))
    onnx.save(model, path)
    assert not open_session(path, 1, products)[1]
