"""The Transformer (Vaswani et al. 2017), pre- or post-norm: the baseline of two of the papers.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, D width,
P pool slots.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import (
    Activation,
    FeedForward,
    KeyValueMemory,
    KeyValueState,
    SelfAttention,
    additive_mask,
    attend_heads,
    by_sentence,
    split_heads,
)
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.embedding import PositionEmbedding, Positions, narrowed
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.layers.ssru import Ssru, SsruState
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

TransformerState = KeyValueState | SsruState


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Configuration of :class:`Transformer`.

    Attributes:
        source_vocabularies: types of the source vocabulary (one entry; 0 takes the prepared data's).
        target_vocabulary: types of the target vocabulary (0 takes the prepared data's).
        width: model width d.
        hidden: feed-forward width f.
        heads: attention heads; must divide the width.
        encoder_layers: encoder blocks.
        decoder_layers: decoder blocks.
        norm: "pre" normalises the input of each sub-layer and adds a final norm a side; "post" normalises after adding.
        context_gate: weigh what a decoder layer has of the target against what its source attention adds, by a gate for
            each head (Tu et al. 2017, section 3.2.3, as He et al. 2018 compare it, section 5.4).
        history: how a decoder layer reads the target so far: by self-"attention", or in a recurrent unit whose state
            does not grow with it ("ssru", Kim et al. 2019, section 3.1).
        guided_alignment: the alignment is that of the first head of the last decoder layer, which Marian's models are
            trained for where they are trained to align; otherwise the mean of all.
        positions: "learned", sines and cosines ("sinusoidal", "halves" or "tensor2tensor", see
            ``models.architectures.layers.embedding.sinusoids``) or "none".
        first_position: number of the first symbol's position among sines and cosines.
        max_positions: longest sequence, in symbols, that has a position.
        reads_end: whether the encoder reads the end of a source; models of OpenNMT-py do not.
        embedding_norm: normalise the sum of embedding and position, one norm a side (BART, Lewis et al. 2020).
        activation: of the feed-forward blocks: "relu", "gelu" or "swish".
        tied: "none", "decoder" (target embedding = output layer) or "all" (one table; needs a joint vocabulary).
        scale_embedding: multiply embeddings by sqrt(d).
        attention_bias: biases on the query, key, value and output maps.
        hidden_bias: biases on the feed-forward maps.
        output_bias: bias on the output layer.
        dropout: rate on embeddings, sub-layer outputs and feed-forward hidden units.
        attention_dropout: rate on attention weights.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    width: int = bounded(256, at_least=2)
    hidden: int = bounded(1024, at_least=1)
    heads: int = bounded(4, at_least=1)
    encoder_layers: int = bounded(4, at_least=1)
    decoder_layers: int = bounded(4, at_least=1)
    norm: Literal["pre", "post"] = "pre"
    context_gate: bool = False
    history: Literal["attention", "ssru"] = "attention"
    guided_alignment: bool = False
    positions: Positions = "sinusoidal"
    first_position: int = bounded(0, at_least=0)
    max_positions: int = bounded(1024, at_least=1)
    reads_end: bool = True
    embedding_norm: bool = False
    activation: Activation = "relu"
    tied: Literal["none", "decoder", "all"] = "decoder"
    scale_embedding: bool = True
    attention_bias: bool = False
    hidden_bias: bool = True
    output_bias: bool = False
    dropout: float = bounded(0.1, at_least=0.0, at_most=0.9)
    attention_dropout: float = bounded(0.0, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ConfigError(f"heads must divide width, but {self.width} is not a multiple of {self.heads}")
        if len(self.source_vocabularies) != 1:
            raise ConfigError(f"a transformer has one source, but {len(self.source_vocabularies)} are given")
        if self.tied == "all" and self.source_vocabularies[0] != self.target_vocabulary:
            raise ConfigError('tied = "all" needs one joint vocabulary for source and target')


def _feed_forward(c: TransformerConfig) -> FeedForward:
    return FeedForward(c.width, c.hidden, bias=c.hidden_bias, dropout=c.dropout, activation=c.activation)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and a norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c = config
        self.pre = c.norm == "pre"
        self.attention = SelfAttention(c.width, c.heads, bias=c.attention_bias, dropout=c.attention_dropout)
        self.feed_forward = _feed_forward(c)
        self.norms = nn.ModuleList([nn.LayerNorm(c.width) for _ in range(2)])
        self.dropout = Dropout(c.dropout)

    def forward(self, x: Tensor, mask_BS: Tensor) -> Tensor:
        if self.pre:
            x = x + self.dropout(self.attention(self.norms[0](x), mask_BS))
            x = x + self.dropout(self.feed_forward(self.norms[1](x)))
        else:
            x = self.norms[0](x + self.dropout(self.attention(x, mask_BS)))
            x = self.norms[1](x + self.dropout(self.feed_forward(x)))
        return x


class ContextGate(nn.Module):
    """``2 ((1 - g) t + g s)``, ``g = sigmoid([t, s] W + b)``, of target context t and source context s.

    Neither paper prints it for a Transformer. A number for each head, W being 2 D x H, is what the size allows that He
    et al. print (19.08M). The factor 2, and W and b of 0 at the start, make it start as the plain sum of both.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.linear = heads, Linear(2 * width, heads)
        nn.init.zeros_(self.linear.weight)

    def forward(self, target: Tensor, source: Tensor) -> Tensor:
        gate = torch.sigmoid(self.linear(torch.cat([target, source], dim=-1)))[..., None]
        t, s = (x.unflatten(-1, (self.heads, -1)) for x in (target, source))
        mixed: Tensor = (2 * (t + (s - t) * gate)).flatten(-2)
        return mixed


