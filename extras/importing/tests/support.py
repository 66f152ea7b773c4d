"""Small models in the forms in which public ones are published: vocabularies learnt here, weights at random."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from tandem.extras.proofs.shapes import pieces, sentencepiece_model, write_json
from tandem.extras.shared.sentences import proof_sentences

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


NORMS = {
    "m2m_100": ("layer_norm",),
    "bart": ("layernorm_embedding",),
    "mbart": ("layernorm_embedding", "layer_norm"),
    "pegasus": ("layer_norm",),
}
ENDS = {
    "marian": 2.5,
    "pegasus": 3.7,
    "bart": 1.5,
    "mbart": 6.0,
    "m2m_100": 3.0,
}  # by how much the logit of the end is raised
LEARNED = ("bart", "mbart")


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


def family_tensors(config: Mapping[str, Any], *, seed: int = 1) -> dict[str, Tensor]:
    """Random weights under the names that files of BART's kind have; ``config`` says which of them there are."""
    generator = torch.Generator().manual_seed(seed)
    d, f, types = config["d_model"], config["encoder_ffn_dim"], config["vocab_size"]
    kind = config["model_type"]
    shapes: dict[str, tuple[int, ...]] = {"model.shared.weight": (types, d)}
    shapes |= {"final_logits_bias": (1, types)} if kind != "m2m_100" else {}
    for side in ("encoder", "decoder"):
        for name in NORMS.get(kind, ()):
            shapes[f"model.{side}.{name}.weight"] = shapes[f"model.{side}.{name}.bias"] = (d,)
        if kind in LEARNED:
            shapes[f"model.{side}.embed_positions.weight"] = (config["max_position_embeddings"] + 2, d)
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
    # Matrices that large make the next token depend on more than the last one.
    tensors = {name: torch.randn(s, generator=generator) * (0.4 if len(s) > 1 else 0.3) for name, s in shapes.items()}
    tensors = {n: tensor + 1 if "norm" in n and n.endswith("weight") else tensor for n, tensor in tensors.items()}
    if "final_logits_bias" in tensors:
        tensors["final_logits_bias"][0, config["eos_token_id"]] += ENDS[kind]
    else:
        shift = tensors["model.decoder.layer_norm.bias"]  # of all features, so that the end's logit is larger
        tensors["model.shared.weight"][config["eos_token_id"]] += ENDS[kind] * shift / shift.norm() ** 2
    return tensors


def write_marian(folder: Path, *, tags: Sequence[str] = (), **changed: Any) -> dict[str, Any]:
    """A whole MarianMT folder; the configuration is returned."""
    config = config_of(write_vocabulary(folder, tags=tags), **changed)
    write_json(folder / "config.json", config)
    named = ("pad_token_id", "eos_token_id", "decoder_start_token_id", "bad_words_ids")
    forced = {"forced_eos_token_id": config["eos_token_id"]}
    write_json(folder / "generation_config.json", GENERATION | forced | {name: config[name] for name in named})
    save_file(family_tensors(config), folder / "model.safetensors")
    return config


M2M = CONFIG | {"model_type": "m2m_100", "activation_function": "relu", "pad_token_id": 1, "eos_token_id": 2}
M2M |= {"bos_token_id": 0, "decoder_start_token_id": 2, "architectures": ["M2M100ForConditionalGeneration"]}
for _name in ("normalize_before", "share_encoder_decoder_embeddings"):
    del M2M[_name]
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def write_m2m(folder: Path, *, languages: Sequence[str] = ("en", "de", "fr"), **changed: Any) -> dict[str, Any]:
    """An M2M100 folder: the list of pieces in an order of its own, and the languages' tags after it."""
    folder.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model([*ENGLISH, *GERMAN], 160)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    known = [piece for number, piece in enumerate(pieces(model)) if number % 10]
    np.random.default_rng(2).shuffle(known)
    table = {piece: number for number, piece in enumerate([*SPECIAL, *known])}
    write_json(folder / "vocab.json", table)
    write_json(folder / "tokenizer_config.json", {"src_lang": None, "tgt_lang": None})
    tags = [f"__{code}__" for code in languages]
    write_json(folder / "special_tokens_map.json", {"additional_special_tokens": tags})
    return _write_m2m(folder, len(table) + len(tags) + 8, **changed)


