"""Marian's own files: the same layers under other names, and positions counted as Marian does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

from tandem.extras.importing.bundle import load_model, read_model
from tandem.extras.importing.model import Asked, arranged
from tandem.extras.importing.pieces import mapped_vocabulary, sentencepiece_names, without_pieces
from tandem.extras.importing.tests.comparing import assert_logits, rows
from tandem.extras.importing.tests.restated import Family
from tandem.extras.importing.tests.support import (
    CONFIG,
    ENGLISH,
    GERMAN,
    family_tensors,
    write_vocabulary,
)
from tandem.extras.proofs.forms import marian_arrays
from tandem.extras.proofs.shapes import pieces, sentencepiece_model
from tandem.models.errors import ForeignModelError
from tandem.models.vocabulary import BOS, PAD, UNK

PAIR = Asked(("en",), ("de",))
OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": 16,
    "enc-depth": 2,
    "dec-depth": 3,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-no-projection": False,
    "transformer-tied-layers": [],
    "tied-embeddings-all": True,
    "version": "v1.10",
}


def write(
    folder: Path, *, options: dict[str, Any] | None = None, lists: str = "yml", **further: Any
) -> dict[str, Tensor]:
    """A folder of Marian's; its tensors under the other names, with a row of zeros that decoding begins with."""
    folder.mkdir(parents=True, exist_ok=True)
    if lists == "yml":
        table = write_vocabulary(folder)
        del table["<pad>"]
        for name in ("vocab.json", "tokenizer_config.json"):
            (folder / name).unlink()
        (folder / "opus.vocab.yml").write_text(yaml.safe_dump(table, allow_unicode=True), encoding="utf-8")
        types, end = len(table), table["</s>"]
    else:
        model = sentencepiece_model([*ENGLISH, *GERMAN], 150, eos_id=0, unk_id=1, bos_id=-1)
        (folder / "vocab.spm").write_bytes(model)
        types, end = len(pieces(model)) + 3, 0
    tensors = family_tensors(CONFIG | {"vocab_size": types, "eos_token_id": end})
    named = yaml.safe_dump(OPTIONS | (options or {})).encode() + b"\x00"
    content = {"special:model.yml": np.frombuffer(named, np.int8), **marian_arrays(tensors), **further}
    np.savez(folder / "model.npz", **content)
    tensors["model.shared.weight"] = torch.cat([tensors["model.shared.weight"], torch.zeros(1, 16)])
    tensors["final_logits_bias"] = torch.cat([tensors["final_logits_bias"], torch.zeros(1, 1)], dim=1)
    return tensors


@pytest.mark.parametrize("lists", ["yml", "spm"])
def test_logits_are_the_restated_ones(tmp_path: Path, lists: str) -> None:
    tensors = write(tmp_path, lists=lists)
    read = read_model(tmp_path, PAIR)
    assert rows(read)[0] == rows(read)[2] == -1  # no padding, and a beginning of zeros
    restated = Family.of(tensors, heads=2, scale=4.0, positions="tensor2tensor")
    last = len(tensors["model.shared.weight"]) - 1

    def theirs(source: list[int], target: list[int]) -> Any:
        return restated.logits(source, [last if token < 0 else token for token in target])[:, :-1]

    assert_logits(read, load_model(tmp_path, read).double(), theirs, 4)
    vocabulary = read.source
    assert vocabulary.decode(vocabulary.encode(ENGLISH[0]))


def test_how_to_search(tmp_path: Path) -> None:
    write(tmp_path)
    lists = {"models": ["model.npz"], "vocabs": ["opus.vocab.yml"] * 2, "relative-paths": True}
    (tmp_path / "decoder.yml").write_text(yaml.safe_dump(lists | {"beam-size": 4, "normalize": 0.6}), encoding="utf-8")
    options = read_model(tmp_path, Asked(("en",), ("de",), ignored=("relative-paths",))).decoding
    assert (options.beam_size, options.length_penalty, options.max_length_ratio) == (4, 0.6, 3.0)
    assert options.suppressed == (PAD, UNK, BOS)  # Marian never writes what is unknown


