"""Layer-wise coordination (He et al., NeurIPS 2018): one stack of layers for the source and the target alike.

Layer i turns the source states of layer i - 1 into source states by self-attention over the source, and the target
states of layer i - 1 into target states by *mixed attention* over the source states and the target states so far, in
one softmax and with the same weights. Source positions see no target position, so the source is computed once: its
keys and values in every layer are the memory. Each part of the design can be switched off (table 3).

Figure 1 shows a norm after each residual connection. The authors trained with tensor2tensor, whose Transformer had by
then moved its norms in front of the sub-layers, and 10 to 22 layers do not learn with norms behind: pre-norm is the
default, and the figure's is there as it is and with DeepNorm's constants (Wang et al. 2022).

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, D width,
P pool slots, H heads, X = P + T.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import (
    FeedForward,
    KeyValueMemory,
    KeyValueState,
    SelfAttention,
    additive_mask,
    by_query,
    causal_context,
    causal_logits,
    made_whole,
    over_rows,
    over_sentences,
    shared_context,
    shared_logits,
    split_heads,
)
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.embedding import PositionEmbedding, narrowed
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters, mean_by_source
from tandem.models.config import bounded
from tandem.models.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LayerwiseConfig:
    """Configuration of :class:`Layerwise`.

    Attributes:
        source_vocabularies: types of the joint vocabulary (one entry; 0 takes the prepared data's).
        target_vocabulary: the same number.
        width: model width d.
        hidden: feed-forward width f.
        heads: attention heads; must divide the width.
        layers: layers of the stack; without weight sharing those of both stacks together, half a side.
        share_weights: one stack for both sides; otherwise each side has its own, and the target's maps of keys and
            values are applied to what the corresponding layer of the source has made.
        mixed_attention: one softmax over source and target; otherwise one over each with the same maps, summed.
        side_embeddings: add a learned vector that says source or target to every position.
        norm: "pre" normalises the input of each sub-layer and, once, what the last makes of the target; "post"
            normalises after adding (figure 1); "deepnorm" is "post" with the residuals multiplied by alpha and the
            values, output and feed-forward maps starting smaller by beta (Wang et al. 2022, eq. 4 and section 3).
        positions: "sinusoidal", counted from 0 on each side, or "none".
        max_positions: longest sequence, in symbols, that has a position.
        dropout: rate on embeddings, sub-layer outputs and feed-forward hidden units.
        attention_dropout: rate on attention weights.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    width: int = bounded(256, at_least=2)
    hidden: int = bounded(1024, at_least=1)
    heads: int = bounded(4, at_least=1)
    layers: int = bounded(14, at_least=1)
    norm: Literal["pre", "post", "deepnorm"] = "pre"
    share_weights: bool = True
    mixed_attention: bool = True
    side_embeddings: bool = True
    positions: Literal["sinusoidal", "none"] = "sinusoidal"
    max_positions: int = bounded(1024, at_least=1)
    dropout: float = bounded(0.1, at_least=0.0, at_most=0.9)
    attention_dropout: float = bounded(0.0, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ConfigError(f"heads must divide width, but {self.width} is not a multiple of {self.heads}")
        if len(self.source_vocabularies) != 1:
            raise ConfigError(f"layer-wise coordination has one source, but {len(self.source_vocabularies)} are given")
        if self.source_vocabularies[0] != self.target_vocabulary:
            raise ConfigError(
                "layer-wise coordination needs one joint vocabulary for source and target, but the sizes are"
                f" {self.source_vocabularies[0]} and {self.target_vocabulary}"
            )
        if not self.share_weights and self.layers % 2:
            raise ConfigError(f"without weight sharing layers must be even, half a side, but it is {self.layers}")

    @property
    def depth(self) -> int:
        """Layers that a state passes."""
        return self.layers if self.share_weights else self.layers // 2

    @property
    def residual_scale(self) -> float:
        """DeepNorm's alpha for a stack of two sub-layers a layer: ``(2 N)^(1/4)``; 1 for the other norms."""
        return (2 * self.depth) ** 0.25 if self.norm == "deepnorm" else 1.0

    @property
    def initial_scale(self) -> float:
        """DeepNorm's beta: ``(8 N)^(-1/4)``; 1 for the other norms."""
        return (8 * self.depth) ** -0.25 if self.norm == "deepnorm" else 1.0


class MixedAttention(SelfAttention):
    """Self-attention whose maps also serve a target that sees its source (eq. 3).

    ``Mixed(Q, K, V) = softmax(Q K^T / sqrt(d_head) + M) V``, keys and values being those of [source ; target so far].
    (The paper divides by sqrt(d_model), which the heads' narrower products make too much.)
    """

    def __init__(self, config: LayerwiseConfig) -> None:
        super().__init__(config.width, config.heads, bias=False, dropout=config.attention_dropout)
        self.one_softmax = config.mixed_attention

    def mix(
        self, x_RTD: Tensor, layer: int, state: KeyValueState, memory: KeyValueMemory
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Attend from T new positions to the source, the visible slots of the pool and, causally, to one another.

        Returns:
            The attended features R x T x D, the new keys and values R x T x H x E, and the weights on the source
            R x H x T x S and on the new positions R x H x T x T.
        """
        query, key, value = (x.unflatten(-1, (self.heads, -1)) for x in self.query_key_value(x_RTD).chunk(3, dim=-1))
        source_keys, source_values = memory.keys[layer], memory.values[layer]
        pool_keys, slots = state.keys[layer], state.keys[layer].size(2)
        source = shared_logits(query, source_keys) + memory.mask[:, None, None, :]
        target = over_sentences(causal_logits(query, key), source_keys)
        if slots:  # products with an empty pool cost time and do not export
            past = shared_logits(query, pool_keys) + by_query(state.history_RP, pool_keys, x_RTD.size(1))
            target = torch.cat([past, target], dim=-1)
        if self.one_softmax:
            # The source last: a sum over the row must not shift with the padding that batch-mates bring.
            weights, own = torch.softmax(torch.cat([target, source], dim=-1), dim=-1), target.size(-1)
            on_target, on_source = weights[..., :own], weights[..., own:]
        else:
            on_source, on_target = torch.softmax(source, dim=-1), torch.softmax(target, dim=-1)
        length = x_RTD.size(1)
        dropped, on_new = self.dropout(on_target), over_rows(on_target[..., slots:], length)
        context = shared_context(self.dropout(on_source), source_values, length)
        context = context + causal_context(over_rows(dropped[..., slots:], length), value)
        if slots:
            context = context + shared_context(dropped[..., :slots], state.values[layer], length)
        return self.output(context.flatten(2)), key, value, over_rows(on_source, length), on_new


class Layer(nn.Module):
    """Attention and feed-forward, each with a residual connection and a norm.

    ``x = x + f(LN x)`` (pre), ``x = LN(x + f(x))`` (post, figure 1) or ``x = LN(alpha x + f(x))`` (DeepNorm).
    """

    def __init__(self, config: LayerwiseConfig) -> None:
        super().__init__()
        c = config
        self.pre, self.residual_scale = c.norm == "pre", c.residual_scale
        self.attention = MixedAttention(c)
        self.feed_forward = FeedForward(c.width, c.hidden, bias=True, dropout=c.dropout)
        self.norms = nn.ModuleList([nn.LayerNorm(c.width) for _ in range(2)])
        self.dropout = Dropout(c.dropout)
        *_, value = self.attention.query_key_value.weight.data.chunk(3)
        maps = (self.attention.output, self.feed_forward.inner, self.feed_forward.outer)
        for weight in (value, *(one.weight.data for one in maps)):
            weight.mul_(c.initial_scale)

    def forward(self, x_BSD: Tensor, mask_BS: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The source through the layer: states, and the keys and values they were made from, B x H x S x E."""
        attended, keys, values = self.attention.over(self._given(0, x_BSD), mask_BS)
        return self._rest(x_BSD, attended), keys, values

    def prefix(self, x_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values B x H x S x E of source states alone."""
        _, keys, values = self.attention.query_key_value(self._given(0, x_BSD)).chunk(3, dim=-1)
        return split_heads(keys, self.attention.heads), split_heads(values, self.attention.heads)

    def advance(
        self, x_RTD: Tensor, layer: int, state: KeyValueState, memory: KeyValueMemory
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """T target positions through the layer: states; the rest as :meth:`MixedAttention.mix` returns it."""
        given_RTD = self._given(0, x_RTD)
        attended, keys, values, on_source, on_target = self.attention.mix(given_RTD, layer, state, memory)
        return self._rest(x_RTD, attended), keys, values, on_source, on_target

    def _rest(self, x: Tensor, attended: Tensor) -> Tensor:
        x = self._added(0, x, attended)
        return self._added(1, x, self.feed_forward(self._given(1, x)))

    def _given(self, norm: int, x: Tensor) -> Tensor:
        """What a sub-layer reads."""
        normed: Tensor = self.norms[norm](x) if self.pre else x
        return normed

    def _added(self, norm: int, x: Tensor, made: Tensor) -> Tensor:
        """The states with what a sub-layer has made of them."""
        made = self.dropout(made)
        if self.pre:
            return x + made
        normed: Tensor = self.norms[norm](torch.add(made, x, alpha=self.residual_scale))
        return normed


class Layerwise(Seq2SeqModel[KeyValueMemory, KeyValueState]):
    """One stack over [source ; target]."""

    config: LayerwiseConfig

    def __init__(self, config: LayerwiseConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = nn.Parameter(torch.empty(c.target_vocabulary, c.width))  # of both sides and the output layer
        self.source_side = nn.Parameter(torch.empty(c.width)) if c.side_embeddings else None
        self.target_side = nn.Parameter(torch.empty(c.width)) if c.side_embeddings else None
        self.positions = PositionEmbedding(c.positions, c.max_positions, c.width)
        sides = 1 if c.share_weights else 2
        self.stack = nn.ModuleList([Layer(c) for _ in range(c.layers // sides)])
        self.source_stack = nn.ModuleList([Layer(c) for _ in range(c.layers - c.layers // sides)])
        # Of the target alone: the source's last states are nobody's, and every layer norms what it reads of them.
        self.final_norm = nn.LayerNorm(c.width) if c.norm == "pre" else nn.Identity()
        self.dropout = Dropout(c.dropout)
        for parameter in (self.embedding, self.source_side, self.target_side):
            if parameter is not None:
                nn.init.normal_(parameter, 0.0, c.width**-0.5)

    def _embed(self, ids: Tensor, positions: Tensor, side: Tensor | None) -> Tensor:
        x = nn.functional.embedding(ids, self.embedding) * math.sqrt(self.config.width) + positions
        embedded: Tensor = self.dropout(narrowed(x if side is None else x + side))
        return embedded

    def encode(self, sources: tuple[Padded, ...]) -> KeyValueMemory:
        (source,) = sources
        length = source.values.size(1)
        self.positions.check(length)
        mask = additive_mask(source.mask)
        x = self._embed(source.values, self.positions.table[:length], self.source_side)
        pairs = self._apart(x, mask) if len(self.source_stack) else self._shared(x, mask)
        keys, values = zip(*pairs, strict=True)
        return KeyValueMemory(keys=keys, values=values, mask=mask)

    def _shared(self, x: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The source's keys and values in every layer; nobody reads the states that the last would make."""
        pairs = []
        *layers, last = self.stack
        for layer in layers:
            x, keys, values = layer(x, mask)
            pairs.append((keys, values))
        assert isinstance(last, Layer)
        return [*pairs, last.prefix(x)]

    def _apart(self, x: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The same of two stacks: layer i of the target's maps what layer i of the source's has made.

        Read off the layer before, as in one stack, the last layer of the source would serve no one, yet the paper
        counts 7 + 7 working layers ("layer i in the decoder can extract information directly from layer i in the
        encoder", section 3).
        """
        pairs = []
        for own, target in zip(self.source_stack, self.stack, strict=True):
            assert isinstance(target, Layer)
            x, _, _ = own(x, mask)
            pairs.append(target.prefix(x))
        return pairs

    def init_state(self, memory: KeyValueMemory, rows_per_sentence: int) -> KeyValueState:
        return KeyValueState.before(memory, rows_per_sentence)

    def _advance(
        self, target_RT: Tensor, state: KeyValueState, memory: KeyValueMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        # Positions start again from 0 at the first target symbol.
        position_RT = state.position_R[:, None] + torch.arange(target_RT.size(1), device=target_RT.device)
        x = self._embed(target_RT, self.positions(position_RT), self.target_side)
        keys, values = [], []
        for index, layer in enumerate(self.stack):
            assert isinstance(layer, Layer)
            x, key, value, on_source, on_target = layer.advance(x, index, state, memory)
            keys.append(key)
            values.append(value)
            if weights is not None:
                weights[f"mixed.{index}.source0"] = on_source.mean(1)
                weights[f"mixed.{index}.target"] = on_target.mean(1)
        return self.final_norm(x), {"keys": tuple(keys), "values": tuple(values)}

    def aligned(self, weights: Weights) -> tuple[Tensor, ...]:
        """The shares on the source averaged over layers, then made a distribution: layers that look there count."""
        (share_RTS,) = mean_by_source(weights, 1)
        return (made_whole(share_RTS),)

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.embedding, None

    def parameter_parts(self) -> Mapping[str, int]:
        return {
            "embeddings": count_parameters(self.embedding),
            "sides": count_parameters(self.source_side, self.target_side),
            "stack": count_parameters(self.stack, self.final_norm),
            "source_stack": count_parameters(self.source_stack),
        }
