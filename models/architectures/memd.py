"""ME-MD, multiple encoders and decoders (Zhang et al., IJCAI 2017).

Encoders of different depth and type read one source embedding; their outputs are gated with it (eq. 7) and combined
(eq. 9). Decoders of different depth, each with its own recurrent layers, attention and gate (eq. 6, 11, 12), are
combined before the softmax (eq. 13). With one encoder or decoder there is nothing to gate or combine: one of each is
the RNNsearch* baseline.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, D width,
G = 3 D.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import additive_mask, weighted
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.layers.recurrent import Gru, GruCell, orthogonal_blocks
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters
from tandem.models.architectures.records import Memory, State, memory, rows
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

WINDOW = 3  # of the convolutional encoder


@dataclass(frozen=True, slots=True)
class MemdConfig:
    """Configuration of :class:`Memd`.

    Attributes:
        source_vocabularies: types of the source vocabulary (one entry; 0 takes the prepared data's).
        target_vocabulary: types of the target vocabulary (0 takes the prepared data's).
        width: d, of embeddings and states alike.
        encoders: "gru2", "gru4", … (so many GRU layers of alternating direction, the first forward) or "cnn" (one
            convolution of window 3).
        decoders: the number of GRU layers of each decoder.
        dropout: rate on the input of the output layer.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    width: int = bounded(512, at_least=2)
    encoders: tuple[str, ...] = ("gru2",)
    decoders: tuple[int, ...] = bounded((1,), at_least=1)
    dropout: float = bounded(0.5, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        if len(self.source_vocabularies) != 1:
            raise ConfigError(f"ME-MD has one source, but {len(self.source_vocabularies)} are given")
        for name, value in (("encoders", self.encoders), ("decoders", self.decoders)):
            if not value:
                raise ConfigError(f"{name} must name at least one, but is empty")
        wrong = [name for name in self.encoders if not re.fullmatch(r"gru[1-9]\d?|cnn", name)]
        if wrong:
            raise ConfigError(f'encoders must each be "cnn" or "gruN" (N layers, 1 to 99), but {wrong} are not')


@dataclass(frozen=True, slots=True, eq=False)
class MemdMemory(Memory):
    """The combined encoders.

    Attributes:
        values: h, B x S x D.
        keys: per decoder ``U h + b``, B x S x D.
        mask: additive, B x S.
    """

    values: Tensor = memory("source0", "fixed")
    keys: tuple[Tensor, ...] = memory("source0", "fixed")
    mask: Tensor = memory("source0", padding=-math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class MemdState(State):
    """Per decoder, one after the other, s and then the states of its layers from the second on, R x D each."""

    states: tuple[Tensor, ...] = rows()


class RecurrentEncoder(nn.Module):
    """GRU layers one upon another, the first from left to right, each other one from right to left (section 3.2)."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Gru(width, width, reverse=index % 2 == 1) for index in range(depth)])

    def forward(self, e_BSD: Tensor, source: Padded) -> Tensor:
        o_BSD = e_BSD
        for layer in self.layers:
            o_BSD, _ = layer(o_BSD, source.lengths)
        return o_BSD


class ConvolutionalEncoder(nn.Module):
    """``tanh(W_f [x_{i-1} : x_i : x_{i+1}] + b)``, zeros beyond the sentence (eq. 10)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = Linear(WINDOW * width, width)

    def forward(self, e_BSD: Tensor, source: Padded) -> Tensor:
        # Positions that only pad the batch must look like the zeros beyond the sentence, or batch-mates would matter.
        inside = e_BSD.masked_fill(~source.mask[:, :, None], 0.0)
        padded = nn.functional.pad(inside, (0, 0, WINDOW // 2, WINDOW // 2))
        taps = [padded[:, k : k + e_BSD.size(1)] for k in range(WINDOW)]
        return torch.tanh(self.linear(torch.cat(taps, dim=-1)))


class EncoderGate(nn.Module):
    """``z = sigmoid(W_xz e + W_oz o + b_z)``, ``h~ = tanh(W_xh e + W_oh o + b_h)``, ``(1 - z) e + z h~`` (eq. 7)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedded = Linear(width, 2 * width)
        self.encoded = Linear(width, 2 * width, bias=False)

    def forward(self, e_BSD: Tensor, o_BSD: Tensor) -> Tensor:
        z, h = (self.embedded(e_BSD) + self.encoded(o_BSD)).chunk(2, dim=-1)
        z = torch.sigmoid(z)
        return (1 - z) * e_BSD + z * torch.tanh(h)


class Attention(nn.Module):
    """``alpha_j = softmax(v^T tanh(W s + U h_j + b))``, ``c = sum_j alpha_j h_j`` (eq. 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = Linear(width, width, bias=False)
        self.source = Linear(width, width)
        self.energy = Linear(width, 1, bias=False)

    def forward(self, s_RD: Tensor, keys_BSD: Tensor, memory: MemdMemory) -> tuple[Tensor, Tensor]:
        """The context R x D and the weights R x S, from ``keys = U h + b``."""
        query_BK1D = self.query(s_RD).reshape(keys_BSD.size(0), -1, 1, keys_BSD.size(2))
        energy_BKS = self.energy(torch.tanh(query_BK1D + keys_BSD[:, None])).squeeze(-1)
        alpha_BKS = torch.softmax(energy_BKS + memory.mask[:, None], dim=-1)
        c_BKD = weighted(alpha_BKS, memory.values)
        return c_BKD.reshape(s_RD.shape), alpha_BKS.reshape(s_RD.size(0), alpha_BKS.size(-1))


class DecoderGate(nn.Module):
    """``z, r = sigmoid(W_c. c + W_s. s~ + b)``, ``s' = tanh((W_ss s~ + b) * r + W_cs c)``, ``z s~ + (1 - z) s'``
    (eq. 12)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.states = Linear(width, 3 * width)
        self.contexts = Linear(width, 3 * width, bias=False)

    def forward(self, s_RD: Tensor, c_RD: Tensor) -> Tensor:
        s_z, s_r, s_n = self.states(s_RD).chunk(3, dim=-1)
        c_z, c_r, c_n = self.contexts(c_RD).chunk(3, dim=-1)
        z, r = torch.sigmoid(s_z + c_z), torch.sigmoid(s_r + c_r)
        return z * s_RD + (1 - z) * torch.tanh(s_n * r + c_n)


class RecurrentDecoder(nn.Module):
    """One decoder of n GRU layers (figure 3, eq. 11).

    ``s~_1 = GRU_1(y, s)``; ``s~_l = GRU_l(s~_{l-1}, s~_l of the position before)``; ``c = att(s~_n, h)``;
    ``s = gate(s~_n, c)``; ``q = W [s ; c ; y] + b``
    """

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([GruCell(width, width) for _ in range(depth)])
        self.attention = Attention(width)
        self.gate = DecoderGate(width)
        self.output = Linear(3 * width, width)

    def advance(
        self, y_RTD: Tensor, states: tuple[Tensor, ...], keys_BSD: Tensor, memory: MemdMemory
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """T positions one by one: q R x T x D, the new states, the weights R x T x S."""
        cells = [cell for cell in self.layers if isinstance(cell, GruCell)]
        s_RD, *upper = states
        after, contexts, seen = [], [], []
        for mapped_RG in cells[0].inputs(y_RTD).unbind(1):  # what depends on y alone is one product over all positions
            inner_RD = cells[0].advance(mapped_RG, s_RD)
            for index, cell in enumerate(cells[1:]):
                inner_RD = upper[index] = cell(inner_RD, upper[index])
            c_RD, alpha_RS = self.attention(inner_RD, keys_BSD, memory)
            s_RD = self.gate(inner_RD, c_RD)
            after.append(s_RD)
            contexts.append(c_RD)
            seen.append(alpha_RS)
        q_RTD = self.output(torch.cat([torch.stack(after, dim=1), torch.stack(contexts, dim=1), y_RTD], dim=-1))
        return q_RTD, (s_RD, *upper), torch.stack(seen, dim=1)


class Memd(Seq2SeqModel[MemdMemory, MemdState]):
    """Multiple encoders and decoders; RNNsearch* with one of each."""

    recurrent = True
    config: MemdConfig

    def __init__(self, config: MemdConfig) -> None:
        super().__init__()
        c = self.config = config
        d, encoders, decoders = c.width, len(c.encoders), len(c.decoders)
        self.source_embedding = nn.Parameter(torch.empty(c.source_vocabularies[0], d))
        self.target_embedding = nn.Parameter(torch.empty(c.target_vocabulary, d))
        self.encoders = nn.ModuleList(
            [ConvolutionalEncoder(d) if name == "cnn" else RecurrentEncoder(d, int(name[3:])) for name in c.encoders]
        )
        self.encoder_gates = nn.ModuleList([EncoderGate(d) for _ in c.encoders] if encoders > 1 else [])
        self.encoder_output = Linear(encoders * d, d) if encoders > 1 else None
        self.decoders = nn.ModuleList([RecurrentDecoder(d, depth) for depth in c.decoders])
        self.decoder_output = Linear(decoders * d, d) if decoders > 1 else None
        self.output_weight = nn.Parameter(torch.empty(c.target_vocabulary, d))
        self.output_bias = nn.Parameter(torch.zeros(c.target_vocabulary))
        self.dropout = Dropout(c.dropout)
        self._initialise()

    def _initialise(self) -> None:
        """Square matrices orthogonal, others N(0, 0.01), biases 0 (section 4.3)."""
        for module in self.modules():
            if isinstance(module, Linear):
                orthogonal_blocks(module, self.config.width)
        for table in (self.source_embedding, self.target_embedding, self.output_weight):
            nn.init.normal_(table, 0.0, 0.01)

    def encode(self, sources: tuple[Padded, ...]) -> MemdMemory:
        (source,) = sources
        e_BSD = nn.functional.embedding(source.values, self.source_embedding)
        outputs = [encoder(e_BSD, source) for encoder in self.encoders]
        if self.encoder_output is None:
            h_BSD = outputs[0]
        else:
            gated = [gate(e_BSD, o) for gate, o in zip(self.encoder_gates, outputs, strict=True)]
            # eq. 9:  h_i = tanh(sum_k W_k h_ki + b)
            h_BSD = torch.tanh(self.encoder_output(torch.cat(gated, dim=-1)))
        return MemdMemory(
            values=h_BSD,
            keys=tuple(decoder.attention.source(h_BSD) for decoder in self._decoders()),
            mask=additive_mask(source.mask),
        )

    def _decoders(self) -> list[RecurrentDecoder]:
        return [decoder for decoder in self.decoders if isinstance(decoder, RecurrentDecoder)]

    def init_state(self, memory: MemdMemory, rows_per_sentence: int) -> MemdState:
        total = memory.values.size(0) * rows_per_sentence
        zeros = memory.values.new_zeros(total, self.config.width)
        return MemdState.begin(total, memory.values.device, states=(zeros,) * sum(self.config.decoders))

    def _advance(
        self, target_RT: Tensor, state: MemdState, memory: MemdMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        y_RTD = nn.functional.embedding(target_RT, self.target_embedding)
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for index, decoder in enumerate(self._decoders()):
            own = state.states[len(states) : len(states) + self.config.decoders[index]]
            q_RTD, new, attention = decoder.advance(y_RTD, own, memory.keys[index], memory)
            outputs.append(q_RTD)
            states.extend(new)
            if weights is not None:
                weights[f"decoder{index}.0.source0"] = attention
        if self.decoder_output is None:
            q_RTD = outputs[0]
        else:
            # eq. 13:  q = tanh(sum_k W_qk q_k + b)
            q_RTD = torch.tanh(self.decoder_output(torch.cat(outputs, dim=-1)))
        return self.dropout(q_RTD), {"states": tuple(states)}

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.output_weight, self.output_bias

    def parameter_parts(self) -> Mapping[str, int]:
        return {
            "embeddings": count_parameters(self.source_embedding, self.target_embedding),
            "encoders": count_parameters(self.encoders),
            "encoder_gates": count_parameters(self.encoder_gates),
            "encoder_output": count_parameters(self.encoder_output),
            "decoders": count_parameters(self.decoders),
            "decoder_output": count_parameters(self.decoder_output),
            "output": count_parameters(self.output_weight, self.output_bias),
        }
