"""MarianMT: the model, the vocabularies and the search of a folder are those that were published."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tandem.extras.importing.bundle import load_model, read_model
from tandem.extras.importing.model import Asked
from tandem.extras.importing.tests.comparing import assert_generates, assert_logits, library_logits, rows
from tandem.extras.importing.tests.restated import Family
from tandem.extras.importing.tests.support import ENGLISH, GERMAN, change_json, family_tensors, write_marian
from tandem.extras.proofs.comparing import varied_lines
from tandem.extras.proofs.shapes import write_json
from tandem.models.errors import ForeignModelError
from tandem.models.vocabulary import BOS, EOS

ASKED = Asked()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model; never changed."""
    path = tmp_path_factory.mktemp("models") / "opus-mt-en-de"
    write_marian(path)
    return path


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(folder, tmp_path / "opus-mt-en-de"))


def test_logits_are_the_restated_ones(folder: Path) -> None:
    read = read_model(folder, ASKED)
    restated = Family.of(load_file(folder / "model.safetensors"), heads=2, scale=4.0)
    assert_logits(read, load_model(folder, read).double(), restated.logits, 4)


def test_what_the_files_say(folder: Path) -> None:
    model = read_model(folder, ASKED)
    table = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    assert [model.source.piece_of(token) for token in range(4)] == ["<pad>", "<unk>", "⟨start⟩", "</s>"]
    assert rows(model)[:4] == [table["<pad>"], table["<unk>"], table["<pad>"], table["</s>"]]
    assert sorted({*rows(model)}) == sorted(table.values())
    assert {model.source.piece_of(token): theirs for token, theirs in enumerate(rows(model)) if token != BOS} == table
    assert (model.sources, model.targets, model.tags) == (("en",), ("de",), "")
    options = model.decoding
    assert (options.beam_size, options.max_length, options.length_penalty) == (4, 38, 0.9)
    assert options.suppressed == (0, 2)
    assert {path.name for path in model.files} == {"config.json", "source.spm", "target.spm", "vocab.json"}


def test_weights_in_the_pickled_file(folder: Path, own: Path) -> None:
    tensors = load_file(own / "model.safetensors")
    (own / "model.safetensors").unlink()
    torch.save(tensors, own / "pytorch_model.bin")
    ours, same = (load_model(one, read_model(one, ASKED)) for one in (own, folder))
    for name, tensor in same.state_dict().items():
        assert ours.state_dict()[name].equal(tensor), name


def test_weights_in_several_files(folder: Path, own: Path) -> None:
    tensors = load_file(own / "model.safetensors")
    (own / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, held in parts.items():
        save_file({name: tensors[name].half() for name in held}, own / file)
    index = {"weight_map": {name: file for file, held in parts.items() for name in held}}
    write_json(own / "model.safetensors.index.json", index)
    ours, same = (load_model(one, read_model(one, ASKED)) for one in (own, folder))
    for name, tensor in same.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, atol=2e-3, rtol=0)


def test_a_target_vocabulary_of_its_own(own: Path) -> None:
    source = json.loads((own / "vocab.json").read_text(encoding="utf-8"))
    target = {piece: len(source) - 1 - token for piece, token in source.items() if piece != "<pad>"}
    target = {piece: token - min(target.values()) for piece, token in target.items()} | {"<pad>": len(target)}
    write_json(own / "target_vocab.json", target)
    change_json(own / "tokenizer_config.json", separate_vocabs=True)
    ids = {"pad_token_id": target["<pad>"], "eos_token_id": target["</s>"], "decoder_start_token_id": target["<pad>"]}
    change_json(own / "config.json", share_encoder_decoder_embeddings=False, decoder_vocab_size=len(target), **ids)
    tensors = load_file(own / "model.safetensors")
    shared = tensors.pop("model.shared.weight")
    tensors |= {"model.encoder.embed_tokens.weight": shared, "model.decoder.embed_tokens.weight": shared.flip(0)}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, own / "model.safetensors")
    read = read_model(own, ASKED)
    ours = load_model(own, read)
    for token in range(4, 20):
        piece = read.target.piece_of(token)
        assert ours.target_embedding[token].equal(shared.flip(0)[target[piece]])
        piece = read.source.piece_of(token)
        assert ours.source_embedding[token].equal(shared[source[piece]])


