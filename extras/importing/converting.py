"""A bundle's Transformer as Hugging Face's MarianMT, which transformers runs and CTranslate2 converts.

It computes the same function in another form, which differs in what those programs take for granted:

- Decoding begins with a vector of zeros. So the row b of our beginning is taken from every row of its table. All
  logits of a step lose the same ``h b``, which no softmax sees; and where the first layer then reads ``x - s b`` in the
  place of x (s: the embeddings' scale), its biases make up for that: queries, keys and values get ``s W b`` more, and
  what the attention adds to its input gets ``s b``.
- Positions are halves, first sines and then cosines. The numbers of every vector of the model's width may stand in any
  order, as long as all of them have the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tandem.extras.importing.huggingface import make_plan
from tandem.extras.importing.model import BIASES, Types
from tandem.extras.importing.opus import FORM
from tandem.models.architectures.transformer import DecoderLayer, EncoderLayer, Transformer, TransformerConfig
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.vocabulary import (
    BOS,
    EOS,
    PAD,
    UNK,
    MappedVocabulary,
    SentencePieceVocabulary,
    Vocabulary,
    language_piece,
    untagged,
)
from tandem.models.vocabulary.listed import START

_SPECIAL = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}
_POSITIONS = ("halves", "sinusoidal")
_DEFAULTS = SearchOptions()
_WITHOUT_FIELD = ("coverage_penalty", "min_length_ratio", "max_length_ratio", "max_rounds", "prefix", "exhaustive")
_READING = re.compile(r"_embedding$|\.(query_key_value|query|source_keys|source_values|inner)\.weight$")
_WRITING = re.compile(r"\.(output|outer|norms\.\d)\.(weight|bias)$")
"""Tensors whose columns, and whose rows, are the numbers of a vector of the model's width."""


@dataclass(frozen=True, slots=True)
class MarianFiles:
    """What a folder of MarianMT holds.

    Attributes:
        tables: of JSON, by file name.
        tensors: of the model, in float32.
        sentencepiece: serialised models, by file name.
        left_out: what the form cannot say of the search, a line each.
    """

    tables: Mapping[str, Mapping[str, Any]]
    tensors: Mapping[str, Tensor]
    sentencepiece: Mapping[str, bytes]
    left_out: tuple[str, ...]


def marian_files(bundle: Bundle) -> MarianFiles:
    """The files of a bundle in that form.

    Raises:
        ConfigError: the form cannot say what the model computes; every reason is named.
    """
    model = load_bundle_model(bundle)
    if not isinstance(model, Transformer):
        raise ConfigError(f"{bundle.path} cannot be written as {FORM}: it is a {bundle.manifest.architecture}")
    if faults := _faults(bundle, model.config):
        raise ConfigError(f"{bundle.path} cannot be written as {FORM}: {'; '.join(faults)}")
    marian = as_marian(model)
    shared = marian.config.tied == "all"
    sides = (untagged(bundle.source_vocabularies[0]), bundle.target_vocabulary)
    names = [_names(one, bundle) for one in sides]
    tables: dict[str, Mapping[str, Any]] = {
        "config.json": _config(marian.config, shared),
        "generation_config.json": _generation(bundle),
        "tokenizer_config.json": _tokenizer(bundle, separate=not shared),
        "vocab.json": {name: token for token, name in enumerate(names[0])},
    }
    if not shared:
        tables["target_vocab.json"] = {name: token for token, name in enumerate(names[1])}
    spm = {f"{side}.spm": _sentencepiece(one) for side, one in zip(("source", "target"), sides, strict=True)}
    return MarianFiles(tables, marian_tensors(marian), spm, tuple(_left_out(bundle)))


def write_marian(files: MarianFiles, folder: Path, card: str) -> None:
    """Fill an empty folder, with the card as its page."""
    for name, table in files.tables.items():
        (folder / name).write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for name, content in files.sentencepiece.items():
        (folder / name).write_bytes(content)
    (folder / "README.md").write_text(card, encoding="utf-8")
    save_file(dict(files.tensors), folder / "model.safetensors", metadata={"format": "pt"})


