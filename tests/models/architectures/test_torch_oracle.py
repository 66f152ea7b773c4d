"""Layer-wise coordination and the Transformer against torch's own Transformer layers, given the same weights.

One source and one target at a time, so that no mask but the architecture's own is at work. Shape suffixes: S source
positions, T target positions, X = S + T, D width.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tandem.models.architectures.layerwise import Layerwise
from tandem.models.architectures.transformer import Transformer
from tests.models.architectures.examples import Case, batch, sentences, targets

pytestmark = pytest.mark.usefixtures("no_gradients")


def copied(into: nn.MultiheadAttention, maps: Tensor, output: Tensor) -> None:
    """The query, key and value maps, one below the other, and the output map; all without biases."""
    into.in_proj_weight.copy_(maps)
    into.in_proj_bias.zero_()
    into.out_proj.weight.copy_(output)
    into.out_proj.bias.zero_()


def copied_rest(into: Any, layer: Any) -> None:
    """Norms and feed-forward."""
    for number, norm in enumerate(layer.norms, start=1):
        getattr(into, f"norm{number}").load_state_dict(norm.state_dict())
    into.linear1.load_state_dict(layer.feed_forward.inner.state_dict())
    into.linear2.load_state_dict(layer.feed_forward.outer.state_dict())


def encoder_layer(layer: Any, config: Any) -> nn.TransformerEncoderLayer:
    """torch's layer with the weights of one of self-attention and feed-forward."""
    made = nn.TransformerEncoderLayer(
        config.width, config.heads, config.hidden, 0.0, batch_first=True, norm_first=config.norm == "pre"
    ).double()
    copied(made.self_attn, layer.attention.query_key_value.weight, layer.attention.output.weight)
    copied_rest(made, layer)
    return made


def decoder_layer(layer: Any, config: Any) -> nn.TransformerDecoderLayer:
    """torch's layer with the weights of one that also attends to the source."""
    made = nn.TransformerDecoderLayer(
        config.width, config.heads, config.hidden, 0.0, batch_first=True, norm_first=config.norm == "pre"
    ).double()
    copied(made.self_attn, layer.attention.query_key_value.weight, layer.attention.output.weight)
    maps = torch.cat([layer.query.weight, layer.source_keys.weight, layer.source_values.weight])
    copied(made.multihead_attn, maps, layer.output.weight)
    copied_rest(made, layer)
    return made


def causal(length: int) -> Tensor:
    """True where a position must not be seen."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("variant", ["full", "post-norm", "one-layer", "no-side-embeddings"])
def test_layer_wise_coordination_is_one_encoder_with_a_mask(variant: str) -> None:
    """Of [source ; target]: the source sees itself, the target the source and itself so far (eq. 3)."""
    model = Case("layerwise", variant).build()
    assert isinstance(model, Layerwise)
    sources, target_BT = batch(sentences(model, (5,))), targets(1, 4)
    source_S = model._embed(sources[0].values, model.positions.table[:5], model.source_side)
    target_T = model._embed(target_BT, model.positions.table[:4], model.target_side)
    hidden_XX = torch.zeros(9, 9, dtype=torch.bool)
    hidden_XX[:5, 5:] = True
    hidden_XX[5:, 5:] = causal(4)
    x_1XD = torch.cat([source_S, target_T], dim=1)
    for layer in model.stack:
        x_1XD = encoder_layer(layer, model.config)(x_1XD, src_mask=hidden_XX)
    expected_BTV = model.final_norm(x_1XD[:, 5:]) @ model.embedding.mT
    torch.testing.assert_close(model.score(target_BT, model.encode(sources)), expected_BTV, atol=1e-11, rtol=0)


@pytest.mark.parametrize("variant", ["pre-sinusoidal-decoder", "post-learned-none"])
def test_the_transformer_is_torchs(variant: str) -> None:
    model = Case("transformer", variant).build()
    assert isinstance(model, Transformer)
    sources, target_BT = batch(sentences(model, (5,))), targets(1, 4)
    x_1SD = model._embed(
        model.source_embedding, sources[0].values, model.source_positions.table[:5], model.source_embedding_norm
    )
    for layer in model.encoder:
        x_1SD = encoder_layer(layer, model.config)(x_1SD)
    memory_1SD = model.encoder_norm(x_1SD)
    y_1TD = model._embed(
        model.target_embedding, target_BT, model.target_positions.table[:4], model.target_embedding_norm
    )
    for layer in model.decoder:
        y_1TD = decoder_layer(layer, model.config)(y_1TD, memory_1SD, tgt_mask=causal(4))
    expected_BTV = model.decoder_norm(y_1TD) @ model.output_weight.mT
    torch.testing.assert_close(model.score(target_BT, model.encode(sources)), expected_BTV, atol=1e-11, rtol=0)
