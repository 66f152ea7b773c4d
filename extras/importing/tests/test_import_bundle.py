"""A public model as a bundle like any other, and nothing half-written where that fails."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from tandem.extras.importing.bundle import import_bundle, load_model, read_model
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.tests.ct2 import BASE, transformer, variables, write
from tandem.extras.importing.tests.support import (
    ENDS,
    ENGLISH,
    GERMAN,
    change_json,
    write_marian,
    write_mbart,
    write_pegasus,
)
from tandem.models.bundle import Bundle, sha256
from tandem.models.errors import BundleError, ForeignModelError
from tandem.models.search import OfflineDecoder
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.models.translation.translator import translate_lines
from tandem.models.vocabulary import MappedVocabulary, TaggedVocabulary
from tandem.training.export import bundle as export
from tandem.training.export.bundle import round_weights
from tandem.training.export.onnx_graphs import export_graphs
from tests.training.export.support import OnnxGraphs

LABELS = Labels("CC-BY-4.0", "https://example.org/opus-mt-en-de", ENGLISH)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "opus-mt-en-de"
    write_marian(path)
    return path


def test_the_bundle_holds_the_model(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    bundle = import_bundle(folder, tmp_path / "bundles" / "en-de", Asked(), LABELS)
    manifest = bundle.manifest
    assert (manifest.name, manifest.task, manifest.architecture) == ("en-de", "translate", "transformer")
    assert (manifest.source_languages, manifest.target_language, manifest.pairs) == (("en",), "de", ())
    assert (manifest.limits.max_source_tokens, manifest.limits.max_target_tokens) == (63, 63)
    assert (manifest.licence, manifest.training.corpora) == ("CC-BY-4.0", ())
    assert manifest.origin is not None
    assert manifest.origin.url == LABELS.url
    assert manifest.origin.files["model.safetensors"] == sha256(folder / "model.safetensors")
    card = (bundle.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Weights: CC-BY-4.0" in card
    assert "imported from a model in the form of Hugging Face MarianMT from https://example.org/opus-mt-en-de" in card
    assert "updates" not in card
    expected = load_model(folder, read_model(folder, Asked()))
    round_weights(expected)
    found = model_tensors(load_bundle_model(bundle))
    for name, tensor in model_tensors(expected).items():
        assert found[name].equal(tensor), name
    assert isinstance(bundle.target_vocabulary, MappedVocabulary)
    assert bundle.source_vocabularies[0].encode(ENGLISH[0])
    (sources,) = without_graphs
    read = {tuple(source.tolist()) for (source,) in sources}
    assert (*bundle.source_vocabularies[0].encode(ENGLISH[3]), 3) in read


def test_one_bundle_of_several_targets(tmp_path: Path, without_graphs: list[Any]) -> None:
    folder = tmp_path / "model"
    write_marian(folder, tags=(">>fra<<", ">>deu<<"))
    asked = Asked(("en", "nl"), ("de", "fr"))
    bundle = import_bundle(folder, tmp_path / "en-many", asked, LABELS)
    assert bundle.manifest.pairs == (("en", "de"), ("nl", "de"), ("en", "fr"), ("nl", "fr"))
    ids = {}
    for view in bundle.views:
        (source,) = view.source_vocabularies
        assert isinstance(source, TaggedVocabulary)
        ids[view.manifest.target_language] = source.encode(ENGLISH[0])
    plain = bundle.target_vocabulary
    assert {code: plain.piece_of(one[0]) for code, one in ids.items()} == {"de": ">>deu<<", "fr": ">>fra<<"}
    assert ids["de"][1:] == ids["fr"][1:]
    tag = plain.id_of(">>deu<<")
    assert all(source[0] == tag for (source,) in without_graphs[0])


def test_built_in_text_where_none_is_given(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    said: list[str] = []
    import_bundle(folder, tmp_path / "a", Asked(), Labels(), said.append)
    assert not [line for line in said if "rough" in line]
    import_bundle(folder, tmp_path / "b", Asked(("fi",), ("de",)), Labels(), said.append)
    assert [line for line in said if "no built-in text in fi: calibrating on English, which is rough" in line]


def test_nothing_is_left_behind(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    out = tmp_path / "bundles" / "en-de"
    with pytest.raises(ForeignModelError, match=r"needs 1\.1 GB of memory, but there are 0\.5 GB here: import it on"):
        import_bundle(folder, out, Asked(), Labels(memory=500_000_000))
    change_json(folder / "config.json", d_model=32)
    with pytest.raises(ForeignModelError, match="the configuration asks for"):
        import_bundle(folder, out, Asked(), LABELS)
    with pytest.raises(ForeignModelError, match="there is no such folder"):
        import_bundle(tmp_path / "nowhere", out, Asked(), LABELS)
    assert not out.parent.exists()


def test_a_bundle_is_replaced_only_when_asked(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    out = tmp_path / "en-de"
    import_bundle(folder, out, Asked(), LABELS)
    with pytest.raises(BundleError, match=r"already something at this path; remove it, or replace it with --force"):
        import_bundle(folder, out, Asked(), LABELS)
    again = import_bundle(folder, out, Asked(), Labels("MIT", overwrite=True))
    assert Bundle.load(again.path).manifest.licence == "MIT"


def test_what_goes_beyond_half_precision_is_refused(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors["model.encoder.layers.0.fc1.weight"][0, 0] = 1e6
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ForeignModelError, match=r"fc1\.weight must be at most 65504, but reaches 1e\+06"):
        import_bundle(folder, tmp_path / "en-de", Asked(), LABELS)


def test_a_graph_that_would_be_too_large_is_refused(
    folder: Path, tmp_path: Path, without_graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.extras.importing.bundle._GRAPH_BYTES", 10_000)
    with pytest.raises(ForeignModelError, match=r"graph of its encoder would have .* GB, .*; the graph of its decoder"):
        import_bundle(folder, tmp_path / "en-de", Asked(), LABELS)


def _ct2(folder: Path, **layers: int) -> None:
    write(folder, variables(transformer(replace(BASE, **layers))))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("form", [write_marian, write_mbart, write_pegasus, _ct2])
def test_the_graphs_give_what_pytorch_gives(
    form: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: export, calibration, files; and what ONNX Runtime makes of real sentences."""
    pytest.importorskip("onnxruntime")
    form(tmp_path / "model", encoder_layers=1, decoder_layers=1)
    made: list[tuple[dict[str, ModelProto], Any]] = []

    def exported(model: AnyModel) -> tuple[dict[str, ModelProto], Any]:
        """Once for both precisions, which have the same weights: exporting is what takes long."""
        made[:] = made or [export_graphs(model)]
        graphs, specs = made[0]
        return deepcopy(graphs), specs

    monkeypatch.setattr(export, "export_graphs", exported)
    asked = Asked(("en",), () if form is write_pegasus else ("de",))
    bundle = import_bundle(tmp_path / "model", tmp_path / "bundle", asked, Labels(calibration=[*ENGLISH, *GERMAN]))
    assert bundle.precisions == ("int8",)
    path = export.add_precision(bundle.path, "float32")
    options = replace(bundle.manifest.decoding, max_length=30)
    texts = []
    for graphs in (OnnxGraphs(path, bundle.graph_specs("float32")), TorchGraphs(load_bundle_model(bundle))):
        vocabularies = bundle.source_vocabularies, bundle.target_vocabulary
        texts.append(translate_lines(OfflineDecoder(graphs, options), vocabularies, [ENGLISH], max_source_tokens=60))
    assert texts[0] == texts[1]
    eight = OnnxGraphs(bundle.path / "onnx/int8", bundle.graph_specs("int8"))
    assert translate_lines(OfflineDecoder(eight, options), vocabularies, [ENGLISH[:3]], max_source_tokens=60)


@pytest.mark.slow
def test_the_bundle_translates_as_the_library_does(
    tmp_path: Path, without_graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text in and text out, with weights as the bundle rounds them."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.setitem(ENDS, "marian", 4.0)  # most lines end before the longest length
    folder = tmp_path / "model"
    write_marian(folder)
    bundle = import_bundle(folder, tmp_path / "en-de", Asked(), LABELS)
    decoder = OfflineDecoder(TorchGraphs(load_bundle_model(bundle)), bundle.manifest.decoding)
    vocabularies = bundle.source_vocabularies, bundle.target_vocabulary
    found = translate_lines(decoder, vocabularies, [ENGLISH], max_source_tokens=64)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    # Sines and cosines are not rounded; the outputs' bias is, which the library has among its buffers.
    rounded = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for tensor in (*rounded, model.final_logits_bias):
        tensor.data = tensor.data.half().float()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    compared = 0
    for line, ours in zip(ENGLISH, found, strict=True):
        made = model.generate(**tokenizer([line], return_tensors="pt"), early_stopping=True)[0]
        if len(made) < 40:  # at the longest length the library counts the end as certain
            assert ours == tokenizer.decode(made, skip_special_tokens=True, use_source_tokenizer=False)
            compared += 1
    assert compared > 20