def test_tags_of_a_multilingual_model(tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-en-roa"
    write_marian(folder, tags=(">>fra<<", ">>spa<<", ">>cmn_Hans<<", ">>cmn_Hant<<"))
    (folder / "tokenizer_config.json").unlink()
    read = read_model(folder, Asked(("en",), ("fr", "es", "zh")))
    assert read.tags == "target"
    assert read.source.languages == {"fr": ">>fra<<", "es": ">>spa<<", "zh": ">>cmn_Hans<<"}
    named = read_model(folder, Asked(("en",), ("zh",), {"zh": ">>cmn_Hant<<"}))
    assert named.source.languages == {"zh": ">>cmn_Hant<<"}
    with pytest.raises(ForeignModelError, match=r"the language 'de' has no tag among cmn_Hans, .*--tag de=TAG"):
        read_model(folder, Asked(("en",), ("de",)))
    with pytest.raises(
        ForeignModelError, match=r"opus-mt-en-roa: the files do not say the target language: say --target"
    ):
        read_model(folder, ASKED)


def _break(folder: Path, name: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    if name == "nan":
        tensors["model.encoder.layers.1.fc1.weight"][3, 2] = torch.nan
        tensors["model.decoder.layers.0.fc2.bias"][:2] = torch.inf
    elif name == "shape":
        tensors["model.encoder.layers.0.fc1.bias"] = torch.zeros(25)
        tensors["model.shared.weight"] = tensors["model.shared.weight"][:-1].contiguous()
    elif name == "missing":
        del tensors["model.decoder.layers.2.encoder_attn.q_proj.bias"], tensors["model.shared.weight"]
        tensors["model.decoder.layers.3.fc1.bias"] = torch.zeros(24)
    save_file(tensors, folder / "model.safetensors")


def test_weights_that_do_not_fit(own: Path) -> None:
    _break(own, "shape")
    types = json.loads((own / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    with pytest.raises(ForeignModelError) as shape:
        read_model(own, ASKED)
    assert set(shape.value.faults) == {
        f"model.shared.weight [{types - 1}, 16]: the configuration asks for [{types}, 16] in all",
        "model.encoder.layers.0.fc1.bias [25]: the configuration asks for [24] in all",
    }
    _break(own, "missing")
    with pytest.raises(ForeignModelError) as missing:
        read_model(own, ASKED)
    assert "the weights lack model.decoder.layers.2.encoder_attn.q_proj.bias" in missing.value.faults
    assert "the weights lack model.shared.weight" in missing.value.faults
    assert "the weights have an unknown tensor model.decoder.layers.3.fc1.bias" in missing.value.faults


def test_weights_that_are_not_finite(own: Path) -> None:
    _break(own, "nan")
    with pytest.raises(ForeignModelError) as refused:
        load_model(own, read_model(own, ASKED))
    assert refused.value.faults == (
        "model.encoder.layers.1.fc1.weight must be finite, but 1 of its 384 numbers are not",
        "model.decoder.layers.0.fc2.bias must be finite, but 2 of its 16 numbers are not",
    )


def test_every_fault_of_a_configuration_is_named(own: Path) -> None:
    change_json(
        own / "config.json",
        normalize_before=True,
        relative_positions=True,
        transformer_decoder_autoreg="rnn",
        activation_function="gelu_new",
        decoder_attention_heads=4,
        quantization_config={"bits": 4},
        tie_encoder_decoder=True,
    )
    change_json(own / "generation_config.json", repetition_penalty=1.2, bad_words_ids=[[1, 2]], length_penalty=-1)
    (own / "source.spm").unlink()
    (own / "target.spm").write_bytes(b"no model")
    with pytest.raises(ForeignModelError) as refused:
        read_model(own, ASKED)
    text = str(refused.value)
    for expected in (
        "config.json: normalize_before must be False, but is true",
        "relative_positions must be False, but is true",
        'the field transformer_decoder_autoreg ("rnn") is not supported',
        'activation_function must be one of relu, gelu, swish, silu, but is "gelu_new"',
        "encoder_attention_heads (2) and decoder_attention_heads (4) must be equal",
        'the field quantization_config ({"bits": 4}) is not supported',
        "tie_encoder_decoder must be False, but is true",
        "repetition_penalty must be 1.0, but is 1.2",
        "bad_words_ids must hold single tokens, but one entry is [1, 2]",
        "length_penalty must be from 0 to 10",
        "source.spm is missing",
        "target.spm: not a readable sentencepiece model",
    ):
        assert expected in text
    assert len(refused.value.faults) == 12


def test_a_field_that_the_user_says_does_not_matter(own: Path) -> None:
    change_json(own / "config.json", my_experiment=3)
    with pytest.raises(ForeignModelError, match=r"the field my_experiment \(3\) is not supported; .*--ignore my_exp"):
        read_model(own, ASKED)
    assert read_model(own, Asked(ignored=("my_experiment",))).targets == ("de",)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", b"{", "config.json is not JSON"),
        ("config.json", b"[]", "config.json must be a table, but is list"),
        ("config.json", b'{"model_type": "t5"}', r"model_type must be one of marian.*, but is 't5'"),
        ("config.json", b"{}", r"model_type must be one of marian.*, but is None"),
        ("config.json", b'{"model_type": "marian"}', "the field d_model is missing"),
        ("vocab.json", None, "vocab.json is missing"),
        ("vocab.json", b'{"a": -1}', "vocab.json must map pieces to ids from 0 to"),
        ("vocab.json", b'{"a": 1, "b": 1}', "every piece an id of its own, but 1 repeat"),
        ("vocab.json", b'{"a": 1}', "the list of pieces has no <unk>"),
        ("model.safetensors", None, "there is neither model.safetensors nor pytorch_model.bin"),
        ("model.safetensors", b"none", "model.safetensors is not a readable safetensors file"),
    ],
)
def test_files_that_are_missing_or_malformed(own: Path, file: str, content: bytes | None, message: str) -> None:
    if content is None:
        (own / file).unlink()
    else:
        (own / file).write_bytes(content)
    with pytest.raises(ForeignModelError, match=message):
        read_model(own, ASKED)


class _Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must not run",))


@pytest.mark.parametrize("content", [{"model.shared.weight": _Harm()}, [torch.zeros(2)], {"a": 3}])
def test_pickles_of_anything_but_tensors_are_refused(
    own: Path, content: object, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "model.safetensors").unlink()
    torch.save(content, own / "pytorch_model.bin")
    with pytest.raises(ForeignModelError, match=r"pytorch_model\.bin"):
        read_model(own, ASKED)
    assert "must not run" not in capsys.readouterr().out


def test_an_index_that_leads_elsewhere(own: Path) -> None:
    (own / "model.safetensors").rename(own.parent / "outside.safetensors")
    write_json(own / "model.safetensors.index.json", {"weight_map": {"model.shared.weight": "../outside.safetensors"}})
    with pytest.raises(ForeignModelError, match=r"names '\.\./outside\.safetensors', which is no file beside it"):
        read_model(own, ASKED)


# Beside the library itself, where it is installed.


@pytest.fixture(scope="module")
def published(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.MarianMTModel.from_pretrained(folder).eval()


def test_logits_are_the_librarys(folder: Path, published: Any) -> None:
    read = read_model(folder, ASKED)
    assert_logits(read, load_model(folder, read), library_logits(published), 5)


def test_hypotheses_are_those_of_generate(folder: Path, published: Any) -> None:
    read = read_model(folder, ASKED)
    for penalty in (0.0, 0.9):
        options = replace(read.decoding, length_penalty=penalty, no_repeat_ngram_size=2, min_length=6)
        assert_generates(read, load_model(folder, read), published, options, 24)


def assert_same_text(folder: Path, lines: Sequence[str]) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    read = read_model(folder, ASKED)
    theirs = rows(read)
    for line in lines:
        ids = read.source.encode(line)
        expected = tokenizer(line).input_ids
        assert [theirs[one] for one in ids] + [theirs[EOS]] == expected, line
        written = tokenizer.decode(expected, skip_special_tokens=True, use_source_tokenizer=False)
        assert read.target.decode(ids) == written, line


def test_text_is_cut_and_joined_as_the_library_does(folder: Path) -> None:
    assert_same_text(folder, [*ENGLISH, *GERMAN, *varied_lines(300), "", " "])


@pytest.mark.slow
def test_ten_thousand_lines_are_cut_and_joined_as_the_library_does(folder: Path) -> None:
    assert_same_text(folder, varied_lines(10_000))


def test_tensors_of_the_library_are_those_of_the_support(published: Any) -> None:
    config = published.config.to_dict()
    assert family_tensors(config).keys() <= set(published.state_dict())