def test_every_fault_is_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"transformer-decoder-autoreg": "rnn", "transformer-guided-alignment-layer": "1"}
    options |= {"layer-normalization": True, "transformer-ffn-activation": "gelu", "new-option": 3}
    write(tmp_path, options=options | {"transformer-preprocess": "d", "transformer-tied-layers": [1, 1]})
    (tmp_path / "source.spm").unlink()
    with pytest.raises(ForeignModelError) as refused:
        read_model(tmp_path, PAIR)
    text = str(refused.value)
    for expected in (
        'dec-cell must be one of ssru, but is "gru"',
        "layer-normalization must be False, but is true",
        "transformer-guided-alignment-layer must be 'last', but is \"1\"",
        'transformer-ffn-activation must be one of relu, swish, but is "gelu"',
        "the field new-option (3) is not supported",
        "transformer-tied-layers must be [], but is [1, 1]",
        "transformer-preprocess, -postprocess and -postprocess-top must be",
        "source.spm is missing",
    ):
        assert expected in text
    assert len(refused.value.faults) == 8


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("*.spm", None, "there must be a vocabulary, or one for source and one for target"),
        ("model.npz", b"no archive", r"model\.npz is not a readable file of Marian's"),
        ("second.npz", b"", r"there must be one \.npz or \.bin file, or decoder\.yml must name it"),
        ("opus.vocab.yml", b"- a\n- b", "must map pieces to ids"),
        ("opus.vocab.yml", b"a: 0\nb: 2", "must give every piece an id of its own, from 0 on"),
        ("opus.vocab.yml", b"a: 0\nb: 1", "the list of pieces has no </s>; .*the list of pieces has no <unk>"),
        ("opus.vocab.yml", None, "tied-embeddings-all needs one vocabulary, but there are two"),
        ("decoder.yml", b"a: [", r"decoder\.yml is not YAML"),
    ],
)
def test_files_that_are_missing_or_malformed(tmp_path: Path, file: str, content: bytes | None, message: str) -> None:
    write(tmp_path)
    if content is None:
        for path in (*tmp_path.glob(file), *tmp_path.glob("*.yml")):
            path.unlink(missing_ok=True)
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(ForeignModelError, match=message):
        read_model(tmp_path, PAIR)


def test_arrays_of_objects_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path, harm=np.array([{"a": print}], dtype=object))
    with pytest.raises(ForeignModelError, match=r"model\.npz is not a readable file of Marian's: Object arrays"):
        read_model(tmp_path, PAIR)


def test_pieces_that_training_has_for_itself_are_text(tmp_path: Path) -> None:
    """``__source__`` is a piece of its own in newer vocabularies; who types it means these letters."""
    special = ["__source__", "__done__"]
    model = sentencepiece_model([*ENGLISH, "a_b"], 150, eos_id=0, unk_id=1, bos_id=-1, user_defined_symbols=special)
    (tmp_path / "vocab.spm").write_bytes(model)
    names = sentencepiece_names(tmp_path / "vocab.spm")
    types = arranged(names, pad=None, unk=1, start=None, eos=0)
    vocabulary = mapped_vocabulary(tmp_path / "vocab.spm", types, [], unused=special)
    assert vocabulary is not None
    ids = vocabulary.encode("the __source__")
    assert not {types.names.index(one) for one in special} & set(ids)
    assert vocabulary.decode(ids) == "the __source__"
    assert vocabulary.encode("the") == ids[: len(vocabulary.encode("the"))]


def test_a_sentencepiece_model_that_ends_anywhere_is_left_to_its_reader() -> None:
    model = sentencepiece_model(ENGLISH, 100, user_defined_symbols=["__done__"])
    for size in range(200):
        assert len(without_pieces(model[:size], ["__done__"])) == size
