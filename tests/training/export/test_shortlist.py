"""Graphs that read shortlists: made of those that return all logits, the same bytes in any batch, added on demand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tandem.models.bundle import Bundle, sha256
from tandem.models.errors import BundleError
from tandem.models.search import Array, DecodeBatch, Graphs, Hypothesis, SearchOptions, Sentence, specs_to_json
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.steps.numbers import SPREAD
from tandem.models.steps.torch_graphs import graph_modules
from tandem.models.vocabulary import EOS
from tandem.service.runtimes import onnx as runtime
from tandem.service.runtimes import open_graphs
from tandem.service.runtimes.onnx import OnnxGraphs as RuntimeGraphs
from tandem.service.runtimes.sessions import Operators, open_session
from tandem.training.export.bundle import add_shortlist
from tandem.training.export.shortlist import shortlist_graph, shortlist_spec
from tests.models.search.tables import run_out
from tests.training.export.conftest import Exported
from tests.training.export.support import HAS_VNNI, SIZES, OnnxGraphs, arrays
from tests.training.toy import written

precisions = pytest.mark.parametrize("precision", ["float32", "int8"])
# Without VNNI, ONNX Runtime's products of signed bytes overflow now and then, unlike ones for a list and for all.
same_sums = pytest.mark.skipif(not HAS_VNNI, reason="this processor's 8-bit products overflow")
comparable = pytest.mark.parametrize("precision", ["float32", pytest.param("int8", marks=same_sums)])


def some_lists(size: int, count: int, seed: int) -> list[Array]:
    """Lists of different length, EOS in each."""
    rng = np.random.default_rng(seed)
    return [np.union1d([EOS], rng.choice(size, rng.integers(3, size), replace=False)) for _ in range(count)]


def decode(
    graphs: Graphs, sentences: Sequence[tuple[Array, ...]], lists: Sequence[Array], beam_size: int
) -> list[tuple[Hypothesis, ...]]:
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, max_length=7, min_length=2, no_repeat_ngram_size=2)
    batch = DecodeBatch(graphs, beam_size=beam_size)
    batch.join([Sentence(n, one, options, lists[n]) for n, one in enumerate(sentences)])
    found = run_out(batch)
    return [found[n] for n in range(len(sentences))]


def some_inputs(exported: Exported, count: int = 10) -> dict[str, Array]:
    """Of a step over shortlists."""
    return arrays(exported.modules["step_shortlist"], SIZES[1], count=count)


@precisions
@pytest.mark.parametrize("beam_size", [1, 3])
def test_batch_mates_with_other_lists_change_no_bit(exported: Exported, precision: str, beam_size: int) -> None:
    """Equal hypotheses have equal scores to the last bit, and a score for each token."""
    graphs, config = exported.onnx(precision), exported.model.config
    rng = np.random.default_rng(2)
    sentences = [
        tuple(np.array([*rng.integers(4, size, length), EOS]) for size in config.source_vocabularies)
        for length in (5, 4, 5, 4, 5)
    ]
    lists = some_lists(config.target_vocabulary, len(sentences), seed=3)
    together = decode(graphs, sentences, lists, beam_size)
    for number, (one, own) in enumerate(zip(sentences, lists, strict=True)):
        assert decode(graphs, [one], [own], beam_size)[0] == together[number]
        assert {token for found in together[number] for token in found.tokens} <= set(own.tolist())


@precisions
def test_the_product_is_over_the_entries_alone(exported: Exported, precision: str) -> None:
    """Nothing as wide as the vocabulary is left, but where probabilities are averaged."""
    model = onnx.load(exported.bundle.graph_path(precision, "step_shortlist"), load_external_data=False)
    made = {name for node in model.graph.node for name in node.output}
    assert ("logits" in made) == (not type(exported.model).trainable)


@precisions
def test_what_entries_need_is_looked_up_by_a_graph_of_its_own(exported: Exported, precision: str) -> None:
    """All that is looked up of constants, and nothing else; an average of probabilities looks none up."""
    step, *others = (
        onnx.load(exported.bundle.graph_path(precision, name), load_external_data=False)
        for name in ("step_shortlist", *(["entries"] if type(exported.model).trainable else []))
    )
    stored = {tensor.name for tensor in step.graph.initializer}
    by_entries = [node for node in step.graph.node if "entries" in node.input[1:2] and "Gather" in node.op_type]
    assert not [node for node in by_entries if node.input[0] in stored]
    for looked_up in others:
        assert [value.name for value in looked_up.graph.input] == ["entries"]
        assert {node.op_type for node in looked_up.graph.node} <= {"Gather", "GatherElements", "Transpose"}
        assert [value.name for value in step.graph.input][-len(looked_up.graph.output) :] == [
            value.name for value in looked_up.graph.output
        ]


@precisions
def test_the_service_looks_up_what_entries_need_where_they_change(
    one: Exported, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And finds what the graphs find that are asked at every step, after they have rested too."""
    service, plain = RuntimeGraphs(one.bundle, precision, 1), one.onnx(precision)
    asked: list[Array] = []
    needed = runtime._ListedSession._needed_by

    def note(session: runtime._ListedSession, entries_W: Array) -> dict[str, Array]:
        before = len(session._held.__dict__.get("lists", []))
        found = needed(session, entries_W)
        if len(session._held.lists) > before:
            asked.append(entries_W)
        return found

    monkeypatch.setattr(runtime._ListedSession, "_needed_by", note)
    first, second = (some_inputs(one) for _ in range(2))
    second["entries"] = second["entries"][:-1].copy()
    second["listed"] = second["listed"][:, :-1]
    for inputs in (first, second, first, second):
        expected = plain.run("step_shortlist", inputs)
        for name, array in service.run("step_shortlist", inputs).items():
            np.testing.assert_array_equal(array, expected[name])
    assert [id(one) for one in asked] == [id(first["entries"]), id(second["entries"])]

    service.rest()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda inputs: service.run("step_shortlist", inputs), [first, second] * 8))
    for inputs, found in zip([first, second] * 8, results, strict=True):
        for name, array in plain.run("step_shortlist", inputs).items():
            np.testing.assert_array_equal(found[name], array)


