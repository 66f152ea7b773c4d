"""A text and a feature matrix as the sources of one model, through ONNX and TorchScript."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tandem.models.search import Graphs, SearchOptions, check_specs, translate_batch
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs, graph_modules
from tandem.training.export.external import pack
from tandem.training.export.onnx_graphs import export_graphs
from tandem.training.export.torchscript import trace_graphs
from tests.models.architectures.examples import Case, sentences
from tests.models.search.tables import assert_same_hypotheses
from tests.training.export.support import SIZES, OnnxGraphs, ScriptGraphs, arrays, assert_close, possible, reference


@pytest.fixture(scope="module")
def model() -> AnyModel:
    """A sentinel, a second GRU, a state that depends on the sources: every kind of input that the graphs can have."""
    model = Case("multisource", "hierarchical-all").build(torch.float32)
    model.prepare_for_inference()
    return model


@pytest.fixture(scope="module", params=[pytest.param("onnx", marks=pytest.mark.slow), "torchscript"])
def graphs(request: pytest.FixtureRequest, model: AnyModel, tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    if request.param == "torchscript":
        return ScriptGraphs(trace_graphs(model), {name: module.spec for name, module in graph_modules(model).items()})
    protos, specs = export_graphs(model)
    folder: Path = tmp_path_factory.mktemp("graphs")
    for name, content in pack(protos).items():
        (folder / name).write_bytes(content)
    return OnnxGraphs(folder, specs)


def test_each_source_has_its_own_axis_and_type(graphs: Graphs) -> None:
    assert check_specs(graphs.specs) == []
    inputs = {tensor.name: (tensor.dtype, tensor.axes) for tensor in graphs.specs["encode"].inputs}
    assert inputs["source0"] == ("int64", ("sentence", "source0"))
    assert inputs["source1"] == ("float32", ("sentence", "source1", "fixed:5"))
    keys = {tensor.name: tensor.axes[1] for tensor in graphs.specs["encode"].outputs if ".keys." in tensor.name}
    assert keys == {"memory.keys.0": "source0", "memory.keys.1": "source1"}


def test_graphs_give_what_pytorch_gives(graphs: Graphs, model: AnyModel) -> None:
    for graph, module in graph_modules(model).items():
        for seed, sizes in enumerate(SIZES):
            inputs = arrays(module, sizes, seed=seed)
            assert_close(possible(graphs.run(graph, inputs)), possible(reference(module, inputs)), 1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_search_finds_the_same_hypotheses(graphs: Graphs, model: AnyModel, beam_size: int) -> None:
    """With the coverage penalty, which asks the align graph about both sources."""
    made = [tuple(source.numpy() for source in one) for one in sentences(model, (1, 9, 3, 5))]
    options = SearchOptions(beam_size=beam_size, n_best=min(2, beam_size), max_length=9, coverage_penalty=0.2)
    found, expected = (translate_batch(runtime, made, options) for runtime in (graphs, TorchGraphs(model)))
    assert_same_hypotheses(found, expected)
