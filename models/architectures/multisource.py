"""Attention strategies for multi-source sequence-to-sequence learning (Libovický and Helcl, ACL 2017).

Any number of encoders, each of a text or of a matrix of feature vectors, and one recurrent decoder. Each source is
attended to as Bahdanau et al. (2014) do; the strategies differ in how the contexts come together.

Where the paper is silent this follows the toolkit it was made with: feature vectors are themselves the states that are
attended to, and their mean stands for a final state; common spaces have the width of the attention. All projections
have biases, as the paper says of them. Where several encoders (and the sentinel) share a softmax, each also has a
number of its own that is added to its energies; in a softmax over one encoder it would change no weight, and there is
none.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S positions of a source, T target positions,
D any width, A width of the attention's space, E encoders (and the sentinel, last), X attended states.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import additive_mask, by_sentence, made_whole, typed_as, weighted
from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.layers.recurrent import Gru, GruCell, Reset, orthogonal_cell
from tandem.models.architectures.protocol import Padded, Seq2SeqModel, Update, Weights, count_parameters, feature_widths
from tandem.models.architectures.records import Memory, State, memory, rows
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

Strategy = Literal["concatenation", "flat", "hierarchical"]


@dataclass(frozen=True, slots=True)
class MultiSourceConfig:
    """Configuration of :class:`MultiSource`.

    Attributes:
        source_vocabularies: types of each source's vocabulary (0 takes the prepared data's; always 0 for features).
        target_vocabulary: types of the target vocabulary (0 takes the prepared data's).
        features: per source the width of its feature vectors, 0 for text; empty where every source is text.
        embedding: width of the word embeddings, on both sides.
        encoder_width: width of each direction of a text encoder.
        attention_width: width of the space that energies are computed in, and of projected contexts.
        decoder_width: width of the decoder's state.
        gru_reset: where the reset gate of every GRU acts: "after" the product with the state, as fused kernels have it,
            or "before" it, on the state (Cho et al. 2014), as the authors' toolkit has it, which trains more slowly.
        decoder: "gru", which attends after its one step, or "cgru": one GRU before the attention, one after it.
        strategy: "concatenation" (one context per encoder, side by side), "flat" (one softmax over the states of all
            encoders) or "hierarchical" (a second attention over the encoders' contexts).
        share_projections: use one projection for energies and contexts (flat and hierarchical).
        sentinel: let the decoder attend to its own gated state instead (flat and hierarchical).
        energy_bias: biases on W, and a number for each encoder and the sentinel where they share a softmax.
        dropout: rate on embeddings, feature vectors and the input of the output layer.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    features: tuple[int, ...] = bounded((), at_least=0)
    embedding: int = bounded(300, at_least=1)
    encoder_width: int = bounded(300, at_least=1)
    attention_width: int = bounded(500, at_least=1)
    decoder_width: int = bounded(300, at_least=1)
    gru_reset: Reset = "after"
    decoder: Literal["gru", "cgru"] = "gru"
    strategy: Strategy = "concatenation"
    share_projections: bool = False
    sentinel: bool = False
    energy_bias: bool = True
    dropout: float = bounded(0.0, at_least=0.0, at_most=0.9)

    def __post_init__(self) -> None:
        if self.features and self.source_vocabularies == (0,):  # nothing is known of the data yet
            object.__setattr__(self, "source_vocabularies", (0,) * len(self.features))
        if not self.source_vocabularies:
            raise ConfigError("source_vocabularies must name at least one source, but is empty")
        if self.features and len(self.features) != len(self.source_vocabularies):
            count = len(self.source_vocabularies)
            raise ConfigError(f"features must have one width per source, {count}, but has {len(self.features)}")
        for index, (types, width) in enumerate(zip(self.source_vocabularies, feature_widths(self), strict=True)):
            if types and width:
                raise ConfigError(f"source {index} has features, so its vocabulary must be 0, but is {types}")
        if self.strategy == "concatenation" and (self.share_projections or self.sentinel):
            raise ConfigError('share_projections and sentinel need strategy = "flat" or "hierarchical"')


@dataclass(frozen=True, slots=True, eq=False)
class MultiSourceMemory(Memory):
    """One tensor per source, and what the decoder starts from.

    Attributes:
        keys: the states projected for the energies, ``U_k h + b_k``, B x S x A.
        values: the vectors that the weights sum, B x S x D; empty where the keys are those too.
        masks: additive, B x S.
        initial: the decoder's first state, B x D.
    """

    keys: tuple[Tensor, ...] = memory("source", "fixed")
    values: tuple[Tensor, ...] = memory("source", "fixed")
    masks: tuple[Tensor, ...] = memory("source", padding=-math.inf)
    initial: Tensor = memory("fixed")


@dataclass(frozen=True, slots=True, eq=False)
class MultiSourceState(State):
    """What the decoder carries: its state R x D, and for a plain GRU the contexts of the last position."""

    hidden: tuple[Tensor, ...] = rows(initial=True)
    contexts: tuple[Tensor, ...] = rows()


class TextEncoder(nn.Module):
    """Embedding and bidirectional GRU: states of both directions side by side, and both last ones."""

    def __init__(self, types: int, config: MultiSourceConfig) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(types, config.embedding))
        self.forwards = Gru(config.embedding, config.encoder_width, reset=config.gru_reset)
        self.backwards = Gru(config.embedding, config.encoder_width, reverse=True, reset=config.gru_reset)
        self.dropout = Dropout(config.dropout)
        init_embedding(self.embedding)
        for gru in (self.forwards, self.backwards):
            orthogonal_cell(gru.cell)

    def forward(self, source: Padded) -> tuple[Tensor, Tensor]:
        """States B x S x D and final state B x D."""
        x = self.dropout(nn.functional.embedding(source.values, self.embedding))
        forwards, last = self.forwards(x, source.lengths)
        backwards, first = self.backwards(x, source.lengths)
        return torch.cat([forwards, backwards], dim=-1), torch.cat([last, first], dim=-1)


class FeatureEncoder(nn.Module):
    """Feature vectors as they are: each is a state, and their mean is the final one."""

    def __init__(self, config: MultiSourceConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)

    def forward(self, source: Padded) -> tuple[Tensor, Tensor]:
        """States B x S x D, zero where padded, and final state B x D."""
        mask_BS = source.mask
        x_BSD = self.dropout(source.values.masked_fill(~mask_BS[:, :, None], 0.0))
        share_BS = mask_BS.to(x_BSD.dtype) / source.lengths[:, None]
        return x_BSD, (share_BS[:, None] @ x_BSD).squeeze(1)


class Energy(nn.Module):
    """``e = v^T tanh(W s + b + key)``, one number for each key (eq. 1)."""

    def __init__(self, config: MultiSourceConfig) -> None:
        super().__init__()
        width = config.attention_width
        self.query = Linear(config.decoder_width, width, bias=config.energy_bias)
        self.vector = Linear(width, 1, bias=False)

    def over(self, query_RD: Tensor, keys_BSA: Tensor) -> Tensor:
        """Energies B x K x S of the rows of each sentence over its states."""
        query_BKA = by_sentence(self.query(query_RD)[:, None], keys_BSA)
        energies: Tensor = self.vector(torch.tanh(query_BKA[:, :, None] + keys_BSA[:, None])).squeeze(-1)
        return energies

    def of(self, query_RD: Tensor, keys_REA: Tensor) -> Tensor:
        """Energies R x E of keys that each row has of its own."""
        energies: Tensor = self.vector(torch.tanh(self.query(query_RD)[:, None] + keys_REA)).squeeze(-1)
        return energies


class Projections(nn.Module):
    """An encoder's own projections into the common space: U for energies and U_c for contexts, or one for both."""

    def __init__(self, inputs: int, width: int, *, share: bool) -> None:
        super().__init__()
        self.key = Linear(inputs, width)
        self.value = None if share else Linear(inputs, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the energy and what the weighted sum takes."""
        key = self.key(x)
        return key, key if self.value is None else self.value(x)


def offsets_of(config: MultiSourceConfig, encoders: int) -> nn.Parameter | None:
    """What is added to the energies of each encoder and of the sentinel, last; None where there is nobody to tell from.

    It starts at 0.
    """
    count = encoders + config.sentinel
    return nn.Parameter(torch.zeros(count)) if config.energy_bias and count > 1 else None


class Sentinel(nn.Module):
    """``psi_i = sigmoid(W_y y_i + W_s s_{i-1} + b)``; attention may choose ``psi_i * s_i`` (section 2)."""

    def __init__(self, config: MultiSourceConfig) -> None:
        super().__init__()
        c = config
        self.symbol = Linear(c.embedding, c.decoder_width)
        self.previous = Linear(c.decoder_width, c.decoder_width, bias=False)
        self.projections = Projections(c.decoder_width, c.attention_width, share=c.share_projections)

    def forward(self, query_RD: Tensor, previous_RD: Tensor, symbol_RD: Tensor) -> tuple[Tensor, Tensor]:
        """The sentinel's key and value, R x A."""
        gate = torch.sigmoid(self.symbol(symbol_RD) + self.previous(previous_RD))
        projected: tuple[Tensor, Tensor] = self.projections(gate * query_RD)
        return projected


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """What one position attended to.

    Attributes:
        contexts: R x D each.
        weights: what made them, by name: R x S of each source, R x E of the encoders, R x 1 of the sentinel.
    """

    contexts: tuple[Tensor, ...]
    weights: dict[str, Tensor]


class AttentionStrategy(nn.Module, ABC):
    """How the decoder attends to several sources.

    Attributes:
        widths: of the contexts.
    """

    widths: tuple[int, ...]

    @abstractmethod
    def project(self, states: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Keys and values of the memory from each source's states B x S x D."""

    @abstractmethod
    def forward(self, query_RD: Tensor, previous_RD: Tensor, symbol_RD: Tensor, memory: MultiSourceMemory) -> Attended:
        """Attend with the decoder's state s_i; s_{i-1} and the embedded input are for the sentinel."""


def sum_states(weights_BKS: Tensor, values_BSD: Tensor) -> Tensor:
    """Weighted sums R x D (eq. 3)."""
    return weighted(weights_BKS, values_BSD).flatten(0, 1)


class Concatenation(AttentionStrategy):
    """``alpha^(k) = softmax(e^(k)),  c^(k) = sum_j alpha_j^(k) h_j^(k)`` (eq. 1-3), every encoder by itself."""

    def __init__(self, config: MultiSourceConfig, widths: Sequence[int]) -> None:
        super().__init__()
        c = config
        self.widths = tuple(widths)
        self.energies = nn.ModuleList([Energy(c) for _ in widths])
        self.keys = nn.ModuleList([Linear(width, c.attention_width) for width in widths])

    def project(self, states: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        return tuple(key(h) for key, h in zip(self.keys, states, strict=True)), tuple(states)

    def forward(self, query_RD: Tensor, previous_RD: Tensor, symbol_RD: Tensor, memory: MultiSourceMemory) -> Attended:
        contexts: list[Tensor] = []
        weights: dict[str, Tensor] = {}
        sources = zip(self.energies, memory.keys, memory.values, memory.masks, strict=True)
        for index, (energy, keys, values, mask) in enumerate(sources):
            assert isinstance(energy, Energy)
            weights_BKS = torch.softmax(energy.over(query_RD, keys) + mask[:, None], dim=-1)
            weights[f"source{index}"] = weights_BKS.flatten(0, 1)
            contexts.append(sum_states(weights_BKS, values))
        return Attended(tuple(contexts), weights)


class Flat(AttentionStrategy):
    """One softmax over the states of all encoders (eq. 4-5), W and v shared, U and U_c each encoder's own:

    ``alpha_j^(k) = exp e_j^(k) / sum_n sum_m exp e_m^(n),  c = sum_k sum_j alpha_j^(k) U_c^(k) h_j^(k)``
    """

    def __init__(self, config: MultiSourceConfig, widths: Sequence[int]) -> None:
        super().__init__()
        c = config
        self.widths = (c.attention_width,)
        self.energy = Energy(c)
        self.offsets = offsets_of(c, len(widths))
        self.projections = nn.ModuleList(
            [Projections(width, c.attention_width, share=c.share_projections) for width in widths]
        )
        self.share = c.share_projections
        self.sentinel = Sentinel(c) if c.sentinel else None

    def project(self, states: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        keys, values = zip(*(own(h) for own, h in zip(self.projections, states, strict=True)), strict=True)
        return keys, () if self.share else values

    def forward(self, query_RD: Tensor, previous_RD: Tensor, symbol_RD: Tensor, memory: MultiSourceMemory) -> Attended:
        values = memory.values or memory.keys
        energies = [
            self.energy.over(query_RD, keys) + mask[:, None]
            for keys, mask in zip(memory.keys, memory.masks, strict=True)
        ]
        names = [f"source{index}" for index in range(len(energies))]
        own_RA = None
        if self.sentinel is not None:
            key_RA, own_RA = self.sentinel(query_RD, previous_RD, symbol_RD)
            energies.append(by_sentence(self.energy.of(query_RD, key_RA[:, None])[:, None], memory.initial))
            names.append("sentinel")
        if self.offsets is not None:
            energies = [energy + offset for energy, offset in zip(energies, self.offsets, strict=True)]
        weights_BKX = torch.softmax(torch.cat(energies, dim=-1), dim=-1)
        parts = weights_BKX.split([energy.size(-1) for energy in energies], dim=-1)
        context = sum_states(parts[0], values[0])
        for part, value in zip(parts[1:], values[1:], strict=False):
            context = context + sum_states(part, value)
        if own_RA is not None:
            context = context + typed_as(parts[-1], own_RA).flatten(0, 1) * own_RA
        return Attended((context,), {name: part.flatten(0, 1) for name, part in zip(names, parts, strict=True)})


class Hierarchical(AttentionStrategy):
    """Every encoder's context first (eq. 1-3), then a second attention over the contexts (eq. 8-10):

    ``e^(k) = v_b^T tanh(W_b s + U_b^(k) c^(k)),  beta = softmax_k(e),  c = sum_k beta^(k) U_c^(k) c^(k)``
    """

    def __init__(self, config: MultiSourceConfig, widths: Sequence[int]) -> None:
        super().__init__()
        c = config
        self.widths = (c.attention_width,)
        self.first = Concatenation(c, widths)
        self.energy = Energy(c)
        self.offsets = offsets_of(c, len(widths))
        self.projections = nn.ModuleList(
            [Projections(width, c.attention_width, share=c.share_projections) for width in widths]
        )
        self.sentinel = Sentinel(c) if c.sentinel else None

    def project(self, states: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        return self.first.project(states)

    def forward(self, query_RD: Tensor, previous_RD: Tensor, symbol_RD: Tensor, memory: MultiSourceMemory) -> Attended:
        first = self.first(query_RD, previous_RD, symbol_RD, memory)
        projected = [own(context) for own, context in zip(self.projections, first.contexts, strict=True)]
        if self.sentinel is not None:
            projected.append(self.sentinel(query_RD, previous_RD, symbol_RD))
        keys_REA, values_REA = (torch.stack(parts, dim=1) for parts in zip(*projected, strict=True))
        energies_RE = self.energy.of(query_RD, keys_REA)
        weights_RE = torch.softmax(energies_RE if self.offsets is None else energies_RE + self.offsets, dim=-1)
        # The sum of so few products as one of matrices: their order is then the same in every batch.
        context = (weights_RE[:, None] @ values_REA).squeeze(1)
        return Attended((context,), {**first.weights, "encoders": weights_RE})


STRATEGIES: dict[Strategy, type[Concatenation] | type[Flat] | type[Hierarchical]] = {
    "concatenation": Concatenation,
    "flat": Flat,
    "hierarchical": Hierarchical,
}


def init_embedding(table: nn.Parameter) -> None:
    """N(0, 0.1)."""
    nn.init.normal_(table, 0.0, 0.1)


class MultiSource(Seq2SeqModel[MultiSourceMemory, MultiSourceState]):
    """Several encoders and one attentive recurrent decoder; with one source it is the text-only baseline."""

    config: MultiSourceConfig
    recurrent = True

    def __init__(self, config: MultiSourceConfig) -> None:
        super().__init__()
        c = self.config = config
        self.encoders = nn.ModuleList(
            [
                FeatureEncoder(c) if width else TextEncoder(types, c)
                for types, width in zip(c.source_vocabularies, feature_widths(c), strict=True)
            ]
        )
        widths = [width or 2 * c.encoder_width for width in feature_widths(c)]
        self.combination = STRATEGIES[c.strategy](c, widths)
        contexts = sum(self.combination.widths)
        self.initial = Linear(sum(widths), c.decoder_width)
        self.target_embedding = nn.Parameter(torch.empty(c.target_vocabulary, c.embedding))
        init_embedding(self.target_embedding)
        plain = c.decoder == "gru"
        self.input = Linear(c.embedding + contexts, c.embedding) if plain else None
        self.cell = GruCell(c.embedding, c.decoder_width, reset=c.gru_reset)
        self.second_cell = None if plain else GruCell(contexts, c.decoder_width, reset=c.gru_reset)
        for cell in (self.cell, self.second_cell):
            if cell is not None:
                orthogonal_cell(cell)
        self.output = Linear(c.decoder_width + contexts, c.decoder_width)
        self.output_weight = nn.Parameter(torch.empty(c.target_vocabulary, c.decoder_width))
        nn.init.xavier_uniform_(self.output_weight)
        self.output_bias = nn.Parameter(torch.zeros(c.target_vocabulary))
        self.dropout = Dropout(c.dropout)

    def encode(self, sources: tuple[Padded, ...]) -> MultiSourceMemory:
        states: list[Tensor] = []
        finals: list[Tensor] = []
        for source, encoder in zip(sources, self.encoders, strict=True):
            if source.values.is_floating_point():  # features come as float32, whatever the model computes in
                source = Padded(source.values.to(self.output_weight.dtype), source.lengths)
            h_BSD, final_BD = encoder(source)
            states.append(h_BSD)
            finals.append(final_BD)
        keys, values = self.combination.project(states)
        masks = tuple(additive_mask(source.mask) for source in sources)
        return MultiSourceMemory(keys, values, masks, initial=self.initial(torch.cat(finals, dim=-1)))

    def init_state(self, memory: MultiSourceMemory, rows_per_sentence: int) -> MultiSourceState:
        initial_BD = memory.initial
        total = initial_BD.size(0) * rows_per_sentence
        hidden_RD = initial_BD[:, None].expand(-1, rows_per_sentence, -1).reshape(total, initial_BD.size(1))
        widths = self.combination.widths if self.input is not None else ()
        contexts = tuple(initial_BD.new_zeros(total, width) for width in widths)
        return MultiSourceState.begin(total, initial_BD.device, hidden=(hidden_RD,), contexts=contexts)

    def _advance(
        self, target_RT: Tensor, state: MultiSourceState, memory: MultiSourceMemory, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        symbols_RTD = self.dropout(nn.functional.embedding(target_RT, self.target_embedding))
        (s,), contexts = state.hidden, state.contexts
        outputs: list[Tensor] = []
        seen: list[dict[str, Tensor]] = []
        for symbol in symbols_RTD.unbind(1):
            previous = s
            if self.input is None:
                s = self.cell(symbol, previous)
            else:
                s = self.cell(self.input(torch.cat([symbol, *contexts], dim=-1)), previous)
            attended = self.combination(s, previous, symbol, memory)
            contexts = attended.contexts
            if self.second_cell is not None:
                s = self.second_cell(torch.cat(contexts, dim=-1), s)
            outputs.append(torch.cat([s, *contexts], dim=-1))
            seen.append(attended.weights)
        if weights is not None:
            for name in seen[0]:
                weights[f"decoder.0.{name}"] = torch.stack([position[name] for position in seen], dim=1)
        features_RTD = self.dropout(self.output(torch.stack(outputs, dim=1)))
        return features_RTD, {"hidden": (s,), "contexts": contexts if self.input is not None else ()}

    def aligned(self, weights: Weights) -> tuple[Tensor, ...]:
        """Within each source: what a flat softmax leaves to it counts as the whole."""
        parts = super().aligned(weights)
        return tuple(map(made_whole, parts)) if isinstance(self.combination, Flat) else parts

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.output_weight, self.output_bias

    def parameter_parts(self) -> Mapping[str, int]:
        embeddings = [encoder.embedding for encoder in self.encoders if isinstance(encoder, TextEncoder)]
        embedded = count_parameters(*embeddings)
        return {
            "embeddings": embedded + count_parameters(self.target_embedding),
            "encoders": count_parameters(self.encoders) - embedded,
            "attention": count_parameters(self.combination),
            "decoder": count_parameters(self.initial, self.input, self.cell, self.second_cell),
            "output": count_parameters(self.output, self.output_weight, self.output_bias),
        }
