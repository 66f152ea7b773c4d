"""Hugging Face's form of the Transformer that peers run or train with random weights."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from benchmarks.workload import TransformerSize
from models.vocabulary import BOS, EOS, PAD


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
