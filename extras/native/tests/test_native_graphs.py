"""Graphs with our own operators in them against the same graphs as they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tandem.extras.native.fusing import fuse
from tandem.extras.native.library import operators_of
from tandem.extras.native.tests.compiled import build_operators
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.bundle import Bundle
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.search.graphs import GraphSpecs
from tandem.models.steps.torch_graphs import GRAPH_NAMES, TorchGraphs, graph_modules
from tandem.models.vocabulary import EOS
from tandem.service.runtimes.sessions import Operators, open_session
from tandem.training.export import onnx_graphs
from tandem.training.export.bundle import built_graphs
from tests.models.search.tables import assert_same_hypotheses
from tests.shipped import SHIPPED
from tests.training.export.conftest import Exported
from tests.training.export.support import SIZES, OnnxGraphs, arrays, assert_close, possible, reference

PRODUCTS = ("Product", "ProductInLevels", "ProductOfLevels", "ProductOfLevelsInLevels", "BestOfProduct")


@pytest.fixture(scope="session")
def operators() -> Operators:
    return operators_of(build_operators())


def native_graphs(folder: Path, specs: GraphSpecs, operators: Operators) -> OnnxGraphs:
    return OnnxGraphs(folder, specs, opener=lambda path: open_session(path, 1, operators)[0])


def native(one: Exported, operators: Operators) -> OnnxGraphs:
    return native_graphs(one.bundle.path / "onnx/float32", one.bundle.graph_specs("float32"), operators)


def fused(folder: Path, graph: str, *, products: bool = False) -> Counter[str]:
    return fuse(onnx.load(folder / f"{graph}.onnx", load_external_data=False), folder, products=products)


@pytest.mark.parametrize("graph", GRAPH_NAMES)
def test_graph_gives_what_pytorch_gives(exported: Exported, operators: Operators, graph: str) -> None:
    module, graphs = exported.modules[graph], native(exported, operators)
    for seed, sizes in enumerate(SIZES):
        inputs = arrays(module, sizes, seed=seed)
        assert_close(possible(graphs.run(graph, inputs)), possible(reference(module, inputs)), 1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_search_finds_the_same_hypotheses(exported: Exported, operators: Operators, beam_size: int) -> None:
    rng = np.random.default_rng(2)
    size = exported.model.config.source_vocabularies[0]
    sources = [(np.array([*rng.integers(4, size, length), EOS]),) for length in (1, 9, 3, 5, 8)]
    options = SearchOptions(beam_size=beam_size, n_best=min(2, beam_size), max_length=9, no_repeat_ngram_size=2)
    found, expected = (
        translate_batch(graphs, sources, options)
        for graphs in (native(exported, operators), TorchGraphs(exported.model))
    )
    assert_same_hypotheses(found, expected)


def test_step_bans_and_forces(one: Exported, operators: Operators) -> None:
    size = one.model.config.target_vocabulary
    inputs = arrays(one.modules["step"], SIZES[1], count=4)
    inputs["banned"] = np.array([[token for token in range(size) if token != 5]] * 10)
    inputs["forced"] = np.array([-1] * 5 + [7] * 5)
    found = native(one, operators).run("step", inputs)
    assert found["tokens"][0].tolist() == [5] * 4
    assert found["tokens"][1].tolist() == [7] * 4
    assert sorted(found["parents"][0].tolist()) != [0] * 4  # one candidate a row


def test_not_a_number_shows_in_the_log_sum_exp(one: Exported, operators: Operators) -> None:
    inputs = arrays(one.modules["step"], SIZES[1], count=10)
    path = next(name for name in inputs if name.startswith("memory.paths"))
    inputs[path] = inputs[path].copy()
    inputs[path][1] = np.nan
    finite = np.isfinite(native(one, operators).run("step", inputs)["logsumexp"])
    assert finite.tolist() == [True] * 5 + [False] * 5


def test_what_is_found_in_the_graphs_of_dpn(one: Exported) -> None:
    found = fused(one.bundle.path / "onnx/int8", "step")
    assert found.keys() >= {"SourceAttention", "PackedHistoryAttention", "BestContinuations"}
    assert "BestContinuations" not in fused(one.bundle.path / "onnx/int8", "step_shortlist")


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 8-bit graphs of a small Transformer, without the one that aligns."""
    sizes = {"source_vocabularies": [40], "target_vocabulary": 40, "width": 16, "hidden": 24, "heads": 2}
    config = load_config("transformer", {**sizes, "encoder_layers": 1, "decoder_layers": 2}, "test")
    torch.manual_seed(0)
    model = build_model("transformer", config)
    model.prepare_for_inference()
    sources = [(np.array([5, 6, 7, EOS]),), (np.array([9, 30, EOS]),)]
    folder = tmp_path_factory.mktemp("transformer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            onnx_graphs, "graph_modules", lambda own: {k: v for k, v in graph_modules(own).items() if k != "align"}
        )
        files = built_graphs(model, ["int8"], sources, 8, lambda line: None)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        assert isinstance(content, bytes)
        (folder / name).write_bytes(content)
    return folder / "onnx" / "int8"