def as_marian(model: Transformer) -> Transformer:
    """The same function as a model that begins with zeros, with a bias everywhere and positions in halves.

    Args:
        model: after norms, with ``tied`` embeddings and positions in halves or as the paper has them.
    """
    with torch.random.fork_rng(devices=[]):
        made = Transformer(replace(model.config, positions="halves", **BIASES))
    made.prepare_for_inference()
    own = model_tensors(model)
    with torch.no_grad():
        for name, tensor in model_tensors(made).items():
            if name in own:
                tensor.copy_(own[name])
            else:
                tensor.zero_()
        _begin_with_zeros(made)
        if model.config.positions == "sinusoidal":
            _in_halves(made)
    return made


def marian_tensors(model: Transformer) -> dict[str, Tensor]:
    """The tensors of such a model under the names of the form, rows in the order of its ids."""
    sizes = (model.config.source_vocabularies[0], model.config.target_vocabulary)
    plan = make_plan(model.config, *map(_types, sizes))
    tensors: dict[str, Tensor] = {}
    for name, tensor in model_tensors(model).items():
        made = plan[name]
        if made.rows is None:
            pieces = tensor.detach().chunk(len(made.parts))
            tensors |= {part.names[0]: piece.clone() for part, piece in zip(made.parts, pieces, strict=True)}
            continue
        (part,) = made.parts
        theirs = tensor.new_zeros((max(made.rows) + 1, *tensor.shape[1:]))
        for token, row in enumerate(made.rows):
            if row >= 0 and token != PAD:  # padding has the row of the beginning, which is zero
                theirs[row] = tensor.detach()[token]
        tensors[part.names[0]] = theirs[None] if part.flat else theirs
    return tensors


def _begin_with_zeros(model: Transformer) -> None:
    """Take the beginning's row from its table."""
    start_D = model.target_embedding[BOS].clone()
    model.target_embedding.sub_(start_D)
    added_D = start_D * (math.sqrt(model.config.width) if model.config.scale_embedding else 1.0)
    reading = [model.decoder[0], *([model.encoder[0]] if model.config.tied == "all" else [])]
    for layer in reading:
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        inner, outer = layer.attention.query_key_value, layer.attention.output
        assert inner.bias is not None and outer.bias is not None
        inner.bias.add_(inner.weight @ added_D)
        outer.bias.add_(added_D)


def _in_halves(model: Transformer) -> None:
    """Put even dimensions, where the paper's sines are, before odd ones."""
    width = model.config.width
    order_D = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    for name, tensor in model_tensors(model).items():
        if _READING.search(name):
            tensor.copy_(tensor[:, order_D])
        elif _WRITING.search(name):
            tensor.copy_(tensor[order_D])


def _types(size: int) -> Types:
    """Our ids in their order: the end, unknown, all pieces, and padding, with which decoding begins."""
    pad = size - 2
    names = (_SPECIAL["pad"], _SPECIAL["unk"], START, _SPECIAL["eos"])
    return Types((pad, 1, pad, 0, *range(2, pad)), (*names, *(f"{token}" for token in range(2, pad))))


def _names(vocabulary: Vocabulary, bundle: Bundle) -> list[str]:
    """The pieces by their id."""
    tags = {language_piece(target): f">>{target}<<" for _, target in bundle.manifest.pairs}
    own = [vocabulary.piece_of(token) for token in range(EOS + 1, vocabulary.size)]
    return [_SPECIAL["eos"], _SPECIAL["unk"], *(tags.get(name, name) for name in own), _SPECIAL["pad"]]


def _sentencepiece(vocabulary: Vocabulary) -> bytes:
    return vocabulary.model if isinstance(vocabulary, MappedVocabulary) else vocabulary.to_bytes()