class DecoderLayer(nn.Module):
    """Causal self-attention or a recurrent unit, attention over the source, feed-forward."""

    def __init__(self, config: TransformerConfig, *, aligns: bool = False) -> None:
        """``aligns``: whether the first head of its source attention was trained to align."""
        super().__init__()
        c = config
        self.pre, self.heads, self.aligns = c.norm == "pre", c.heads, aligns
        if c.history == "attention":
            self.attention = SelfAttention(c.width, c.heads, bias=c.attention_bias, dropout=c.attention_dropout)
        else:
            self.unit = Ssru(c.width)
        self.query = Linear(c.width, c.width, bias=c.attention_bias)
        self.source_keys = Linear(c.width, c.width, bias=c.attention_bias)
        self.source_values = Linear(c.width, c.width, bias=c.attention_bias)
        self.output = Linear(c.width, c.width, bias=c.attention_bias)
        self.source_dropout = Dropout(c.attention_dropout)
        self.gate = ContextGate(c.width, c.heads) if c.context_gate else None
        self.feed_forward = _feed_forward(c)
        self.norms = nn.ModuleList([nn.LayerNorm(c.width) for _ in range(3)])
        self.dropout = Dropout(c.dropout)

    def advance(
        self, x: Tensor, layer: int, state: TransformerState, memory: KeyValueMemory
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """T positions through the layer: features, what the state takes in, source weights B x H x (K T) x S."""
        read, *new = self._history(self.norms[0](x) if self.pre else x, layer, state)
        x = self._add(0, x, read)
        query_BQD = by_sentence(self.query(self.norms[1](x) if self.pre else x), memory.mask)
        source = (memory.keys[layer], memory.values[layer], memory.mask)
        context, weights = attend_heads(query_BQD, *source, self.source_dropout)
        x = self._add(1, x, self.output(context).reshape(x.shape), self.gate)
        x = self._add(2, x, self.feed_forward(self.norms[2](x) if self.pre else x))
        return x, tuple(new), weights

    def _history(self, x: Tensor, layer: int, state: TransformerState) -> tuple[Tensor, ...]:
        """What T positions know of the target so far, and what the state takes in: keys and values, or the cell."""
        if isinstance(state, SsruState):
            return self.unit.advance(x, state.cells[layer])
        return self.attention.advance(x, state.keys[layer], state.values[layer], state.history_RP)

    def _add(self, norm: int, x: Tensor, y: Tensor, gate: ContextGate | None = None) -> Tensor:
        y = self.dropout(y)
        x = x + y if gate is None else gate(x, y)
        normed: Tensor = x if self.pre else self.norms[norm](x)
        return normed


class Transformer(Seq2SeqModel[KeyValueMemory, TransformerState]):
    """Encoder-decoder of self-attention blocks."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c = self.config = config
        self.recurrent = c.history == "ssru"
        self.target_embedding = nn.Parameter(torch.empty(c.target_vocabulary, c.width))
        self.source_embedding = (
            self.target_embedding if c.tied == "all" else nn.Parameter(torch.empty(c.source_vocabularies[0], c.width))
        )
        self.output_weight = (
            self.target_embedding if c.tied != "none" else nn.Parameter(torch.empty(c.target_vocabulary, c.width))
        )
        self.output_bias = nn.Parameter(torch.zeros(c.target_vocabulary)) if c.output_bias else None
        self.source_positions = PositionEmbedding(c.positions, c.max_positions, c.width, first=c.first_position)
        self.target_positions = PositionEmbedding(c.positions, c.max_positions, c.width, first=c.first_position)
        self.source_embedding_norm = nn.LayerNorm(c.width) if c.embedding_norm else nn.Identity()
        self.target_embedding_norm = nn.LayerNorm(c.width) if c.embedding_norm else nn.Identity()
        self.encoder = nn.ModuleList([EncoderLayer(c) for _ in range(c.encoder_layers)])
        last = c.decoder_layers - 1
        self.decoder = nn.ModuleList(
            [DecoderLayer(c, aligns=c.guided_alignment and layer == last) for layer in range(c.decoder_layers)]
        )
        self.encoder_norm = nn.LayerNorm(c.width) if c.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(c.width) if c.norm == "pre" else nn.Identity()
        self.dropout = Dropout(c.dropout)
        for table in (self.source_embedding, self.target_embedding, self.output_weight):
            nn.init.normal_(table, 0.0, c.width**-0.5)

    def _embed(self, table: Tensor, ids: Tensor, positions: Tensor, norm: nn.Module) -> Tensor:
        x = nn.functional.embedding(ids, table)
        if self.config.scale_embedding:
            x = x * math.sqrt(self.config.width)
        embedded: Tensor = self.dropout(narrowed(norm(x + positions)))
        return embedded

    def encode(self, sources: tuple[Padded, ...]) -> KeyValueMemory:
        (source,) = sources
        length = source.values.size(1)
        self.source_positions.check(length)
        mask = additive_mask(self._read(source).mask)
        positions_SD = self.source_positions.table[:length]
        x = self._embed(self.source_embedding, source.values, positions_SD, self.source_embedding_norm)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        layers = [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]
        heads = self.config.heads
        return KeyValueMemory(
            keys=tuple(split_heads(layer.source_keys(x), heads) for layer in layers),
            values=tuple(split_heads(layer.source_values(x), heads) for layer in layers),
            mask=mask,
        )

    def _read(self, source: Padded) -> Padded:
        """What is attended to of a source: all of it, or all but its end; of nothing but an end, that."""
        return source if self.config.reads_end else Padded(source.values, (source.lengths - 1).clamp_min(1))

    def init_state(self, memory: KeyValueMemory, rows_per_sentence: int) -> TransformerState:
        if self.config.history == "ssru":
            return SsruState.before(memory, rows_per_sentence, self.config.width)
        return KeyValueState.before(memory, rows_per_sentence)

    def _advance(
        self, target_RT: Tensor, state: TransformerState, memory: KeyValueMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        length = target_RT.size(1)
        position_RT = state.position_R[:, None] + torch.arange(length, device=target_RT.device)
        positions_RTD = self.target_positions(position_RT)
        x = self._embed(self.target_embedding, target_RT, positions_RTD, self.target_embedding_norm)
        entries = []
        for index, layer in enumerate(self.decoder):
            assert isinstance(layer, DecoderLayer)
            x, new, attention = layer.advance(x, index, state, memory)
            entries.append(new)
            if weights is not None and (layer.aligns or not self.config.guided_alignment):
                own = attention[:, 0] if layer.aligns else attention.mean(1)
                weights[f"decoder.{index}.source0"] = own.reshape(x.size(0), length, own.size(-1))
        names = ("cells",) if isinstance(state, SsruState) else ("keys", "values")
        return self.decoder_norm(x), dict(zip(names, zip(*entries, strict=True), strict=True))

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.output_weight, self.output_bias

    def parameter_parts(self) -> Mapping[str, int]:
        tied = count_parameters(self.source_embedding, self.target_embedding)
        return {
            "embeddings": tied,
            "positions": count_parameters(self.source_positions, self.target_positions),
            "encoder": count_parameters(self.source_embedding_norm, self.encoder, self.encoder_norm),
            "decoder": count_parameters(self.target_embedding_norm, self.decoder, self.decoder_norm),
            "output": count_parameters(self.source_embedding, self.target_embedding, self.output_weight)
            - tied
            + count_parameters(self.output_bias),
        }
