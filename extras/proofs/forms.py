"""Other programs' forms of a model of transformers: CTranslate2's, an Argos package, Marian's own files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

from tandem.extras.importing.bundle import read_model
from tandem.extras.importing.model import Asked, ForeignModel
from tandem.models.architectures.layers.embedding import Sinusoids, sinusoids
from tandem.models.vocabulary import BOS


class Ct2Model:
    """CTranslate2 on a folder that :func:`write_ct2` or one of its converters made, with ids for tokens.

    Args:
        folder: of the model.
        precision: "float32" or "int8".
    """

    def __init__(self, folder: Path, precision: str = "float32") -> None:
        import ctranslate2

        self._translator = ctranslate2.Translator(str(folder), compute_type=precision, intra_threads=1)
        self._names: list[str] = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self._ids = {name: token for token, name in enumerate(self._names)}

    def translate(
        self, sources: Sequence[Sequence[int]], prefix: Sequence[int] = (), **options: Any
    ) -> list[list[int]]:
        """The best hypothesis of a beam of four for each source, without its end."""
        results = self._translator.translate_batch(
            [[self._names[token] for token in source] for source in sources],
            target_prefix=[[self._names[token] for token in prefix]] * len(sources) if prefix else None,
            beam_size=4,
            **options,
        )
        return [[self._ids[name] for name in one.hypotheses[0]] for one in results]


def write_ct2(folder: Path, read: ForeignModel, published: Any, *, ends: bool = False) -> None:
    """The folder that CTranslate2's converter makes of a model, but for the tokenizer, which it need not load.

    Args:
        folder: to write.
        read: of the same model, for the names of its types; those that have none are named by their number.
        published: of the library.
        ends: whether CTranslate2 adds the end to sources by itself.
    """
    from ctranslate2.converters.transformers import _MODEL_LOADERS

    config = published.config
    rows = read.plan["target_embedding"].rows or ()
    known = {row: read.target.piece_of(token) for token, row in reversed([*enumerate(rows)]) if token != BOS}
    with torch.no_grad():
        made = _MODEL_LOADERS[type(config).__name__].get_model_spec(published)
    types = made.decoder.embeddings.weight.shape[0]  # Marian's padding is left out
    names = [known.get(token, f"madeupword{token}") for token in range(types)]
    made.register_source_vocabulary(names)
    made.register_target_vocabulary(names)
    start = config.eos_token_id if types < config.vocab_size else config.decoder_start_token_id
    made.config.eos_token, made.config.decoder_start_token = names[config.eos_token_id], names[start]
    made.config.unk_token, made.config.add_source_eos = "<unk>", ends
    made.validate()
    made.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder))


def ct2_folder(folder: Path, published: Any, asked: Asked) -> Path:
    """A MarianMT folder as CTranslate2's."""
    out = folder.with_name("ct2")
    write_ct2(out, read_model(folder, asked), published, ends=True)
    for side in ("source", "target"):
        shutil.copy(folder / f"{side}.spm", out)
    return out


def argos_package(folder: Path, published: Any, asked: Asked) -> Path:
    """A Pegasus folder as an Argos package, which has OpenNMT's positions, and sources without an end."""
    out = folder.with_name("argos")
    set_positions(published, "sinusoidal")
    write_ct2(out / "model", read_model(folder, asked), published)
    shutil.copy(folder / "spiece.model", out / "sentencepiece.model")
    codes = {"from_code": "en", "to_code": "de", "package_version": "1.9"}
    (out / "metadata.json").write_text(json.dumps(codes), encoding="utf-8")
    return out


@torch.no_grad()
def set_positions(published: Any, kind: Sinusoids) -> None:
    """Sines and cosines of another kind in a model of the library."""
    for side in (published.model.encoder, published.model.decoder):
        table = side.embed_positions.weight
        table.copy_(sinusoids(table.size(0), table.size(1), kind))


def marian_files(folder: Path, published: Any, asked: Asked) -> Path:
    """A MarianMT folder as Marian's own files, whose positions are counted in its way; padding, the last, is left out.

    The table of positions stands among the weights too, which CTranslate2's converter asks for.
    """
    out = folder.with_name("marian")
    out.mkdir()
    set_positions(published, "tensor2tensor")
    config = published.config
    options = {
        **{"type": "transformer", "dim-emb": config.d_model, "transformer-heads": config.encoder_attention_heads},
        **{"enc-depth": config.encoder_layers, "dec-depth": config.decoder_layers},
        **{"transformer-dim-ffn": config.encoder_ffn_dim, "transformer-ffn-activation": config.activation_function},
        **{"transformer-ffn-depth": 2, "transformer-decoder-autoreg": "self-attention", "transformer-preprocess": ""},
        **{"transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-no-projection": False},
        **{"transformer-guided-alignment-layer": "last", "tied-embeddings-all": True, "version": "v1.10"},
    }
    arrays = marian_arrays(load_file(folder / "model.safetensors"))
    arrays |= {"Wemb": arrays["Wemb"][:-1], "decoder_ff_logit_out_b": arrays["decoder_ff_logit_out_b"][:, :-1]}
    arrays["Wpos"] = sinusoids(512, config.d_model, "tensor2tensor").numpy()
    arrays["special:model.yml"] = np.frombuffer(yaml.safe_dump(options).encode() + b"\x00", np.int8)
    np.savez(out / "model.npz", **arrays)
    table = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = [
        f"{json.dumps(piece, ensure_ascii=False)}: {token}\n" for piece, token in table.items() if piece != "<pad>"
    ]
    (out / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    for side in ("source", "target"):
        shutil.copy(folder / f"{side}.spm", out)
    return out


def convert_marian(folder: Path, out: Path) -> None:
    """CTranslate2's own conversion of Marian's files, which is told the end of sources."""
    from ctranslate2.converters import MarianConverter

    MarianConverter(str(folder / "model.npz"), [str(folder / "opus.vocab.yml")] * 2).convert(str(out))
    file = out / "config.json"
    table = json.loads(file.read_text(encoding="utf-8")) | {"add_source_eos": False}
    file.write_text(json.dumps(table), encoding="utf-8")


def marian_arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Tensors of BART's kind under Marian's names: maps inputs x outputs, vectors as tables of one row."""
    made: dict[str, Any] = {"Wemb": tensors["model.shared.weight"].numpy()}
    made["decoder_ff_logit_out_b"] = tensors["final_logits_bias"].numpy()
    for name, tensor in tensors.items():
        parts = name.split(".")
        if "layers" not in parts:
            continue
        scope, kind, value = f"{parts[1]}_l{int(parts[3]) + 1}", parts[-1], tensor.numpy()
        letter = "W" if kind == "weight" else "b"
        if block := {"self_attn": "self", "encoder_attn": "context"}.get(parts[4]):
            key = f"{scope}_{block}_{letter}{parts[5][0]}"  # of query, key, value, output
        elif parts[4] in ("fc1", "fc2"):
            key = f"{scope}_ffn_{letter}{parts[4][-1]}"
        else:
            own = {"self_attn_layer_norm": "self_Wo", "encoder_attn_layer_norm": "context_Wo"}.get(parts[4], "ffn_ffn")
            key = f"{scope}_{own}_ln_{'scale' if kind == 'weight' else 'bias'}"
        made[key] = value.T.copy() if value.ndim == 2 else value[None]
    return made