def _faults(bundle: Bundle, config: TransformerConfig) -> list[str]:
    manifest = bundle.manifest
    fixed: Mapping[str, tuple[Any, ...]] = {
        "norm": ("post",),
        "history": ("attention",),
        "context_gate": (False,),
        "positions": _POSITIONS,
        "first_position": (0,),
        "reads_end": (True,),
        "embedding_norm": (False,),
        "tied": ("all", "decoder"),
    }
    faults = [
        f"{name} must be {' or '.join(map(repr, values))}, but is {getattr(config, name)!r}"
        for name, values in fixed.items()
        if getattr(config, name) not in values
    ]
    if manifest.target_form != "text" or len(bundle.source_vocabularies) != 1:
        faults.append("it must write text of one source")
    if manifest.pairs and manifest.tags != "target":
        faults.append("it must have tags of languages before its sources alone")
    for vocabulary in (untagged(bundle.source_vocabularies[0]), bundle.target_vocabulary):
        if not isinstance(vocabulary, SentencePieceVocabulary | MappedVocabulary):
            faults.append(f"its vocabularies must be sentencepiece models, but one is a {type(vocabulary).__name__}")
    return faults


def _config(config: TransformerConfig, shared: bool) -> dict[str, Any]:
    source, target = config.source_vocabularies[0] - 1, config.target_vocabulary - 1  # two of ours are one type there
    both = {f"{side}_attention_heads": config.heads for side in ("encoder", "decoder")}
    both |= {f"{side}_ffn_dim": config.hidden for side in ("encoder", "decoder")}
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": source,
        "decoder_vocab_size": target,
        "d_model": config.width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **both,
        "activation_function": config.activation,
        "max_position_embeddings": config.max_positions,
        "scale_embedding": config.scale_embedding,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        "dropout": 0.0,
        "torch_dtype": "float32",
        **_ids(target),
    }


def _ids(types: int) -> dict[str, int]:
    return {"eos_token_id": 0, "pad_token_id": types - 1, "decoder_start_token_id": types - 1}


def _generation(bundle: Bundle) -> dict[str, Any]:
    """The defaults of the search."""
    options, limits = bundle.manifest.decoding, bundle.manifest.limits
    types = bundle.target_vocabulary.size - 1
    rows = _types(types + 1).rows
    banned = sorted({rows[token] for token in (*options.suppressed, PAD, UNK)})
    ids = _ids(types)
    return {
        "num_beams": options.beam_size,
        "early_stopping": True,
        "max_length": min(options.max_length, limits.max_target_tokens) + 2,  # what it begins with counts, and the end
        "min_length": options.min_length + 1 if options.min_length else 0,
        "length_penalty": options.length_penalty if options.length_penalty_form == "power" else 0.0,
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "bad_words_ids": [[token] for token in banned],
        "forced_eos_token_id": ids["eos_token_id"],
        **ids,
    }


def _tokenizer(bundle: Bundle, *, separate: bool) -> dict[str, Any]:
    manifest = bundle.manifest
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": manifest.source_languages[0],
        "target_lang": manifest.target_language,
        "separate_vocabs": separate,
        "model_max_length": manifest.limits.max_source_tokens + 1,
        **{f"{kind}_token": name for kind, name in _SPECIAL.items()},
    }


def _left_out(bundle: Bundle) -> list[str]:
    """What the form has no field for."""
    options, manifest = bundle.manifest.decoding, bundle.manifest
    lines = []
    if options.length_penalty_form == "gnmt":
        lines.append(f"length_penalty_form is {options.length_penalty_form!r}: the length is not penalised there")
    set_here = [name for name in _WITHOUT_FIELD if getattr(options, name) != getattr(_DEFAULTS, name)]
    lines += [f"{name} is {getattr(options, name)!r}: it counts for nothing there" for name in set_here]
    lines += [f"the {name} stays here" for name in ("shortlist", "lexicon", "dictionary") if getattr(manifest, name)]
    return lines
