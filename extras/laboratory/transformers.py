"""Transformers with random weights: ours, and Hugging Face's, which peers run or train."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from tandem.extras.laboratory.workload import TransformerSize
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.architectures.transformer import Transformer
from tandem.models.vocabulary import BOS, EOS, PAD


def random_transformer(size: TransformerSize, types: int, **further: Any) -> Transformer:
    """Ours, always with the same weights: so many types on either side, and further keys of ``[model]``."""
    config = {"source_vocabularies": [types], "target_vocabulary": types, **size.model, **further}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_model("transformer", load_config("transformer", config, "random"))
    assert isinstance(model, Transformer)
    return model


def marian(size: TransformerSize, vocabularies: tuple[int, int], **further: Any) -> Any:
    """MarianMT, the library's plain Transformer for translation, always with the same random weights.

    Args:
        size: of the model.
        vocabularies: types of the source and of the target.
        further: of its configuration, such as dropout.
    """
    transformers = import_module("transformers")  # where it is used: the rest is measured without it
    config = transformers.MarianConfig(
        vocab_size=vocabularies[0],
        decoder_vocab_size=vocabularies[1],
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=True,
        max_position_embeddings=size.positions,
        encoder_layers=size.layers,
        encoder_ffn_dim=size.hidden,
        encoder_attention_heads=size.heads,
        decoder_layers=size.layers,
        decoder_ffn_dim=size.hidden,
        decoder_attention_heads=size.heads,
        d_model=size.width,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        **further,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.MarianMTModel(config)
