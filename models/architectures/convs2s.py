"""ConvS2S, convolutional sequence to sequence learning (Gehring et al., ICML 2017).

Encoder and decoder are stacks of gated convolutions with residual connections; every decoder layer attends to the
source with a softmax of its own (multi-step attention, eq. 1-2). Layers may differ in width and kernel. Like every
model here the decoder starts from BOS; the authors' code started from EOS, which is a matter of one embedding.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, F embedding
width, C and D input and output width of a block, Q queries of one sentence (K x T), N any number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import additive_mask, attend, by_sentence
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.embedding import PositionEmbedding, narrowed
from tandem.models.architectures.layers.gradient import scale_gradient
from tandem.models.architectures.layers.linear import GatedConvolution, Linear
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters
from tandem.models.architectures.records import Memory, State, memory, rows
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

HALF = math.sqrt(0.5)


@dataclass(frozen=True, slots=True)
class ConvS2SConfig:
    """Configuration of :class:`ConvS2S`.

    Attributes:
        source_vocabularies: types of the source vocabulary (one entry; 0 takes the prepared data's).
        target_vocabulary: types of the target vocabulary (0 takes the prepared data's).
        embedding: width of the embeddings on both sides, and of the attention.
        output_embedding: width of what the output layer projects.
        encoder_widths: output width of each encoder block.
        encoder_kernels: convolution width of each encoder block.
        decoder_widths: output width of each decoder block.
        decoder_kernels: convolution width of each decoder block.
        attention: whether each decoder block attends to the source; empty means all do.
        source_positions: add learned positions to the source embeddings.
        target_positions: add learned positions to the target embeddings.
        max_positions: longest sequence, in symbols, that has a position.
        weight_norm: weight normalisation of everything but look-up tables while training.
        tied: "none" (as published), "decoder" (target embedding = output layer) or "all" (one table for both sides too;
            needs a joint vocabulary). Needs ``output_embedding`` = ``embedding``.
        dropout: rate on embeddings, on the inputs of convolutions and on the input of the output layer.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    embedding: int = bounded(256, at_least=1)
    output_embedding: int = bounded(256, at_least=1)
    encoder_widths: tuple[int, ...] = bounded((256,) * 4, at_least=1)
    encoder_kernels: tuple[int, ...] = bounded((3,) * 4, at_least=1)
    decoder_widths: tuple[int, ...] = bounded((256,) * 3, at_least=1)
    decoder_kernels: tuple[int, ...] = bounded((3,) * 3, at_least=1)
    attention: tuple[bool, ...] = ()
    source_positions: bool = True
    target_positions: bool = True
    max_positions: int = bounded(1024, at_least=1)
    weight_norm: bool = True
    tied: Literal["none", "decoder", "all"] = "none"
    dropout: float = bounded(0.1, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        for side in ("encoder", "decoder"):
            widths, kernels = getattr(self, f"{side}_widths"), getattr(self, f"{side}_kernels")
            if not widths:
                raise ConfigError(f"{side}_widths must name at least one layer")
            if len(widths) != len(kernels):
                raise ConfigError(
                    f"{side}_kernels must have one entry per layer, but has {len(kernels)} for {len(widths)} widths"
                )
        if len(self.attends) != len(self.decoder_widths):
            raise ConfigError(
                "attention must be empty or have one entry per decoder layer,"
                f" but has {len(self.attention)} for {len(self.decoder_widths)}"
            )
        if not any(self.attends):
            raise ConfigError("attention must be true in at least one decoder layer: the source is seen nowhere else")
        if len(self.source_vocabularies) != 1:
            raise ConfigError(f"a ConvS2S model has one source, but {len(self.source_vocabularies)} are given")
        if self.tied != "none" and self.output_embedding != self.embedding:
            raise ConfigError(
                f"tied = {self.tied!r} needs output_embedding = embedding, but they are {self.output_embedding} and"
                f" {self.embedding}"
            )
        if self.tied == "all" and self.source_vocabularies[0] != self.target_vocabulary:
            raise ConfigError('tied = "all" needs one joint vocabulary for source and target')

    @property
    def attends(self) -> tuple[bool, ...]:
        """Whether each decoder layer attends to the source."""
        return self.attention or (True,) * len(self.decoder_widths)


@dataclass(frozen=True, slots=True, eq=False)
class ConvS2SMemory(Memory):
    """What every attention of the decoder reads, the same in all layers.

    Attributes:
        keys: encoder output z, B x S x F.
        values: ``(z + e) sqrt(1/2)``, B x S x F.
        mask: additive, B x S.
        scale: ``S sqrt(1/S)`` of each sentence's own length, B x 1.
    """

    keys: Tensor = memory("source0", "fixed")
    values: Tensor = memory("source0", "fixed")
    mask: Tensor = memory("source0", padding=-math.inf)
    scale: Tensor = memory("fixed")


@dataclass(frozen=True, slots=True, eq=False)
class ConvS2SState(State):
    """What the decoder carries.

    Attributes:
        windows: the last k - 1 inputs of each convolution, R x (k-1) x C; a convolution of width 1 has none.
    """

    windows: tuple[Tensor, ...] = rows()


def linear_map(config: ConvS2SConfig, inputs: int, outputs: int, *, retain: float = 1.0) -> Linear:
    """A linear map with bias 0 and weights N(0, sqrt(p / n)), p being what dropout retains of its input (app. A.3)."""
    layer = Linear(inputs, outputs, weight_norm=config.weight_norm)
    layer.init_normal(math.sqrt(retain / inputs))
    return layer


def inputs_of(widths: tuple[int, ...]) -> tuple[int, ...]:
    """Input width of each block: a linear map brings the embeddings to the first block's own."""
    return widths[0], *widths[:-1]


class ConvolutionalBlock(nn.Module):
    """What blocks of both sides have: a gated convolution, and a residual that a linear map brings to its width."""

    def __init__(self, config: ConvS2SConfig, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.convolution = GatedConvolution(inputs, outputs, kernel, weight_norm=config.weight_norm)
        self.convolution.init_for_gate(1 - config.dropout)
        self.residual = linear_map(config, inputs, outputs) if inputs != outputs else None
        self.dropout = Dropout(config.dropout)
        self.kernel = kernel

    def carried(self, x_NTC: Tensor) -> Tensor:
        """The residual, N x T x D."""
        return x_NTC if self.residual is None else self.residual(x_NTC)


class EncoderBlock(ConvolutionalBlock):
    """``z^l = (glu(conv_k(z^{l-1})) + z^{l-1}) sqrt(1/2)``, zeros beyond both ends of the sentence (section 3.2)."""

    def forward(self, x_BSC: Tensor, keep_BS1: Tensor) -> Tensor:
        # Positions that only pad the batch must look like the zeros beyond the sentence, or batch-mates would matter.
        beyond = (0, 0, (self.kernel - 1) // 2, self.kernel // 2)
        convolved: Tensor = self.convolution(nn.functional.pad(self.dropout(x_BSC) * keep_BS1, beyond))
        return (convolved + self.carried(x_BSC)) * HALF


class DecoderBlock(ConvolutionalBlock):
    """Causal gated convolution, then attention of its own where it ``attends``.

    ``h = glu(conv_k(x));  d = (W_d h + b_d + g) sqrt(1/2);  c = sum_j a_j (z_j + e_j) sqrt(1/2) S sqrt(1/S);``
    ``x = ((W_c c + b_c + h) sqrt(1/2) + x) sqrt(1/2)``
    """

    def __init__(self, config: ConvS2SConfig, inputs: int, outputs: int, kernel: int, *, attends: bool) -> None:
        super().__init__(config, inputs, outputs, kernel)
        self.query = linear_map(config, outputs, config.embedding) if attends else None
        self.context = linear_map(config, config.embedding, outputs) if attends else None

    def advance(
        self, x_RTC: Tensor, target_RTF: Tensor, window: Tensor | None, memory: ConvS2SMemory
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """T positions: features R x T x D, the next window R x (k-1) x C, the weights R x T x S."""
        seen = self.dropout(x_RTC)
        if window is not None:
            seen = torch.cat([window, seen], dim=1)
            window = seen[:, seen.size(1) - window.size(1) :]
        h: Tensor = self.convolution(seen)
        weights = None
        if self.query is not None and self.context is not None:
            # eq. 1:  d = W_d h + b_d + g, its variance kept by sqrt(1/2)
            context, weights = attend_to_source((self.query(h) + target_RTF) * HALF, memory)
            h = (self.context(context) + h) * HALF
        return (h + self.carried(x_RTC)) * HALF, window, weights


def attend_to_source(query_RTF: Tensor, memory: ConvS2SMemory) -> tuple[Tensor, Tensor]:
    """eq. 2 at its original size: ``c = sum_j a_j (z_j + e_j) sqrt(1/2) S sqrt(1/S)``, ``a = softmax(d z)``.

    Returns:
        Contexts R x T x F and weights R x T x S.
    """
    query_BQF = by_sentence(query_RTF, memory.mask)
    context_BQF, weights_BQS = attend(query_BQF, memory.keys, memory.values, memory.mask, 1.0)
    scaled = context_BQF * memory.scale[:, :, None]
    return scaled.reshape(query_RTF.shape), weights_BQS.reshape(*query_RTF.shape[:2], weights_BQS.size(-1))


class ConvS2S(Seq2SeqModel[ConvS2SMemory, ConvS2SState]):
    """Convolutional encoder and decoder with multi-step attention."""

    config: ConvS2SConfig

    def __init__(self, config: ConvS2SConfig) -> None:
        super().__init__()
        c = self.config = config
        retain = 1 - c.dropout
        self.source_embedding = nn.Parameter(torch.empty(c.source_vocabularies[0], c.embedding))
        self.target_embedding = nn.Parameter(torch.empty(c.target_vocabulary, c.embedding))
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table, 0.0, 0.1)
        if c.tied == "all":
            self.source_embedding = self.target_embedding
        self.source_positions = _positions(c, c.source_positions)
        self.target_positions = _positions(c, c.target_positions)
        self.encoder_input = linear_map(c, c.embedding, c.encoder_widths[0], retain=retain)
        encoder = zip(inputs_of(c.encoder_widths), c.encoder_widths, c.encoder_kernels, strict=True)
        self.encoder = nn.ModuleList([EncoderBlock(c, *sizes) for sizes in encoder])
        self.encoder_output = linear_map(c, c.encoder_widths[-1], c.embedding)
        self.decoder_input = linear_map(c, c.embedding, c.decoder_widths[0], retain=retain)
        decoder = zip(inputs_of(c.decoder_widths), c.decoder_widths, c.decoder_kernels, c.attends, strict=True)
        self.decoder = nn.ModuleList([DecoderBlock(c, *sizes, attends=attends) for *sizes, attends in decoder])
        self.decoder_output = linear_map(c, c.decoder_widths[-1], c.output_embedding)
        if c.tied == "none":
            self.output = linear_map(c, c.output_embedding, c.target_vocabulary, retain=retain)
        else:
            self.output_bias = nn.Parameter(torch.zeros(c.target_vocabulary))
        self.dropout = Dropout(c.dropout)

    def encode(self, sources: tuple[Padded, ...]) -> ConvS2SMemory:
        (source,) = sources
        e = nn.functional.embedding(source.values, self.source_embedding)
        if self.source_positions is not None:
            length = source.values.size(1)
            self.source_positions.check(length)
            e = e + self.source_positions.table[:length]
        e = self.dropout(narrowed(e))
        keep = source.mask[:, :, None].to(e.dtype)
        z = self.encoder_input(e)
        for layer in self.encoder:
            z = layer(z, keep)
        # Every attention sends a gradient into z, as key and as value; that into e stays whole.
        z = scale_gradient(self.encoder_output(z), 1 / (2 * sum(self.config.attends)))
        lengths = source.lengths.to(torch.promote_types(e.dtype, torch.float32))
        return ConvS2SMemory(
            keys=z,
            values=(z + e) * HALF,
            mask=additive_mask(source.mask),
            scale=(lengths * (1 / lengths).sqrt()).to(e.dtype)[:, None],
        )

    def init_state(self, memory: ConvS2SMemory, rows_per_sentence: int) -> ConvS2SState:
        c, total = self.config, memory.mask.size(0) * rows_per_sentence
        inputs = zip(inputs_of(c.decoder_widths), c.decoder_kernels, strict=True)
        windows = tuple(memory.scale.new_zeros(total, kernel - 1, width) for width, kernel in inputs if kernel > 1)
        return ConvS2SState.begin(total, memory.mask.device, windows=windows)

    def _advance(
        self, target_RT: Tensor, state: ConvS2SState, memory: ConvS2SMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        g = nn.functional.embedding(target_RT, self.target_embedding)
        if self.target_positions is not None:
            position_RT = state.position_R[:, None] + torch.arange(target_RT.size(1), device=target_RT.device)
            g = g + self.target_positions(position_RT)
        g = self.dropout(narrowed(g))
        x = self.decoder_input(g)
        past, windows = iter(state.windows), []
        for index, layer in enumerate(self.decoder):
            assert isinstance(layer, DecoderBlock)
            x, window, attention = layer.advance(x, g, next(past) if layer.kernel > 1 else None, memory)
            if window is not None:
                windows.append(window)
            if weights is not None and attention is not None:
                weights[f"decoder.{index}.source0"] = attention
        return self.dropout(self.decoder_output(x)), {"windows": tuple(windows)}

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        if self.config.tied != "none":
            return self.target_embedding, self.output_bias
        return self.output.effective_weight(), self.output.bias

    def parameter_parts(self) -> Mapping[str, int]:
        return {
            "embeddings": count_parameters(self.source_embedding, self.target_embedding),
            "positions": count_parameters(self.source_positions, self.target_positions),
            "encoder": count_parameters(self.encoder_input, self.encoder, self.encoder_output),
            "decoder": count_parameters(self.decoder_input, self.decoder, self.decoder_output),
            "output": count_parameters(self.output if self.config.tied == "none" else self.output_bias),
        }


def _positions(config: ConvS2SConfig, wanted: bool) -> PositionEmbedding | None:
    return PositionEmbedding("learned", config.max_positions, config.embedding) if wanted else None