def test_the_service_opens_at_once_what_it_searches_with(
    one: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graphs over the whole vocabulary take memory, and wait until they are asked for."""
    opened: list[str] = []

    def note(path: Path, threads: int, operators: Operators | None) -> Any:
        opened.append(path.stem)
        return open_session(path, threads, operators)

    monkeypatch.setattr(runtime, "open_session", note)
    RuntimeGraphs(one.bundle, "int8", 1)
    assert opened == ["encode", "step"]
    shutil.copytree(one.bundle.path, tmp_path / "listed", ignore=shutil.ignore_patterns("torchscript"))
    listed = add_shortlist(tmp_path / "listed", everything(one.bundle))
    opened.clear()
    graphs = RuntimeGraphs(listed, "int8", 1)
    assert opened == ["encode", "step_shortlist", "entries"]
    graphs.run("step", arrays(one.modules["step"], SIZES[1]))
    assert opened[3:] == ["step"]


def assert_scored_as_among_all(graphs: Graphs, inputs: dict[str, Array]) -> None:
    """The step over shortlists against the logits, two sentences of five rows that list every entry."""
    inputs["listed"][:], inputs["banned"][:] = 0, 1_000
    found = graphs.run("step_shortlist", inputs)
    plain = {spec.name: inputs[spec.name] for spec in graphs.specs["step_logits"].inputs}
    logits = graphs.run("step_logits", plain)["logits"].astype(np.float64)
    chosen = logits[:, inputs["entries"]]
    left = logits.shape[1] - len(inputs["entries"])
    rest = left * np.exp(logits.mean(1, keepdims=True) + SPREAD)
    expected = chosen - np.log(np.exp(chosen).sum(1, keepdims=True) + rest) + inputs["score"][:, None]
    for sentence in range(2):
        rows = sentence * 5 + found["parents"][sentence]
        columns = np.searchsorted(inputs["entries"], found["tokens"][sentence])
        np.testing.assert_allclose(found["scores"][sentence], expected[rows, columns], atol=1e-4, rtol=1e-4)
        assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == 45


@comparable
def test_entries_have_the_logits_that_they_have_among_all(exported: Exported, precision: str) -> None:
    assert_scored_as_among_all(exported.onnx(precision), some_inputs(exported, count=9 * 5))


@comparable
@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_logits_that_are_changed_token_by_token(one: Exported, precision: str, kind: str, tmp_path: Path) -> None:
    """Means add up, but the mean of products is not the product of means."""
    specs = {name: one.bundle.graph_specs(precision)[name] for name in ("step_logits", "step_shortlist")}
    logits = onnx.load(one.bundle.graph_path(precision, "step_logits"))
    (maker,) = (node for node in logits.graph.node if "logits" in node.output)
    maker.output[0] = "unchanged"
    numbers = np.random.default_rng(5).normal(size=one.model.config.target_vocabulary).astype(np.float32)
    logits.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "numbers"))
    logits.graph.node.append(onnx.helper.make_node(kind, ["unchanged", "numbers"], ["logits"]))
    onnx.save(logits, tmp_path / "step_logits.onnx")
    onnx.save(shortlist_graph(logits, specs["step_shortlist"]), tmp_path / "step_shortlist.onnx")
    assert_scored_as_among_all(OnnxGraphs(tmp_path, specs), some_inputs(one, count=9 * 5))


def test_declared_beside_the_step(exported: Exported) -> None:
    specs = {name: module.spec for name, module in graph_modules(exported.model).items()}
    assert shortlist_spec(specs["step"]) == specs["step_shortlist"]


def everything(bundle: Bundle) -> Shortlist:
    """A shortlist that leaves nothing out."""
    size = bundle.target_vocabulary.size
    tables = tuple(Table.of([[EOS]] * vocabulary.size, size) for vocabulary in bundle.source_vocabularies)
    return Shortlist(tables, np.arange(size), size)


def older(bundle: Bundle, out: Path) -> Path:
    """A copy of a bundle as one that was written before there were shortlists."""
    shutil.copytree(bundle.path, out, ignore=shutil.ignore_patterns("torchscript", "step_shortlist.onnx"))
    specs = {name: spec for name, spec in bundle.graph_specs("int8").items() if name != "step_shortlist"}
    (out / "onnx/graphs.json").write_text(specs_to_json(specs), encoding="utf-8")
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    del manifest["shortlist"]
    manifest["files"] = {name: digest for name, digest in manifest["files"].items() if "step_shortlist" not in name}
    manifest["files"]["onnx/graphs.json"] = sha256(out / "onnx/graphs.json")
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return out


@pytest.mark.slow
def test_an_older_bundle_gets_the_graphs(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones that an export writes, over the same stored weights, whatever an older version made."""
    path = older(exported.bundle, tmp_path / "older")
    assert Bundle.load(path).shortlist is None
    monkeypatch.setattr("tandem.training.export.searching.SPREAD", 5.0)
    bundle = add_shortlist(path, everything(Bundle.load(path)))
    assert bundle.shortlist is not None
    scores = [
        Exported(exported.recipe, exported.trained, one).onnx("float32").run("step_shortlist", some_inputs(exported))
        for one in (bundle, exported.bundle)
    ]
    assert (scores[0]["scores"] < scores[1]["scores"]).all()

    monkeypatch.undo()
    bundle = add_shortlist(path, everything(bundle))
    for precision in ("float32", "int8"):
        assert bundle.graph_specs(precision) == exported.bundle.graph_specs(precision)
        weights = [one.path / "onnx" / precision / "weights.bin" for one in (bundle, exported.bundle)]
        assert weights[0].stat().st_size == weights[1].stat().st_size
        inputs = some_inputs(exported)
        found = Exported(exported.recipe, exported.trained, bundle).onnx(precision).run("step_shortlist", inputs)
        for name, array in exported.onnx(precision).run("step_shortlist", inputs).items():
            np.testing.assert_array_equal(found[name], array)


def test_a_shortlist_of_other_vocabularies_is_refused(one: Exported, tmp_path: Path) -> None:
    shutil.copytree(one.bundle.path, tmp_path / "bundle")
    foreign = Shortlist((Table.of([[EOS]] * 3, 5),), np.array([EOS]), 5)
    with pytest.raises(BundleError, match="tables are for source vocabularies of") as caught:
        add_shortlist(tmp_path / "bundle", foreign)
    assert len(caught.value.faults) == 2
    assert Bundle.load(tmp_path / "bundle").shortlist is None


def test_lines_are_translated_with_a_list(one: Exported, tmp_path: Path) -> None:
    shutil.copytree(one.bundle.path, tmp_path / "bundle")
    size, letter = one.bundle.target_vocabulary.size, one.bundle.target_vocabulary.id_of("the-a")
    rows = [[letter]] * one.bundle.source_vocabularies[0].size
    add_shortlist(tmp_path / "bundle", Shortlist((Table.of(rows, size),), np.array([EOS]), size))
    bundle = Bundle.load(tmp_path / "bundle")
    graphs = open_graphs(bundle, "onnx", "int8")
    lines = written(bundle, graphs, [["b c d", "", "a"]], bundle.shortlist)
    assert len(lines) == 3
    assert set(" ".join(lines).split()) <= {"the-a"}
