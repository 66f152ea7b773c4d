"""Transformers in CTranslate2's form: one with random weights, and our own trained ones, weight by weight.

CTranslate2 names tokens by strings. Both kinds are given their ids' pieces in our order, so that what is measured reads
and writes the ids of our vocabularies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from tandem.extras.laboratory.transformers import random_transformer
from tandem.extras.laboratory.workload import TransformerSize
from tandem.models.architectures.transformer import DecoderLayer, EncoderLayer, Transformer
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import Array
from tandem.models.search.shortlist import Shortlist
from tandem.models.steps.loading import load_bundle_model
from tandem.models.vocabulary import Vocabulary

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # our ids 0 to 3, by the names that CTranslate2 looks for


def random_tokens(vocabulary: int) -> list[str]:
    """Names for the types of a random model."""
    return [*SPECIAL, *(f"t{number}" for number in range(len(SPECIAL), vocabulary))]


def pieces(vocabulary: Vocabulary) -> list[str]:
    """The pieces of a vocabulary by id, the special ones by CTranslate2's names."""
    return [*SPECIAL, *(vocabulary.piece_of(token) for token in range(len(SPECIAL), vocabulary.size))]


def write_random(folder: Path, size: TransformerSize, vocabulary: int, precision: str) -> None:
    """A pre-norm Transformer with random weights; the speed of forced lengths does not depend on them.

    Args:
        folder: that exists and takes the model.
        size: of the model.
        vocabulary: types on either side.
        precision: "int8" or "float32".
    """
    model = random_transformer(size, vocabulary, attention_bias=True, output_bias=True)  # biases as usual
    tokens = random_tokens(vocabulary)
    write_model(folder, model, tokens, tokens, precision)


def write_bundle_model(folder: Path, bundle: Bundle, precision: str) -> None:
    """The model of one of our Transformer bundles.

    Args:
        folder: that exists and takes the model.
        bundle: of the architecture "transformer".
        precision: "int8" or "float32".

    Raises:
        ConfigError: a bundle of another architecture, with context gates or a recurrent decoder, or whose sources are
            read without their end.
    """
    model = load_bundle_model(bundle)
    if not isinstance(model, Transformer):
        raise ConfigError(
            f"CTranslate2 runs bundles of the architecture 'transformer', but {bundle.path} is of"
            f" {bundle.manifest.architecture!r}"
        )
    if model.config.context_gate:
        raise ConfigError(f"CTranslate2 has no context gates, but {bundle.path} does: compare another bundle")
    if model.config.history != "attention":
        raise ConfigError(f"CTranslate2 has no decoders of history {model.config.history!r}, as {bundle.path} has")
    if not model.config.reads_end:
        raise ConfigError(f"the sources of {bundle.path} are read without their end: compare another bundle")
    names = pieces(bundle.source_vocabularies[0]), pieces(bundle.target_vocabulary)
    write_model(folder, model, *names, precision)
    if bundle.shortlist is not None:
        write_vocabulary_map(folder, bundle.shortlist, *names)


def write_vocabulary_map(folder: Path, shortlist: Shortlist, source: Sequence[str], target: Sequence[str]) -> None:
    """A shortlist beside its model: a line for what every list holds, and one for each source token."""
    (table,) = shortlist.tables
    rows = zip(source, np.split(table.targets, table.starts[1:-1]), strict=True)
    lines = (
        f"{name}\t{' '.join(target[token] for token in row.tolist())}\n"
        for name, row in (("", shortlist.always), *rows)
    )
    (folder / "vmap.txt").write_text("".join(lines), encoding="utf-8")


def write_model(folder: Path, model: Transformer, source: Sequence[str], target: Sequence[str], precision: str) -> None:
    """A model of ours, with names for the types of its vocabularies by id."""
    made = transformer_specification(model)
    made.register_source_vocabulary(list(source))
    made.register_target_vocabulary(list(target))
    made.config.add_source_eos = False  # our ids end with it
    made.validate()
    made.optimize(quantization="int8" if precision == "int8" else None)
    made.save(str(folder))


def transformer_specification(model: Transformer) -> Any:
    """CTranslate2's specification of a model of ours, with the model's weights."""
    config = model.config
    layers = (config.encoder_layers, config.decoder_layers)
    made = transformer_spec.TransformerSpec.from_config(
        layers,
        config.heads,
        pre_norm=config.norm == "pre",
        activation=common_spec.Activation[config.activation.upper()],
        layernorm_embedding=config.embedding_norm,
    )
    embedding_norms = (model.source_embedding_norm, model.target_embedding_norm)
    sides = (
        (made.encoder, model.source_embedding, model.source_positions, model.encoder_norm),
        (made.decoder, model.target_embedding, model.target_positions, model.decoder_norm),
    )
    for spec, embedding_norm in zip((made.encoder, made.decoder), embedding_norms, strict=True):
        if config.embedding_norm:
            _norm(spec.layernorm_embedding, embedding_norm)
    for spec, embedding, positions, norm in sides:
        _embeddings(spec).weight = _array(embedding)
        spec.scale_embeddings = config.scale_embedding
        spec.position_encodings.encodings = _array(positions.table)
        if config.norm == "pre":
            _norm(spec.layer_norm, norm)
    for spec, layer in zip(made.encoder.layer, model.encoder, strict=True):
        assert isinstance(layer, EncoderLayer)
        _self_attention(spec.self_attention, layer, layer.norms[0])
        _feed_forward(spec.ffn, layer, layer.norms[1])
    for spec, layer in zip(made.decoder.layer, model.decoder, strict=True):
        assert isinstance(layer, DecoderLayer)
        _self_attention(spec.self_attention, layer, layer.norms[0])
        _source_attention(spec.attention, layer)
        _feed_forward(spec.ffn, layer, layer.norms[2])
    weight, bias = model.output_parameters()
    made.decoder.projection.weight = _array(weight)
    if bias is not None:
        made.decoder.projection.bias = _array(bias)
    return made


def _self_attention(spec: Any, layer: EncoderLayer | DecoderLayer, norm: Any) -> None:
    _norm(spec.layer_norm, norm)
    _linear(spec.linear[0], layer.attention.query_key_value)  # query, key, value in this order in both
    _linear(spec.linear[1], layer.attention.output)


def _source_attention(spec: Any, layer: DecoderLayer) -> None:
    _norm(spec.layer_norm, layer.norms[1])
    _linear(spec.linear[0], layer.query)
    _linear(spec.linear[1], layer.source_keys, layer.source_values)
    _linear(spec.linear[2], layer.output)


def _feed_forward(spec: Any, layer: EncoderLayer | DecoderLayer, norm: Any) -> None:
    _norm(spec.layer_norm, norm)
    _linear(spec.linear_0, layer.feed_forward.inner)
    _linear(spec.linear_1, layer.feed_forward.outer)


def _linear(spec: Any, *maps: Any) -> None:
    """Several maps of one input are one product, their outputs side by side."""
    spec.weight = np.concatenate([_array(one.effective_weight()) for one in maps])
    if maps[0].bias is not None:
        spec.bias = np.concatenate([_array(one.bias) for one in maps])


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _embeddings(spec: Any) -> Any:
    """The encoder has a list of embeddings, one for each feature of a token, the decoder one."""
    return spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings


def _array(tensor: Any) -> Array:
    array: Array = tensor.detach().float().numpy().copy()
    return array