def write_nllb(
    folder: Path,
    *,
    languages: Sequence[str] = ("eng_Latn", "deu_Latn", "zho_Hans"),
    tokenizer_class: str = "NllbTokenizer",
    **changed: Any,
) -> dict[str, Any]:
    """An NLLB folder: the sentencepiece model's own order behind four special pieces, then tags and a mask."""
    folder.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model([*ENGLISH, *GERMAN], 160)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    first = len(SPECIAL) + len(pieces(model))
    added = {str(first + place): {"content": code, "special": True} for place, code in enumerate(languages)}
    added[str(first + len(languages))] = {"content": "<mask>", "special": True}
    write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": added, "tokenizer_class": tokenizer_class})
    return _write_m2m(folder, first + len(added) + 2, tokenizer_class=tokenizer_class, **changed)


def _write_m2m(folder: Path, types: int, **changed: Any) -> dict[str, Any]:
    config = M2M | {"vocab_size": types} | changed
    write_json(folder / "config.json", config)
    ids = {name: config[f"{name}_token_id"] for name in ("bos", "pad", "eos", "decoder_start")}
    table = {"max_length": 40, "num_beams": 5} | {f"{name}_token_id": token for name, token in ids.items()}
    write_json(folder / "generation_config.json", table)
    save_file(family_tensors(config), folder / "model.safetensors")
    return config


def write_mbart(folder: Path, *, languages: Sequence[str] = ("en_XX", "de_DE"), **changed: Any) -> dict[str, Any]:
    """An mBART-50 folder: fairseq's order of pieces, learned positions."""
    table: dict[str, Any] = {
        "model_type": "mbart",
        "activation_function": "gelu",
        "architectures": ["MBartForConditionalGeneration"],
    }
    table |= {"normalize_before": True, "normalize_embedding": True, "add_final_layer_norm": True}
    return write_nllb(folder, languages=languages, tokenizer_class="MBart50Tokenizer", **table | changed)


def byte_pairs(words: Iterable[str]) -> list[str]:
    """Merges that make each word, as GPT-2's alphabet writes it, from the left."""
    merges: dict[str, None] = {}
    for word in words:
        for end in range(1, len(word)):
            merges.setdefault(f"{word[:end]} {word[end]}")
    return list(merges)


def write_bart(folder: Path, **changed: Any) -> dict[str, Any]:
    """A BART folder: byte pairs of the words of our sentences, learned positions, norms of embeddings."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [word for line in (*ENGLISH, *GERMAN) for word in line.split() if word.isascii()]
    merges = byte_pairs([*words[:40], *(f"Ġ{word}" for word in words[:120:2])])
    single = [*map(chr, range(0x21, 0x7F)), *map(chr, range(0xA1, 0xAD)), *map(chr, range(0xAE, 0x144))]
    made = [*SPECIAL, *single, *dict.fromkeys(merge.replace(" ", "") for merge in merges), "<mask>"]
    table = {piece: number for number, piece in enumerate(made)}
    write_json(folder / "vocab.json", table)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    own: dict[str, Any] = {"model_type": "bart", "activation_function": "gelu", "scale_embedding": False}
    own |= {"architectures": ["BartForConditionalGeneration"], "forced_eos_token_id": 2}
    return _write_m2m(folder, len(table), **own | changed)


def write_pegasus(folder: Path, **changed: Any) -> dict[str, Any]:
    """A Pegasus folder: 105 special pieces, then those of the sentencepiece model."""
    folder.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model([*ENGLISH, *GERMAN], 160, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "spiece.model").write_bytes(model)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PegasusTokenizer"})
    table = {"model_type": "pegasus", "activation_function": "relu", "pad_token_id": 0, "eos_token_id": 1}
    table |= {"decoder_start_token_id": 0, "architectures": ["PegasusForConditionalGeneration"]}
    return _write_m2m(folder, 106 + len(pieces(model)), **table | changed)


def change_json(path: Path, **changed: Any) -> None:
    """Set fields of a table in a file."""
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | changed)
