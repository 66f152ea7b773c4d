"""Exported graphs against the modules they were made of, at other sizes than those traced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tandem.models.search import Graphs, SearchOptions, translate_batch
from tandem.models.steps.torch_graphs import GRAPH_NAMES, TorchGraphs, graph_modules
from tandem.models.vocabulary import EOS
from tandem.training.export.external import pack
from tandem.training.export.onnx_graphs import export_graphs, output_names
from tandem.training.export.torchscript import trace_graphs
from tests.models.architectures.examples import Case
from tests.models.search.tables import assert_same_hypotheses
from tests.training.export.conftest import Exported
from tests.training.export.support import SIZES, OnnxGraphs, ScriptGraphs, arrays, assert_close, possible, reference

Opener = Callable[[Exported], Graphs]
RUNTIMES: dict[str, Opener] = {"onnx": lambda one: one.onnx("float32"), "torchscript": lambda one: one.script}
runtimes = pytest.mark.parametrize("opener", RUNTIMES.values(), ids=list(RUNTIMES))


@runtimes
@pytest.mark.parametrize("graph", GRAPH_NAMES)
def test_graph_gives_what_pytorch_gives(exported: Exported, opener: Opener, graph: str) -> None:
    module, graphs = exported.modules[graph], opener(exported)
    for seed, sizes in enumerate(SIZES):
        inputs = arrays(module, sizes, seed=seed)
        assert_close(possible(graphs.run(graph, inputs)), possible(reference(module, inputs)), 1e-4)


@runtimes
@pytest.mark.parametrize("beam_size", [1, 4])
def test_search_finds_the_same_hypotheses(exported: Exported, opener: Opener, beam_size: int) -> None:
    rng = np.random.default_rng(2)
    size = exported.model.config.source_vocabularies[0]
    sources = [(np.array([*rng.integers(4, size, length), EOS]),) for length in (1, 9, 3, 5, 8)]
    options = SearchOptions(beam_size=beam_size, n_best=min(2, beam_size), max_length=9, no_repeat_ngram_size=2)
    found, expected = (
        translate_batch(graphs, sources, options) for graphs in (opener(exported), TorchGraphs(exported.model))
    )
    assert_same_hypotheses(found, expected)


@runtimes
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_number_of_candidates_is_free(one: Exported, opener: Opener, count: int) -> None:
    inputs = arrays(one.modules["step"], SIZES[1], count=count)
    found = opener(one).run("step", inputs)
    assert found["scores"].shape == found["tokens"].shape == found["parents"].shape == (2, count)
    assert_close(found, reference(one.modules["step"], inputs), 1e-4)


def test_step_bans_and_forces(one: Exported) -> None:
    size = one.model.config.target_vocabulary
    inputs = arrays(one.modules["step"], SIZES[1], count=4)
    inputs["banned"] = np.array([[token for token in range(size) if token != 5]] * 10)
    inputs["forced"] = np.array([-1] * 5 + [7] * 5)
    found = one.onnx("float32").run("step", inputs)
    assert found["tokens"][0].tolist() == [5] * 4
    assert found["tokens"][1].tolist() == [7] * 4
    assert sorted(found["parents"][0].tolist()) != [0] * 4  # one candidate a row


@pytest.mark.parametrize("graph", ["step", "step_shortlist"])
def test_not_a_number_shows_in_the_log_sum_exp(one: Exported, graph: str) -> None:
    inputs = arrays(one.modules[graph], SIZES[1], count=10)
    path = next(name for name in inputs if name.startswith("memory.paths"))
    inputs[path] = inputs[path].copy()
    inputs[path][1] = np.nan
    finite = np.isfinite(one.onnx("float32").run(graph, inputs)["logsumexp"])
    assert finite.tolist() == [True] * 5 + [False] * 5


def test_files_say_nothing_of_their_making(exported: Exported) -> None:
    for precision in ("float32", "int8"):
        for graph, module in exported.modules.items():
            path = exported.bundle.graph_path(precision, graph)
            onnx.checker.check_model(str(path), full_check=True)
            model = onnx.load(path, load_external_data=False)
            looked_up = []
            if graph == "step_shortlist" and (path.parent / "entries.onnx").is_file():
                looked_up = [value.name for value in onnx.load(path.parent / "entries.onnx").graph.output]
            names = [tensor.name for tensor in module.spec.inputs]
            assert [value.name for value in model.graph.input] == [*names, *looked_up]
            assert [value.name for value in model.graph.output] == output_names(module.spec)
            axes = [dim.dim_param or f"fixed:{dim.dim_value}" for dim in _dims(model.graph.input[0])]
            assert axes == list(module.spec.inputs[0].axes)
            assert b"site-packages" not in path.read_bytes()
            assert not any(node.doc_string or node.metadata_props for node in model.graph.node)


def test_exporting_leaves_the_model_as_it_was(one: Exported) -> None:
    assert one.trained.training
    assert any(name.endswith(".gain") for name, _ in one.trained.named_parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        *(Case("dpn", variant) for variant in ("cnn-cnn", "san-san", "projections")),
        Case("memd", "3-encoders-3-decoders"),
        *(Case("multisource", variant) for variant in ("concatenation", "flat-all", "reset-before-cgru")),
        *(Case("layerwise", variant) for variant in ("no-mixed-attention", "no-weight-sharing")),
        Case("convs2s", "kernel-1"),
        Case("ensemble", "two-sources"),
    ],
    ids=str,
)
def test_every_kind_of_state_exports(case: Case, tmp_path: Path) -> None:
    """Of several sources, of layers that attend and others, and no state at all: to ONNX and to TorchScript."""
    model = case.build(torch.float32)
    model.prepare_for_inference()
    graphs, specs = export_graphs(model)
    for name, content in pack(graphs).items():
        (tmp_path / name).write_bytes(content)
    runtimes = OnnxGraphs(tmp_path, specs), ScriptGraphs(trace_graphs(model), specs)
    for graph, module in graph_modules(model).items():
        for seed, sizes in enumerate(SIZES):
            inputs = arrays(module, sizes, seed=seed)
            expected = reference(module, inputs)
            for found in runtimes:
                assert_close(possible(found.run(graph, inputs)), possible(expected), 1e-4)


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)
