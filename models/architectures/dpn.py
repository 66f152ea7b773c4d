"""DPN-S2S, double path networks (Song et al., COLING 2018).

Two encoders read the same input side by side, a convolutional path (CNN) and a self-attention path (SAN); two decoders
likewise read the same target prefix. Every decoder layer attends to *both* encoder paths and mixes the two contexts
with a gate (eq. 8-9); an output gate mixes the two decoders (eq. 10). Either side may have one path only (table 4).

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, D width,
P pool slots, Q = K x T queries of a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import (
    FeedForward,
    SelfAttention,
    additive_mask,
    attend,
    attend_heads,
    by_sentence,
    split_heads,
)
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.embedding import PositionEmbedding, narrowed
from tandem.models.architectures.layers.gradient import scale_gradient
from tandem.models.architectures.layers.linear import GatedConvolution, Linear
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters
from tandem.models.architectures.records import Memory, State, memory, pool, rows
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

Paths = Literal["cnn", "san", "both"]
HALF = math.sqrt(0.5)


@dataclass(frozen=True, slots=True)
class DpnConfig:
    """Configuration of :class:`Dpn`.

    Attributes:
        source_vocabularies: types of the source vocabulary (one entry; 0 takes the prepared data's).
        target_vocabulary: types of the target vocabulary (0 takes the prepared data's).
        encoder_paths: "cnn", "san" or "both".
        decoder_paths: "cnn", "san" or "both".
        width: model width d, of embeddings, convolutions and attention alike.
        hidden: feed-forward width f of the SAN paths.
        heads: self-attention heads, and with ``projections`` those of the attention to the encoders; must divide the
            width.
        cnn_layers: convolutional layers a side.
        san_layers: self-attention layers a side.
        kernel: width of the convolutions; odd, so that the encoder's padding is symmetric.
        projections: multi-head attention to the encoders, with key and value maps of its own for every encoder path
            in every decoder layer, instead of the encoder outputs as they are.
        max_positions: longest sequence, in symbols, that has a position.
        weight_norm: weight normalisation in the CNN paths while training.
        tied: "decoder" (target embedding = output layer, as published) or "all" (one table for both sides; needs a
            joint vocabulary).
        equal_embeddings: start with equal source and target embeddings (needs a joint vocabulary), so that a word and
            its copy look alike to the attention from the first update; they are trained apart.
        gradient_scale: factor of the gradients that flow into the CNN encoder. The paper has none (1); the authors'
            code divides by twice the layers, as ConvS2S does (section 3.4 there), which costs two BLEU with Adam.
        dropout: rate on embeddings, convolution inputs, SAN sub-layer outputs and hidden units.
        attention_dropout: rate on self-attention weights.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    encoder_paths: Paths = "both"
    decoder_paths: Paths = "both"
    width: int = bounded(256, at_least=2)
    hidden: int = bounded(1024, at_least=1)
    heads: int = bounded(4, at_least=1)
    cnn_layers: int = bounded(4, at_least=1)
    san_layers: int = bounded(2, at_least=1)
    kernel: int = bounded(3, at_least=1)
    projections: bool = False
    max_positions: int = bounded(1024, at_least=1)
    weight_norm: bool = True
    tied: Literal["decoder", "all"] = "decoder"
    equal_embeddings: bool = False
    gradient_scale: float = bounded(1.0, at_least=0.0, at_most=1.0)
    dropout: float = bounded(0.1, at_least=0.0, at_most=0.9)
    attention_dropout: float = bounded(0.0, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ConfigError(f"heads must divide width, but {self.width} is not a multiple of {self.heads}")
        if self.kernel % 2 == 0:
            raise ConfigError(f"kernel must be odd, but is {self.kernel}")
        if len(self.source_vocabularies) != 1:
            raise ConfigError(f"a double path network has one source, but {len(self.source_vocabularies)} are given")
        if self.equal_embeddings and self.source_vocabularies[0] != self.target_vocabulary:
            raise ConfigError("equal_embeddings needs one joint vocabulary for source and target")
        if self.tied == "all" and self.source_vocabularies[0] != self.target_vocabulary:
            raise ConfigError('tied = "all" needs one joint vocabulary for source and target')


@dataclass(frozen=True, slots=True, eq=False)
class DpnMemory(Memory):
    """The encoder outputs, which are keys and values at once (eq. 4), or what projections make of them (eq. 6).

    Attributes:
        paths: one B x S x D per encoder path, CNN first; none with projections.
        keys: with projections one B x H x S x E per decoder layer (CNN first) and, within it, encoder path.
        values: likewise.
        mask: additive, B x S.
        scale: sqrt(S) of each sentence's own length, B x 1.
    """

    paths: tuple[Tensor, ...] = memory("source0", "fixed")
    keys: tuple[Tensor, ...] = memory("fixed", "source0", "fixed")
    values: tuple[Tensor, ...] = memory("fixed", "source0", "fixed")
    mask: Tensor = memory("source0", padding=-math.inf)
    scale: Tensor = memory("fixed")


@dataclass(frozen=True, slots=True, eq=False)
class DpnState(State):
    """What the decoders carry.

    Attributes:
        windows: per CNN layer the last k - 1 inputs of its convolution, R x (k-1) x D.
        keys: per SAN layer the pool of keys, B x H x P x E.
        values: per SAN layer the pool of values, B x H x P x E.
    """

    windows: tuple[Tensor, ...] = rows()
    keys: tuple[Tensor, ...] = pool()
    values: tuple[Tensor, ...] = pool()


class Gate(nn.Module):
    """``x (1 - g) + y g``, ``g = sigmoid([x, y] W + b)``, one scalar per position (eq. 9 and 10)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = Linear(2 * width, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        gate = torch.sigmoid(self.linear(torch.cat([x, y], dim=-1)))
        return x + (y - x) * gate


class DoubleAttention(nn.Module):
    """One query on every encoder path, the contexts mixed by a gate (eq. 8-9).

    With one encoder path there is one context and no gate. ``own`` is the index of the decoder's own path among two.

    With ``heads`` each encoder path has maps W_k, W_v of its own, and eq. 6 takes the place of eq. 4 (its W_q and the
    map after the heads are those that the decoder layer has either way). A bias in either map would be idle: one moves
    all logits alike, the other all contexts.
    """

    def __init__(self, width: int, encoder_paths: int, own: int, *, heads: int = 0, weight_norm: bool = False) -> None:
        super().__init__()
        self.gate = Gate(width) if encoder_paths == 2 else None
        self.own, self.heads = own, heads
        paths = range(encoder_paths if heads else 0)
        self.keys = nn.ModuleList([Linear(width, width, bias=False, weight_norm=weight_norm) for _ in paths])
        self.values = nn.ModuleList([Linear(width, width, bias=False, weight_norm=weight_norm) for _ in paths])

    def project(self, paths: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Keys and values B x H x S x E of every encoder path."""
        keys = [split_heads(linear(h), self.heads) for linear, h in zip(self.keys, paths, strict=True)]
        return keys, [split_heads(linear(h), self.heads) for linear, h in zip(self.values, paths, strict=True)]

    def forward(self, query_BQD: Tensor, memory: DpnMemory, scale: float) -> tuple[Tensor, list[Tensor]]:
        """The mixed context B x Q x D and the weights B x Q x S on each path, in the memory's order.

        ``scale`` is that of the logits; heads have their own, 1 / sqrt(D / heads), and report their mean weights.
        """
        if self.heads:
            pairs = zip(memory.keys, memory.values, strict=True)
            by_head = [attend_heads(query_BQD, k, v, memory.mask) for k, v in pairs]
            attended = [(context, w.mean(1)) for context, w in by_head]
        else:
            attended = [attend(query_BQD, h, h, memory.mask, scale) for h in memory.paths]
        contexts, weights = [context for context, _ in attended], [w for _, w in attended]
        if self.gate is None:
            return contexts[0], weights
        return self.gate(contexts[self.own], contexts[1 - self.own]), weights


class CnnEncoderLayer(nn.Module):
    """``z^l = (glu(conv_k(z^{l-1})) + z^{l-1}) sqrt(1/2)`` with zero padding on both sides (ConvS2S)."""

    def __init__(self, config: DpnConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.width, config.width, config.kernel, weight_norm=config.weight_norm)
        self.convolution.init_for_gate(1 - config.dropout)
        self.dropout = Dropout(config.dropout)
        self.padding = config.kernel // 2

    def forward(self, x_BSD: Tensor, keep_BS1: Tensor) -> Tensor:
        # Positions that only pad the batch must look like the zeros beyond the sentence, or batch-mates would matter.
        context = nn.functional.pad(self.dropout(x_BSD) * keep_BS1, (0, 0, self.padding, self.padding))
        convolved: Tensor = self.convolution(context)
        return (convolved + x_BSD) * HALF


class SanEncoderLayer(nn.Module):
    """Pre-norm multi-head self-attention and feed-forward with ReLU."""

    def __init__(self, config: DpnConfig) -> None:
        super().__init__()
        c = config
        self.attention = SelfAttention(c.width, c.heads, bias=False, dropout=c.attention_dropout)
        self.feed_forward = FeedForward(c.width, c.hidden, bias=False, dropout=c.dropout)
        self.norms = nn.ModuleList([nn.LayerNorm(c.width) for _ in range(2)])
        self.dropout = Dropout(c.dropout)

    def forward(self, x_BSD: Tensor, mask_BS: Tensor) -> Tensor:
        x = x_BSD + self.dropout(self.attention(self.norms[0](x_BSD), mask_BS))
        summed: Tensor = x + self.dropout(self.feed_forward(self.norms[1](x)))
        return summed


class CnnDecoderLayer(nn.Module):
    """Causal gated convolution, then double attention.

    ``h = glu(conv(x));  q_c = (W_q h + b + g) sqrt(1/2);  ctx_c by eq. 8-9;``
    ``x = ((W_o ctx_c sqrt(S) + b + h) sqrt(1/2) + x) sqrt(1/2)``
    """

    def __init__(self, config: DpnConfig, encoder_paths: int) -> None:
        super().__init__()
        c = config
        self.convolution = GatedConvolution(c.width, c.width, c.kernel, weight_norm=c.weight_norm)
        self.convolution.init_for_gate(1 - c.dropout)
        self.query = Linear(c.width, c.width, weight_norm=c.weight_norm)
        self.output = Linear(c.width, c.width, weight_norm=c.weight_norm)
        for linear in (self.query, self.output):
            linear.init_normal(math.sqrt(1 / c.width))
        heads = c.heads if c.projections else 0
        self.attention = DoubleAttention(c.width, encoder_paths, own=0, heads=heads, weight_norm=c.weight_norm)
        self.dropout = Dropout(c.dropout)

    def advance(
        self, x_BQD: Tensor, target_BQD: Tensor, window: Tensor, memory: DpnMemory, length: int
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """T = ``length`` positions: features B x Q x D, the next window R x (k-1) x D, weights on each encoder path."""
        x_RTD = x_BQD.reshape(-1, length, x_BQD.size(-1))
        context = torch.cat([window, self.dropout(x_RTD)], dim=1)
        h = by_sentence(self.convolution(context), memory.mask)
        query = (self.query(h) + target_BQD) * HALF
        mixed, weights = self.attention(query, memory, 1.0)
        # Each row scales by the root of its own sentence's length.
        x = ((self.output(mixed * memory.scale[:, :, None]) + h) * HALF + x_BQD) * HALF
        return x, context[:, context.size(1) - window.size(1) :], weights


class SanDecoderLayer(nn.Module):
    """``x += SelfAttn(LN x);  q_a = W_q LN x;  x += W_o ctx_a;  x += FFN(LN x)``."""

    def __init__(self, config: DpnConfig, encoder_paths: int) -> None:
        super().__init__()
        c = config
        self.self_attention = SelfAttention(c.width, c.heads, bias=False, dropout=c.attention_dropout)
        self.query = Linear(c.width, c.width, bias=False)
        self.output = Linear(c.width, c.width, bias=False)
        self.attention = DoubleAttention(c.width, encoder_paths, own=1, heads=c.heads if c.projections else 0)
        self.feed_forward = FeedForward(c.width, c.hidden, bias=False, dropout=c.dropout)
        self.norms = nn.ModuleList([nn.LayerNorm(c.width) for _ in range(3)])
        self.dropout = Dropout(c.dropout)
        self.scale = 1 / math.sqrt(c.width)

    def advance(
        self, x_BQD: Tensor, pools: tuple[Tensor, Tensor], history_RP: Tensor, memory: DpnMemory, length: int
    ) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """T = ``length`` positions: features B x Q x D, new keys and values R x T x H x E, weights on each path."""
        normed_RTD = self.norms[0](x_BQD).reshape(-1, length, x_BQD.size(-1))
        attended, keys, values = self.self_attention.advance(normed_RTD, *pools, history_RP)
        x = x_BQD + self.dropout(by_sentence(attended, memory.mask))
        mixed, weights = self.attention(self.query(self.norms[1](x)), memory, self.scale)
        x = x + self.dropout(self.output(mixed))
        x = x + self.dropout(self.feed_forward(self.norms[2](x)))
        return x, keys, values, weights


class Dpn(Seq2SeqModel[DpnMemory, DpnState]):
    """Double path network."""

    config: DpnConfig

    def __init__(self, config: DpnConfig) -> None:
        super().__init__()
        c = self.config = config
        self.source_embedding = nn.Parameter(torch.empty(c.source_vocabularies[0], c.width))
        self.target_embedding = nn.Parameter(torch.empty(c.target_vocabulary, c.width))  # tied with the output layer
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table, 0.0, 0.1)
        if c.tied == "all":  # after both were drawn, so that all other weights start as they do untied
            self.source_embedding = self.target_embedding
        if c.equal_embeddings:
            self.target_embedding.data.copy_(self.source_embedding.data)
        self.output_bias = nn.Parameter(torch.zeros(c.target_vocabulary))
        self.source_positions = PositionEmbedding("learned", c.max_positions, c.width)
        self.target_positions = PositionEmbedding("learned", c.max_positions, c.width)
        paths = 2 if c.encoder_paths == "both" else 1
        cnn_in, san_in = c.encoder_paths != "san", c.encoder_paths != "cnn"
        cnn_out, san_out = c.decoder_paths != "san", c.decoder_paths != "cnn"
        self.cnn_encoder = nn.ModuleList([CnnEncoderLayer(c) for _ in range(c.cnn_layers if cnn_in else 0)])
        self.san_encoder = nn.ModuleList([SanEncoderLayer(c) for _ in range(c.san_layers if san_in else 0)])
        self.san_encoder_norm = nn.LayerNorm(c.width) if san_in else None
        self.cnn_decoder = nn.ModuleList([CnnDecoderLayer(c, paths) for _ in range(c.cnn_layers if cnn_out else 0)])
        self.san_decoder = nn.ModuleList([SanDecoderLayer(c, paths) for _ in range(c.san_layers if san_out else 0)])
        self.san_decoder_norm = nn.LayerNorm(c.width) if san_out else None
        self.output_gate = Gate(c.width) if c.decoder_paths == "both" else None
        self.dropout = Dropout(c.dropout)

    def encode(self, sources: tuple[Padded, ...]) -> DpnMemory:
        (source,) = sources
        length = source.values.size(1)
        self.source_positions.check(length)
        mask = additive_mask(source.mask)
        embedded = nn.functional.embedding(source.values, self.source_embedding)
        e = self.dropout(narrowed(embedded + self.source_positions.table[:length]))
        paths = []
        if len(self.cnn_encoder):
            keep = source.mask[:, :, None].to(e.dtype)
            h_c = e
            for layer in self.cnn_encoder:
                h_c = layer(h_c, keep)
            paths.append(scale_gradient(h_c, self.config.gradient_scale))
        if self.san_encoder_norm is not None:
            h_a = e
            for layer in self.san_encoder:
                h_a = layer(h_a, mask)
            paths.append(self.san_encoder_norm(h_a))
        keys: list[Tensor] = []
        values: list[Tensor] = []
        if self.config.projections:
            for attention in self._attentions():
                own_keys, own_values = attention.project(paths)
                keys += own_keys
                values += own_values
            paths = []
        scale = source.lengths.to(torch.promote_types(e.dtype, torch.float32)).sqrt().to(e.dtype)[:, None]
        return DpnMemory(paths=tuple(paths), keys=tuple(keys), values=tuple(values), mask=mask, scale=scale)

    def _attentions(self) -> list[DoubleAttention]:
        """Those of all decoder layers, CNN first."""
        layers = [*self.cnn_decoder, *self.san_decoder]
        return [layer.attention for layer in layers if isinstance(layer, CnnDecoderLayer | SanDecoderLayer)]

    def _attended(self, memory: DpnMemory, layer: int) -> DpnMemory:
        """What one decoder layer, by its number with CNN first, attends to."""
        if not self.config.projections:
            return memory
        paths = len(memory.keys) // (len(self.cnn_decoder) + len(self.san_decoder))
        own = slice(layer * paths, (layer + 1) * paths)
        return replace(memory, keys=memory.keys[own], values=memory.values[own])

    def init_state(self, memory: DpnMemory, rows_per_sentence: int) -> DpnState:
        sentences, c = memory.mask.size(0), self.config
        total = sentences * rows_per_sentence
        windows = tuple(memory.scale.new_zeros(total, c.kernel - 1, c.width) for _ in self.cnn_decoder)
        empty = tuple(memory.scale.new_zeros(sentences, c.heads, 0, c.width // c.heads) for _ in self.san_decoder)
        return DpnState.begin(total, memory.mask.device, windows=windows, keys=empty, values=empty)

    def _advance(
        self, target_RT: Tensor, state: DpnState, memory: DpnMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        length = target_RT.size(1)
        position_RT = state.position_R[:, None] + torch.arange(length, device=target_RT.device)
        embedded = nn.functional.embedding(target_RT, self.target_embedding)
        g = by_sentence(self.dropout(narrowed(embedded + self.target_positions(position_RT))), memory.mask)
        decoded = []
        windows: list[Tensor] = []
        keys: list[Tensor] = []
        values: list[Tensor] = []
        if len(self.cnn_decoder):
            x = g
            for index, layer in enumerate(self.cnn_decoder):
                assert isinstance(layer, CnnDecoderLayer)
                x, window, attention = layer.advance(x, g, state.windows[index], self._attended(memory, index), length)
                windows.append(window)
                self._keep(weights, "cnn", index, attention, target_RT.shape)
            decoded.append(x)
        if self.san_decoder_norm is not None:
            x = g
            for index, layer in enumerate(self.san_decoder):
                assert isinstance(layer, SanDecoderLayer)
                pools = (state.keys[index], state.values[index])
                own = self._attended(memory, len(self.cnn_decoder) + index)
                x, key, value, attention = layer.advance(x, pools, state.history_RP, own, length)
                keys.append(key)
                values.append(value)
                self._keep(weights, "san", index, attention, target_RT.shape)
            decoded.append(self.san_decoder_norm(x))
        # eq. 10:  z_o = z_c (1 - g_o) + z_a g_o
        z = decoded[0] if self.output_gate is None else self.output_gate(*decoded)
        features_RTD = self.dropout(z).reshape(-1, length, z.size(-1))
        return features_RTD, {"windows": tuple(windows), "keys": tuple(keys), "values": tuple(values)}

    def _keep(self, weights: Weights | None, path: str, layer: int, attention: list[Tensor], rows: torch.Size) -> None:
        if weights is not None:
            names = ("cnn", "san") if self.config.encoder_paths == "both" else (self.config.encoder_paths,)
            for name, weight_BQS in zip(names, attention, strict=True):
                weights[f"{path}.{layer}.{name}"] = weight_BQS.reshape(*rows, weight_BQS.size(-1))

    def aligned(self, weights: Weights) -> tuple[Tensor, ...]:
        return (torch.stack(list(weights.values())).mean(0),)

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.target_embedding, self.output_bias

    def parameter_parts(self) -> Mapping[str, int]:
        return {
            "embeddings": count_parameters(self.source_embedding, self.target_embedding),
            "positions": count_parameters(self.source_positions, self.target_positions),
            "cnn_encoder": count_parameters(self.cnn_encoder),
            "san_encoder": count_parameters(self.san_encoder, self.san_encoder_norm),
            "cnn_decoder": count_parameters(self.cnn_decoder),
            "san_decoder": count_parameters(self.san_decoder, self.san_decoder_norm),
            "output": count_parameters(self.output_gate, self.output_bias),
        }
