"""CTranslate2's folders and Argos' packages: variables by their names, 8 bits with scales, sources without an end."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tandem.extras.importing.bundle import load_model, read_model
from tandem.extras.importing.model import Asked
from tandem.extras.importing.tests.comparing import logits, rows, sentences
from tandem.extras.importing.tests.ct2 import BASE, TOKENS, transformer, variables, write
from tandem.extras.importing.tests.support import ENGLISH
from tandem.extras.proofs.shapes import write_json
from tandem.models.architectures.transformer import Transformer, TransformerConfig
from tandem.models.errors import ForeignModelError
from tandem.models.vocabulary import BOS
from tests.models.architectures.comparison import weights_of
from tests.reference.transformer import TransformerReference

PAIR = Asked(("en",), ("de",))


def assert_same_model(folder: Path, model: Transformer, atol: float = 1e-4, asked: Asked = PAIR) -> None:
    """What is read computes the restated logits of the model that was written, in its own ids."""
    read = read_model(folder, asked)
    ours, known = load_model(folder, read).double(), rows(read)
    restated = TransformerReference(weights_of(model), model.config)
    start = TOKENS.index("<s>")
    kept = [token for token, row in enumerate(known) if row >= 0 and token != BOS]
    for source in sentences(read, 3):
        target = [BOS, *source[:-1]]
        expected = restated.score([known[token] for token in source], [start, *(known[token] for token in source[:-1])])
        found = logits(ours, source, target)
        np.testing.assert_allclose(found[:, kept], expected[:, [known[token] for token in kept]], atol=atol, rtol=0)


def test_logits_are_the_restated_ones(tmp_path: Path) -> None:
    model = transformer()
    write(tmp_path, variables(model))
    assert_same_model(tmp_path, model)
    read = read_model(tmp_path, PAIR)
    assert read.config.positions == "sinusoidal" and not read.config.reads_end
    assert read.source.decode(read.source.encode(ENGLISH[0])) == ENGLISH[0]
    assert (read.form, read.decoding.suppressed, read.decoding.max_length) == ("CTranslate2", (0, 2), 62)


def test_aliases_and_tied_tables(tmp_path: Path) -> None:
    model = transformer(TransformerConfig(**{**_fields(BASE), "tied": "all", "reads_end": True}))
    made = variables(model)
    for name in ("decoder/projection/weight", "encoder/embeddings_0/weight"):
        del made[name]
    aliases = dict.fromkeys(("decoder/projection/weight", "encoder/embeddings_0/weight"), "decoder/embeddings/weight")
    write(tmp_path, made, aliases=aliases, add_source_eos=True)
    assert_same_model(tmp_path, model)
    assert read_model(tmp_path, PAIR).config.tied == "all"


def test_eight_bits_with_a_scale_for_each_row(tmp_path: Path) -> None:
    model = transformer()
    made = variables(model)
    for name, value in list(made.items()):
        if name.endswith("/weight"):
            scale = 127 / np.abs(value).max(axis=1)
            made[name], made[f"{name}_scale"] = (
                np.rint(value * scale[:, None]).astype(np.int8),
                scale.astype(np.float32),
            )
    write(tmp_path, made)
    ours = load_model(tmp_path, read_model(tmp_path, PAIR))
    for name, tensor in model.encoder.state_dict().items():
        torch.testing.assert_close(ours.encoder.state_dict()[name], tensor, atol=0.02, rtol=0)


def test_an_argos_package(tmp_path: Path) -> None:
    model = transformer()
    write(tmp_path / "model", variables(model))
    (tmp_path / "model" / "sentencepiece.model").rename(tmp_path / "sentencepiece.model")
    write_json(tmp_path / "metadata.json", {"from_code": "en", "to_code": "de", "package_version": "1.9"})
    read = read_model(tmp_path, Asked())
    assert (read.form, read.sources, read.targets) == ("Argos Translate package", ("en",), ("de",))
    assert_same_model(tmp_path, model, asked=Asked())


@pytest.mark.parametrize(
    ("scale", "scaled"), [(np.int8(0), False), (np.int8(1), True), (np.float32(1), False), (np.float32(4), True)]
)
def test_embeddings_are_scaled_by_a_flag_or_by_a_number(tmp_path: Path, scale: Any, scaled: bool) -> None:
    """Converted from transformers, it is the factor itself; a number 1 says that there is none."""
    made = variables(transformer()) | {f"{side}/scale_embeddings": scale for side in ("encoder", "decoder")}
    write(tmp_path, made)
    assert read_model(tmp_path, PAIR).config.scale_embedding is scaled


def _fields(config: TransformerConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def test_every_fault_is_named(tmp_path: Path) -> None:
    made = variables(transformer())
    for side in ("encoder", "decoder"):
        del made[f"{side}/position_encodings/encodings"]
        made[f"{side}/layer_0/self_attention/relative_position_keys"] = np.zeros((41, 8), np.float32)
    made |= {"decoder/scale_embeddings": np.float32(2)}
    made |= {"encoder/activation": np.int8(1), "decoder/alibi": np.int8(1), "decoder/rotary_dim": np.int32(4)}
    write(tmp_path, made, unk_token="<none>", layer_norm_epsilon=1e-6, something=1)
    with pytest.raises(ForeignModelError) as refused:
        read_model(tmp_path, PAIR)
    text = str(refused.value)
    for expected in (
        "layer_norm_epsilon must be 1e-05, but is 1e-06",
        "the field something (1) is not supported",
        'activation must be one of 0, 2, 3, but is "1"',
        "scale_embeddings must be 1.0 or 4.0, the root of the width, but is 2.0",
        "alibi must be 0, but is 1",
        "the field decoder/rotary_dim (4) is not supported",
        "model.bin has no position_encodings: relative positions",
        "the list of tokens has no <none>",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a readable model of CTranslate2"),
        (struct.pack("<I", 5), "its version must be 6, but is 5; convert it anew"),
        (struct.pack("<IH", 6, 4) + b"Abc\x00", "it must be a TransformerSpec, but is 'Abc'"),
        (struct.pack("<IH", 6, 16) + b"TransformerSpec\x00" + struct.pack("<II", 7, 3), "not a readable model"),
    ],
)
def test_files_that_are_cut_off_or_others(tmp_path: Path, content: bytes, message: str) -> None:
    write(tmp_path, variables(transformer()))
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ForeignModelError, match=message):
        read_model(tmp_path, PAIR)


def test_the_library_gives_the_same_probabilities(tmp_path: Path) -> None:
    """The log-probability of every token of random pairs, the end included, in CTranslate2 itself."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    write(tmp_path, variables(transformer()))
    read = read_model(tmp_path, PAIR)
    ours, known = load_model(tmp_path, read), rows(read)
    made = ctranslate2.Translator(str(tmp_path), device="cpu", compute_type="float32", intra_threads=1)
    for source in sentences(read, 8):
        words = [TOKENS[known[token]] for token in source[:-1]]
        if not words:
            continue
        (result,) = made.score_batch([words], [words])
        scores = torch.log_softmax(torch.tensor(logits(ours, source, [BOS, *source[:-1]])), dim=-1)
        found = scores[torch.arange(len(source)), torch.tensor(source)]
        np.testing.assert_allclose(found.numpy(), result.log_probs, atol=1e-4, rtol=0)
