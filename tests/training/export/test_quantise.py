"""Eight-bit graphs: right enough, and the same for a row whatever its batch-mates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tandem.models.search import SearchOptions, translate_batch
from tandem.models.search.graphs import Array, GraphSpec
from tandem.training.export.calibration import _range, apply_form, choose_form
from tandem.training.export.editing import CONTRIB
from tandem.training.export.external import INLINE_BYTES
from tandem.training.export.quantise import Quantisation, quantise, quantise_weight, weight_key
from tests.training.export.conftest import Exported
from tests.training.export.support import OnnxGraphs, arrays, reference, session

SENTENCES, BEAM = 5, 3
SIZES = {"sentence": SENTENCES, "row": SENTENCES * BEAM, "old_row": SENTENCES * BEAM, "source0": 9, "slot": 16}
SIZES |= {"ban": 2, "target": 6}


def _alone(inputs: dict[str, Array], spec: GraphSpec, sentence: int) -> dict[str, Array]:
    """One sentence's share of a batch."""
    taken: dict[str, Array] = {}
    for tensor in spec.inputs:
        array = inputs[tensor.name]
        if tensor.axes[:1] == ("sentence",):
            array = array[sentence : sentence + 1]
        elif tensor.axes[:1] in (("row",), ("old_row",)):
            array = array[sentence * BEAM : (sentence + 1) * BEAM]
        taken[tensor.name] = array
    if "parent" in taken:
        taken["parent"] = inputs["parent"][sentence * BEAM : (sentence + 1) * BEAM] - sentence * BEAM
    return taken


@pytest.mark.parametrize("graph", ["encode", "step", "step_logits", "align"])
def test_a_row_is_bit_equal_alone_and_in_a_batch(exported: Exported, graph: str) -> None:
    module, graphs = exported.modules[graph], exported.onnx("int8")
    inputs = arrays(module, SIZES)
    if "parent" in inputs:
        inputs["parent"] = np.arange(SENTENCES * BEAM).reshape(-1, BEAM)[:, ::-1].reshape(-1)
    if graph == "encode":
        inputs["source0.length"] = np.array([9, 3, 1, 8, 5])
    together = graphs.run(graph, inputs)
    for sentence in range(SENTENCES):
        alone = graphs.run(graph, _alone(inputs, module.spec, sentence))
        for tensor in module.spec.outputs:
            rows = BEAM if tensor.axes[0] == "row" else 1
            own = together[tensor.name][sentence * rows : (sentence + 1) * rows]
            np.testing.assert_array_equal(alone[tensor.name], own, err_msg=tensor.name)


def test_eight_bits_stay_near_float32(exported: Exported) -> None:
    """Random weights are no easier to quantise than trained ones, so the bound is generous."""
    module = exported.modules["encode"]
    inputs = arrays(module, SIZES)
    graphs = OnnxGraphs(exported.bundle.path / "onnx" / "int8", {"encode": module.spec}, exact=True)
    exact, found = reference(module, inputs), graphs.run("encode", inputs)
    for tensor in module.spec.outputs:
        size, error = np.abs(exact[tensor.name]).max(), np.abs(exact[tensor.name] - found[tensor.name])
        # What calibration has not seen is cut off: some of these made-up inputs are.
        assert np.isinf(size) or float(np.nanmean(error)) <= 0.05 * size, tensor.name


def test_scores_stay_near_those_of_float32(exported: Exported) -> None:
    rng = np.random.default_rng(4)
    size = exported.model.config.source_vocabularies[0]
    sources = [(np.array([*rng.integers(4, size, length), 3]),) for length in rng.integers(1, 9, 20)]
    options = SearchOptions(beam_size=3, max_length=8)
    results = [translate_batch(exported.onnx(precision), sources, options) for precision in ("float32", "int8")]
    # Of a token: where two hypotheses of different length are nearly as good, either may win.
    exact, found = ([group[0].normalised for group in side] for side in results)
    assert np.mean(np.abs(np.subtract(exact, found))) < 0.1 * np.mean(np.abs(exact))


def test_every_product_with_a_constant_is_in_integers(exported: Exported, tmp_path: Path) -> None:
    for graph in exported.modules:
        path, seen = exported.bundle.graph_path("int8", graph), tmp_path / f"{graph}.onnx"
        session(path, seen)
        model = onnx.load(seen, load_external_data=False)
        constants = {tensor.name for tensor in model.graph.initializer}
        kinds = [node.op_type for node in model.graph.node]
        assert kinds.count("MatMulIntegerToFloat") > 0
        assert not kinds.count("Transpose") or all(
            node.input[0] not in constants for node in model.graph.node if node.op_type == "Transpose"
        )
        for node in model.graph.node:
            if node.op_type in ("MatMul", "Gemm", "FusedMatMul"):
                assert not constants.intersection(node.input[:2]), f"{graph}: {node.input}"