def test_what_is_found_in_the_graphs_of_a_transformer(transformer: Path) -> None:
    layers = {"SourceAttention": 2, "PackedHistoryAttention": 2, "QuantiseNormed": 6}
    assert fused(transformer, "step") == {**layers, "BestContinuations": 1}
    # Of a layer: queries, keys and values; out; queries; out; hidden; out. And the vocabulary.
    products = {"ProductOfLevels": 3 * 2, "Product": 2 * 2, "ProductOfLevelsInLevels": 2, "BestOfProduct": 1}
    assert fused(transformer, "step", products=True) == {**layers, **products}


def test_what_is_found_in_the_graphs_of_a_shortlist(transformer: Path) -> None:
    assert fused(transformer, "entries", products=True) == {"PackListed": 1}
    found = fused(transformer, "step_shortlist", products=True)
    assert found["ListedProduct"] == found["BestListed"] == 1
    # Of a layer queries, keys and values; and what tokens that are not listed count with.
    assert found["ProductOfLevels"] == 3 * 2 + 1


def test_what_is_found_in_the_shipped_graphs() -> None:
    bundle = Bundle.load(SHIPPED)
    found = {graph: fused(bundle.graph_path("int8", graph).parent, graph) for graph in ("encode", "step")}
    layers = bundle.manifest.config["decoder_widths"]
    assert found["step"]["SourceAttention"] == found["step"]["Gate"] == len(layers)
    assert found["step"]["BestContinuations"] == 1
    assert found["step"]["QuantiseRows"] and found["encode"]["Gate"]


@pytest.mark.parametrize("graph", ["encode", "step", "step_shortlist"])
def test_products_take_in_what_stands_around_them_in_the_shipped_graphs(graph: str) -> None:
    folder = Bundle.load(SHIPPED).graph_path("int8", graph).parent
    model = onnx.load(folder / f"{graph}.onnx", load_external_data=False)
    before = Counter(node.op_type for node in model.graph.node)
    fuse(model, folder, products=True)
    after = Counter(node.op_type for node in model.graph.node)
    # These graphs look a shortlist's entries up at every step: that product stays as it is.
    left = after["MatMulIntegerToFloat"]
    assert left == (graph == "step_shortlist")
    assert sum(after[kind] for kind in PRODUCTS) == before["MatMulIntegerToFloat"] - left
    assert after["QuantizeLinear"] + after["QuantiseRows"] == left


def test_a_sentence_has_the_same_bits_in_any_batch(operators: Operators) -> None:
    bundle = Bundle.load(SHIPPED)
    searched = {name: bundle.graph_specs("int8")[name] for name in ("encode", "step")}
    graphs = native_graphs(bundle.graph_path("int8", "step").parent, searched, operators)
    rng = np.random.default_rng(0)
    sources = [(np.array([*rng.integers(300, 8000, length), EOS]),) for length in (2, 30, 7, 15, 15, 4, 22, 11)]
    options = SearchOptions(beam_size=4, max_length=20)
    together = translate_batch(graphs, sources, options)
    alone = [translate_batch(graphs, [source], options)[0] for source in sources]
    assert [(one.tokens, one.score) for nbest in together for one in nbest] == [
        (one.tokens, one.score) for nbest in alone for one in nbest
    ]
