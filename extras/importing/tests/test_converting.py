"""Bundles as MarianMT: the same function in the form's own terms, and read again what they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tandem.extras.importing.bundle import load_model, read_model
from tandem.extras.importing.converting import as_marian, marian_files, marian_tensors
from tandem.extras.importing.model import Asked
from tandem.extras.importing.tests.comparing import library_logits, rows
from tandem.extras.importing.tests.restated import Family
from tandem.extras.importing.tests.support import ENGLISH, GERMAN
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.transformer import Transformer, TransformerConfig
from tandem.models.bundle import Bundle, VocabularyFile, write_bundle
from tandem.models.config import to_mapping
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import BOS, EOS, PAD, language_piece, train_sentencepiece
from tests.command import fails, succeeds
from tests.models.bundle.manifests import small_manifest

VOCABULARY = train_sentencepiece([*ENGLISH, *GERMAN], size=400, languages=("en", "de"), seed=1)
SIZES: dict[str, Any] = {"width": 16, "hidden": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
KINDS: dict[str, dict[str, Any]] = {
    "as the paper has it": {"tied": "all"},
    "as Marian has it": {"tied": "all", "positions": "halves", "attention_bias": True, "output_bias": True},
    "a table for each side": {"tied": "decoder", "activation": "swish"},
    "without biases or scale": {"tied": "all", "hidden_bias": False, "scale_embedding": False, "activation": "gelu"},
    "an odd width": {"tied": "all", "width": 15, "heads": 3},
}


def transformer(**changes: Any) -> Transformer:
    """A random one, whose next token depends on more than the last one."""
    size = VOCABULARY.size
    fields: dict[str, Any] = {"max_positions": 64, "norm": "post", "dropout": 0.0} | SIZES | changes
    torch.manual_seed(3)
    model = Transformer(TransformerConfig((size,), size, **fields))
    with torch.no_grad():
        for name, tensor in model_tensors(model).items():
            tensor.copy_(torch.randn_like(tensor) * 0.3 + ("norms" in name and name.endswith("weight")))
        if model.output_bias is not None:
            model.output_bias[EOS] += 3  # how often a hypothesis ends
    model.prepare_for_inference()
    return model


def bundle_of(folder: Path, model: Transformer, **changes: Any) -> Bundle:
    file = VocabularyFile("source.model")
    fields: dict[str, Any] = {
        "architecture": "transformer",
        "config": to_mapping(model.config),
        "decoding": SearchOptions(beam_size=4, max_length=20, no_repeat_ngram_size=3, suppressed=(9,)),
    }
    manifest = small_manifest((file,), file, **fields | changes)
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(model).items()}
    return write_bundle(folder / "small", manifest, weights, {"source.model": VOCABULARY})


def log_probabilities(model: Transformer, source: list[int], target: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        memory = model.encode((Padded(torch.tensor([source]), torch.tensor([len(source)])),))
        return torch.log_softmax(model.score(torch.tensor([target]), memory)[0].double(), -1)


def pairs(count: int = 4) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(2)
    drawn = (rng.integers(4, VOCABULARY.size, size=length).tolist() for length in range(2, 2 + 2 * count))
    return [([*source, EOS], [BOS, *target]) for source, target in zip(drawn, drawn, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_computes_the_same_from_zeros(kind: str) -> None:
    model = transformer(**KINDS[kind])
    marian = as_marian(model)
    assert marian.config.positions == "halves"
    assert not marian.target_embedding[BOS].any()
    for source, target in pairs():
        expected, found = (log_probabilities(one, source, target) for one in (model, marian))
        assert float((expected - found).abs().max()) < 1e-5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind]["tied"] == "all"])
def test_tensors_are_those_of_the_restated_form(kind: str) -> None:
    model = transformer(**KINDS[kind])
    settings = {"heads": model.config.heads, "activation": model.config.activation}
    scale = model.config.width**0.5 if model.config.scale_embedding else 1.0
    family = Family.of(marian_tensors(as_marian(model)), scale=scale, **settings)
    size = VOCABULARY.size
    theirs = [size - 2, 1, size - 2, 0, *range(2, size - 2)]
    kept = [token for token in range(size) if token not in (PAD, BOS)]
    for source, target in pairs():
        logits = family.logits([theirs[token] for token in source], [theirs[token] for token in target])
        found = torch.from_numpy(logits[:, [theirs[token] for token in kept]]).log_softmax(-1)
        expected = log_probabilities(model, source, target)[:, kept].log_softmax(-1)
        assert float((expected - found).abs().max()) < 1e-4


@pytest.mark.parametrize("tied", ["all", "decoder"])
def test_a_converted_bundle_is_imported_as_what_it_was(tmp_path: Path, tied: str) -> None:
    bundle = bundle_of(tmp_path, transformer(tied=tied, output_bias=True))
    out = tmp_path / "marian"
    succeeds("convert", bundle.path, "--out", out)
    read = read_model(out, Asked())
    assert (read.sources, read.targets, read.config.tied) == (("de",), ("en",), tied)
    options = read.decoding
    assert (options.beam_size, options.max_length, options.no_repeat_ngram_size) == (4, 20, 3)
    assert {9, PAD, BOS} <= {*options.suppressed}
    ours, again = load_bundle_model(bundle), load_model(out, read)
    assert [read.target.piece_of(token) for token in range(4, 30)] == [VOCABULARY.piece_of(t) for t in range(4, 30)]
    lines = ["guten morgen", *GERMAN[:6]]
    sources = [(np.array([*VOCABULARY.encode(line), EOS]),) for line in lines]
    assert [[*read.source.encode(line), EOS] for line in lines] == [one.tolist() for (one,) in sources]
    greedy = replace(options, beam_size=1)
    expected, found = (translate_batch(TorchGraphs(one), sources, greedy) for one in (ours, again))
    assert [best.tokens for (best,) in expected] == [best.tokens for (best,) in found]
    assert len({best.tokens for (best,) in found}) > 3


def test_tags_of_languages_are_named_as_the_form_names_them(tmp_path: Path) -> None:
    pairs_of = {"source_languages": ("de",), "target_language": "en", "pairs": (("de", "en"), ("en", "de"))}
    bundle = bundle_of(tmp_path, transformer(tied="all"), **pairs_of)
    succeeds("convert", bundle.path, "--out", tmp_path / "marian")
    table = json.loads((tmp_path / "marian" / "vocab.json").read_text(encoding="utf-8"))
    assert table[">>en<<"] == VOCABULARY.id_of(language_piece("en")) - 2
    assert language_piece("en") not in table
    read = read_model(tmp_path / "marian", Asked(("de",), ("en", "de")))
    assert read.source.languages == {"en": ">>en<<", "de": ">>de<<"}


def test_what_the_form_cannot_say_is_refused_with_every_reason(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, transformer(norm="pre", tied="none", positions="learned"))
    said = fails("convert", bundle.path, "--out", tmp_path / "marian")
    assert "norm must be 'post', but is 'pre'" in said
    assert "tied must be 'all' or 'decoder', but is 'none'" in said
    assert "positions must be 'halves' or 'sinusoidal', but is 'learned'" in said
    assert not (tmp_path / "marian").exists()


def test_nothing_is_overwritten_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    options = SearchOptions(length_penalty_form="gnmt", max_length=20, max_length_ratio=2.5, max_rounds=2)
    bundle = bundle_of(tmp_path, transformer(tied="all"), decoding=options)
    out = tmp_path / "marian"
    out.mkdir()
    (out / "mine").write_text("kept", encoding="utf-8")
    assert "--out must be a new or empty folder" in fails("convert", bundle.path, "--out", out)
    assert [path.name for path in out.iterdir()] == ["mine"]
    (out / "mine").unlink()
    assert [line.split(":")[0] for line in marian_files(bundle).left_out] == [
        *("length_penalty_form is 'gnmt'", "max_length_ratio is 2.5", "max_rounds is 2")
    ]
    succeeds("convert", bundle.path, "--out", out)
    assert json.loads((out / "generation_config.json").read_text(encoding="utf-8"))["length_penalty"] == 0.0
    names = {"README.md", "config.json", "generation_config.json", "model.safetensors"}
    assert {path.name for path in out.iterdir()} == names | {
        *("source.spm", "target.spm", "tokenizer_config.json", "vocab.json")
    }
    assert (out / "README.md").read_text(encoding="utf-8").startswith('---\nlibrary_name: "transformers"')


@pytest.mark.slow
@pytest.mark.parametrize("tied", ["all", "decoder"])
def test_other_programs_run_it(tmp_path: Path, tied: str) -> None:
    transformers = pytest.importorskip("transformers")
    converters = pytest.importorskip("ctranslate2.converters")
    ctranslate2 = pytest.importorskip("ctranslate2")
    bundle = bundle_of(tmp_path, transformer(tied=tied, output_bias=True))
    out = tmp_path / "marian"
    succeeds("convert", bundle.path, "--out", out)
    published = transformers.MarianMTModel.from_pretrained(out).eval()
    assert load_file(out / "model.safetensors").keys() <= {*published.state_dict()}
    read = read_model(out, Asked())
    model = load_bundle_model(bundle)
    assert isinstance(model, Transformer)
    known = rows(read)
    kept = [token for token in range(VOCABULARY.size) if token not in (PAD, BOS)]
    for source, target in pairs():
        theirs = library_logits(published)([known[token] for token in source], [known[token] for token in target])
        found = torch.from_numpy(theirs[:, [known[token] for token in kept]]).double().log_softmax(-1)
        expected = log_probabilities(model, source, target)[:, kept].log_softmax(-1)
        assert float((expected - found).abs().max()) < 1e-4
    tokenizer = transformers.MarianTokenizer.from_pretrained(out)
    lines = [*GERMAN[:10], "Ein Haus, 12,5 % mehr: „Ja“ – 日本語 🙂"]
    for line in lines:
        assert tokenizer(line).input_ids == [known[token] for token in (*VOCABULARY.encode(line), EOS)]
    converters.TransformersConverter(str(out)).convert(str(tmp_path / "ct2"))
    engine = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32", intra_threads=1)
    pieces = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
    settings = {"beam_size": 1, "min_decoding_length": 0, "max_decoding_length": 20, "no_repeat_ngram_size": 3}
    answers = engine.translate_batch(pieces, suppress_sequences=[[read.target.piece_of(9)], ["<unk>"]], **settings)
    options = SearchOptions(beam_size=1, max_length=20, no_repeat_ngram_size=3, suppressed=read.decoding.suppressed)
    sources = [(np.array([*VOCABULARY.encode(line), EOS]),) for line in lines]
    hypotheses = [
        [VOCABULARY.piece_of(token) for token in best.tokens]
        for (best,) in translate_batch(TorchGraphs(model), sources, options)
    ]
    same = sum(answer.hypotheses[0] == tokens for answer, tokens in zip(answers, hypotheses, strict=True))
    assert same >= len(lines) - 1  # a tie within rounding is all that may be
