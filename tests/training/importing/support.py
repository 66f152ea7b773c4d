"""Small models in the forms in which public ones are published: vocabularies learnt here, weights at random."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from safetensors.torch import save_file
from torch import Tensor

from training.export.sentences import proof_sentences

ENGLISH, GERMAN = proof_sentences("en")[:40], proof_sentences("de")[:40]
CONFIG: dict[str, Any] = {
    "model_type": "marian",
    "architectures": ["MarianMTModel"],
    "is_encoder_decoder": True,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "activation_function": "swish",
    "scale_embedding": True,
    "max_position_embeddings": 64,
    "normalize_before": False,
    "share_encoder_decoder_embeddings": True,
    "transformers_version": "4.40.0",
}
GENERATION = {"num_beams": 4, "max_length": 40, "length_penalty": 0.9}


def sentencepiece_model(lines: Iterable[str], size: int) -> bytes:
    """As OPUS-MT's are: unigrams, no bytes, Unicode's compatibility forms unified."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type="unigram",
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(model: bytes) -> list[str]:
    """The normal pieces of a sentencepiece model."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]


def write_vocabulary(folder: Path, *, tags: Sequence[str] = (), seed: int = 1) -> dict[str, int]:
    """Both sentencepiece models and one list in an order of its own, in which every tenth piece is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target = sentencepiece_model(ENGLISH, 120), sentencepiece_model(GERMAN, 120)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    rng = np.random.default_rng(seed)
    known = [piece for number, piece in enumerate(dict.fromkeys(pieces(source) + pieces(target))) if number % 10]
    shuffled = [*known, "</s>", "<unk>", *tags]
    rng.shuffle(shuffled)
    table = {piece: number for number, piece in enumerate([*shuffled, "<pad>"])}
    write_json(folder / "vocab.json", table)
    write_json(folder / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de"})
    return table


def config_of(table: Mapping[str, int], **changed: Any) -> dict[str, Any]:
    """The configuration of a model with a vocabulary."""
    special = {"pad_token_id": table["<pad>"], "eos_token_id": table["</s>"], "decoder_start_token_id": table["<pad>"]}
    return CONFIG | {"vocab_size": len(table), "bad_words_ids": [[table["<pad>"]]]} | special | changed


def marian_tensors(config: Mapping[str, Any], *, seed: int = 1) -> dict[str, Tensor]:
    """Random weights under the names that a MarianMT file has."""
    generator = torch.Generator().manual_seed(seed)
    d, f, types = config["d_model"], config["encoder_ffn_dim"], config["vocab_size"]
    shapes: dict[str, tuple[int, ...]] = {"model.shared.weight": (types, d), "final_logits_bias": (1, types)}
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for layer in range(config[f"{side}_layers"]):
            own = f"model.{side}.layers.{layer}"
            for attention in attentions:
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes[f"{own}.{attention}.{name}.weight"] = (d, d)
                    shapes[f"{own}.{attention}.{name}.bias"] = (d,)
            for name, size in (("fc1", (f, d)), ("fc2", (d, f))):
                shapes[f"{own}.{name}.weight"], shapes[f"{own}.{name}.bias"] = size, size[:1]
            for name in (*(f"{one}_layer_norm" for one in attentions), "final_layer_norm"):
                shapes[f"{own}.{name}.weight"] = shapes[f"{own}.{name}.bias"] = (d,)
    tensors = {name: 0.3 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    tensors = {name: tensor + 1 if "norm.weight" in name else tensor for name, tensor in tensors.items()}
    tensors["final_logits_bias"][0, config["eos_token_id"]] += 2.0  # so that hypotheses end
    return tensors


def write_marian(folder: Path, *, tags: Sequence[str] = (), **changed: Any) -> dict[str, Any]:
    """A whole MarianMT folder; the configuration is returned."""
    config = config_of(write_vocabulary(folder, tags=tags), **changed)
    write_json(folder / "config.json", config)
    named = ("pad_token_id", "eos_token_id", "decoder_start_token_id", "bad_words_ids")
    forced = {"forced_eos_token_id": config["eos_token_id"]}
    write_json(folder / "generation_config.json", GENERATION | forced | {name: config[name] for name in named})
    save_file(marian_tensors(config), folder / "model.safetensors")
    return config


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")


def change_json(path: Path, **changed: Any) -> None:
    """Set fields of a table in a file."""
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | changed)
