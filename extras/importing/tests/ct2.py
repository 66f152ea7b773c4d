"""A model of ours in CTranslate2's form, written byte by byte: the tests need not have the program."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tandem.extras.importing.tests.support import ENGLISH, GERMAN
from tandem.extras.proofs.shapes import pieces, sentencepiece_model, write_json
from tandem.models.architectures.layers.embedding import sinusoids
from tandem.models.architectures.transformer import Transformer, TransformerConfig

MODEL = sentencepiece_model([*ENGLISH, *GERMAN], 150)
TOKENS = ["<blank>", "<s>", "</s>", *pieces(MODEL), "<unk>"]
BASE = TransformerConfig(
    (len(TOKENS),),
    len(TOKENS),
    width=16,
    hidden=24,
    heads=2,
    encoder_layers=2,
    decoder_layers=1,
    max_positions=64,
    attention_bias=True,
    output_bias=True,
    dropout=0.0,
    reads_end=False,
)
_TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def transformer(config: TransformerConfig = BASE) -> Transformer:
    torch.manual_seed(3)
    model = Transformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval()


def variables(model: Transformer) -> dict[str, Any]:
    """A model of ours under CTranslate2's names."""
    c, state = model.config, {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    made: dict[str, Any] = {}
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        made[f"{side}/num_heads"], made[f"{side}/pre_norm"] = np.int16(c.heads), np.int8(c.norm == "pre")
        made[f"{side}/activation"], made[f"{side}/scale_embeddings"] = np.int8(0), np.int8(c.scale_embedding)
        made[f"{side}/position_encodings/encodings"] = sinusoids(c.max_positions, c.width).numpy()
        table = state.get(f"{ours}_embedding", state["target_embedding"])
        made[f"{side}/embeddings{'_0' if side == 'encoder' else ''}/weight"] = table
        made |= _norm(f"{side}/layer_norm", state, f"{side}_norm")
        layers = c.encoder_layers if side == "encoder" else c.decoder_layers
        for layer in range(layers):
            own, theirs = f"{side}.{layer}", f"{side}/layer_{layer}"
            made |= _linear(f"{theirs}/self_attention/linear_0", state, f"{own}.attention.query_key_value")
            made |= _linear(f"{theirs}/self_attention/linear_1", state, f"{own}.attention.output")
            made |= _linear(f"{theirs}/ffn/linear_0", state, f"{own}.feed_forward.inner")
            made |= _linear(f"{theirs}/ffn/linear_1", state, f"{own}.feed_forward.outer")
            made |= _norm(f"{theirs}/self_attention/layer_norm", state, f"{own}.norms.0")
            made |= _norm(f"{theirs}/ffn/layer_norm", state, f"{own}.norms.{1 if side == 'encoder' else 2}")
            if side == "decoder":
                made |= _linear(f"{theirs}/attention/linear_0", state, f"{own}.query")
                made |= _linear(f"{theirs}/attention/linear_1", state, f"{own}.source_keys", f"{own}.source_values")
                made |= _linear(f"{theirs}/attention/linear_2", state, f"{own}.output")
                made |= _norm(f"{theirs}/attention/layer_norm", state, f"{own}.norms.1")
    made["decoder/projection/weight"] = state.get("output_weight", state["target_embedding"])
    made["decoder/projection/bias"] = state["output_bias"]
    made["decoder/alignment_layer"] = np.int16(-1)
    return made


def _linear(theirs: str, state: Mapping[str, Any], *ours: str) -> dict[str, Any]:
    return {
        f"{theirs}/{kind}": np.concatenate([state[f"{name}.{kind}"] for name in ours]) for kind in ("weight", "bias")
    }


def _norm(theirs: str, state: Mapping[str, Any], ours: str) -> dict[str, Any]:
    return {f"{theirs}/gamma": state[f"{ours}.weight"], f"{theirs}/beta": state[f"{ours}.bias"]}


def write_binary(path: Path, made: Mapping[str, Any], aliases: Mapping[str, str] | None = None) -> None:
    def text(string: str) -> bytes:
        return struct.pack("<H", len(string) + 1) + string.encode() + b"\x00"

    content = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(made))
    for name, value in sorted(made.items()):
        array = np.asarray(value)
        content += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        content += struct.pack("<BI", _TYPES[str(array.dtype)], array.nbytes) + array.tobytes()
    content += struct.pack("<I", len(aliases or {}))
    for alias, name in (aliases or {}).items():
        content += text(alias) + text(name)
    path.write_bytes(content)


def write(folder: Path, made: Mapping[str, Any], **settings: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    aliases = settings.pop("aliases", None)
    write_binary(folder / "model.bin", made, aliases)
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "decoder_start_token": "<s>"}
    table = {"add_source_bos": False, "add_source_eos": False, "layer_norm_epsilon": None}
    write_json(folder / "config.json", tokens | table | settings)
    (folder / "shared_vocabulary.json").write_text(json.dumps(TOKENS), encoding="utf-8")
    (folder / "sentencepiece.model").write_bytes(MODEL)