def test_graphs_share_one_file_without_repetition(exported: Exported) -> None:
    for precision in ("float32", "int8"):
        places: dict[tuple[int, int], bytes] = {}
        folder = exported.bundle.path / "onnx" / precision
        weights = (folder / "weights.bin").read_bytes()
        for graph in exported.modules:
            model = onnx.load(folder / f"{graph}.onnx", load_external_data=False)
            for tensor in model.graph.initializer:
                where = {entry.key: entry.value for entry in tensor.external_data}
                if not where:
                    assert len(tensor.raw_data) < INLINE_BYTES
                    continue
                assert where["location"] == "weights.bin"
                offset, length = int(where["offset"]), int(where["length"])
                assert offset % 64 == 0
                assert offset + length <= len(weights)
                places[offset, length] = weights[offset : offset + length]
        assert len(set(places.values())) == len(places)


def test_eight_bit_tables_are_shared_with_the_output_layer(one: Exported) -> None:
    width = one.model.config.target_vocabulary * int(one.recipe.model["width"])
    model = onnx.load(one.bundle.graph_path("int8", "step"), load_external_data=False)
    sizes = [int(np.prod(t.dims)) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8]
    assert sizes.count(width) == 1


def test_products_without_a_form_stay_and_are_named(one: Exported) -> None:
    model = onnx.load(one.bundle.graph_path("float32", "encode"))
    products = [node for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]
    weight = next(t for t in model.graph.initializer if t.name == products[0].input[1])
    key = weight_key(onnx.numpy_helper.to_array(weight))
    left = quantise(model, {key: Quantisation("static", 0.1, 128, 0.0)})
    assert products[0].output[0] not in left
    assert [node.domain for node in model.graph.node].count(CONTRIB) == 1
    assert len(left) > 1


def test_form_covers_skewed_rows_and_keeps_zero() -> None:
    rng = np.random.default_rng(0)
    rows, weight = np.maximum(rng.normal(size=(300, 32)), 0).astype(np.float32), rng.normal(size=(8, 32))
    form = choose_form(rows, weight.astype(np.float32))
    assert (form.kind, form.zero_point) == ("static", 0)
    assert form.error < 0.02
    assert not apply_form(form, np.zeros((1, 32), np.float32)).any()


def test_rows_of_very_different_size_are_scaled_by_their_maximum() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 32)) * np.exp(rng.normal(size=(300, 1)) * 2)
    form = choose_form(rows.astype(np.float32), rng.normal(size=(8, 32)).astype(np.float32))
    assert form.kind == "row_max"
    assert form.error < 0.02


def test_weights_are_symmetric_with_a_scale_per_output() -> None:
    weight = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [-0.1, 0.05, 0.0]], np.float32)
    stored, scale = quantise_weight(weight)
    assert stored.tolist()[:2] == [[64, -127, 32], [0, 0, 0]]
    assert np.abs(stored * scale[:, None] - weight).max() <= scale.max() / 2


def test_a_bias_behind_rows_of_their_own_scale_is_added_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weight, bias = rng.normal(size=(8, 6)).astype(np.float32), np.full(6, 5.0, np.float32)
    rows = (rng.normal(size=(4, 8)) * np.array([[0.01], [1], [10], [100]])).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "product",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 8])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 6])],
        [onnx.numpy_helper.from_array(weight, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    form = Quantisation("row_max", 1 / 127, 128, 0.0)
    assert quantise(model, {weight_key(weight): form}) == []
    onnx.save(model, tmp_path / "product.onnx")
    (found,) = session(tmp_path / "product.onnx", exact=True).run(None, {"x": rows})
    exact = rows @ weight
    error = np.abs(found - bias - exact).max(axis=1)
    assert (error < 0.05 * np.abs(exact).max(axis=1) + 1e-3).all()


@pytest.mark.parametrize(("low", "high"), [(2.0, 5.0), (-5.0, -2.0), (-1.0, 3.0)])
def test_a_range_holds_zero_though_no_row_has_it(low: float, high: float) -> None:
    rows = np.linspace(low, high, 64, dtype=np.float32).reshape(8, 8)
    scale, zero_point = _range(rows, 100.0)
    assert 0 <= zero_point <= 255
    assert scale == pytest.approx((max(high, 0.0) - min(low, 0.0)) / 255)
