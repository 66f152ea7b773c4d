"""Dot-product attention over a memory and over a pool of past positions.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T new positions, P pool slots,
Q queries of one sentence (K x T), X positions of any kind, D width, H heads, E = D / H. Keys and values that steps read
again and again are kept by head (B x H x P x E), so that no step transposes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.records import Memory, State, memory, pool

SUMMED_AT_ONCE = 128  # features

Activation = Literal["relu", "gelu", "swish"]
ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}
"""max(0, x); x Phi(x) with the normal distribution's Phi (Hendrycks and Gimpel 2016); x / (1 + e^-x) (Ramachandran,
Zoph and Le 2017, "Searching for Activation Functions", with beta = 1)."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueMemory(Memory):
    """Per layer that the target passes the source's keys and values B x H x S x E; ``mask`` is additive, B x S."""

    keys: tuple[Tensor, ...] = memory("fixed", "source0", "fixed")
    values: tuple[Tensor, ...] = memory("fixed", "source0", "fixed")
    mask: Tensor = memory("source0", padding=-math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueState(State):
    """Per layer that the target passes the pools of its own keys and values B x H x P x E."""

    keys: tuple[Tensor, ...] = pool()
    values: tuple[Tensor, ...] = pool()

    @classmethod
    def before(cls, memory: KeyValueMemory, rows_per_sentence: int) -> KeyValueState:
        """The state before BOS, with empty pools, for R = B x ``rows_per_sentence`` rows."""
        empty = tuple(keys[:, :, :0] for keys in memory.keys)
        return cls.begin(memory.mask.size(0) * rows_per_sentence, memory.mask.device, keys=empty, values=empty)


def additive_mask(keep: Tensor) -> Tensor:
    """0 where ``keep`` is true, -inf elsewhere."""
    return torch.zeros_like(keep, dtype=torch.float32).masked_fill(~keep, -torch.inf)


def split_heads(x_NTD: Tensor, heads: int) -> Tensor:
    """N x T x D -> N x H x T x E."""
    split: Tensor = x_NTD.unflatten(-1, (heads, -1)).transpose(1, 2)
    return split


def merge_heads(x_NHTE: Tensor) -> Tensor:
    """N x H x T x E -> N x T x D."""
    return x_NHTE.transpose(1, 2).flatten(2)


def by_sentence(x_RTD: Tensor, sentences: Tensor) -> Tensor:
    """R x T x D -> B x (K T) x D, with B read off the first axis of ``sentences``: the beam folds into the queries."""
    return x_RTD.reshape(sentences.size(0), -1, x_RTD.size(-1))


def typed_as(weights: Tensor, values: Tensor) -> Tensor:
    """Weights in the type of what they weigh: masks are float32, and make the weights of a narrow model so."""
    # Asked for, since a conversion that converts nothing would still be a node of traced graphs.
    return weights if weights.dtype == values.dtype else weights.to(values.dtype)


def weighted(weights: Tensor, values: Tensor) -> Tensor:
    """``weights @ values`` in the values' type."""
    return typed_as(weights, values) @ values


def attend(
    query_BQD: Tensor, keys_BSD: Tensor, values_BSD: Tensor, mask_BS: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """One-head attention: contexts B x Q x D and weights B x Q x S (eq. 4 of DPN-S2S, times ``scale``)."""
    weights_BQS = torch.softmax(query_BQD @ keys_BSD.mT * scale + mask_BS[:, None, :], dim=-1)
    return weighted(weights_BQS, values_BSD), weights_BQS


def attend_heads(
    query_BQD: Tensor, keys_BHSE: Tensor, values_BHSE: Tensor, mask_BS: Tensor, dropout: nn.Module | None = None
) -> tuple[Tensor, Tensor]:
    """Multi-head scaled attention: contexts B x Q x D and weights B x H x Q x S, before ``dropout`` acts on them."""
    q = split_heads(query_BQD, keys_BHSE.size(1))
    weights_BHQS = torch.softmax(q @ keys_BHSE.mT / math.sqrt(q.size(-1)) + mask_BS[:, None, None, :], dim=-1)
    used_BHQS = weights_BHQS if dropout is None else dropout(weights_BHQS)
    return merge_heads(weighted(used_BHQS, values_BHSE)), weights_BHQS


def made_whole(weights_RTS: Tensor) -> Tensor:
    """Weights that sum to 1, whatever share of a softmax they are."""
    # Summed from left to right: a plain sum rounds by where a row lies in memory, thus by its batch-mates.
    total_RT1 = weights_RTS.cumsum(-1)[..., -1:]
    return weights_RTS / total_RT1.clamp_min(torch.finfo(weights_RTS.dtype).tiny)


class SelfAttention(nn.Module):
    """Multi-head self-attention, over a whole source or over a target's pool and its new positions.

    Args:
        width: D.
        heads: H.
        bias: whether the four maps have biases.
        dropout: rate on the attention weights.
    """

    def __init__(self, width: int, heads: int, *, bias: bool, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = Linear(width, 3 * width, bias=bias)
        self.output = Linear(width, width, bias=bias)
        self.dropout = Dropout(dropout)
        # The three maps are one product; each is initialised as the D x D map it is.
        for part in self.query_key_value.weight.data.chunk(3):
            nn.init.xavier_uniform_(part)

    def forward(self, x_BSD: Tensor, mask_BS: Tensor) -> Tensor:
        """Attend over the whole sequence."""
        return self.over(x_BSD, mask_BS)[0]

    def over(self, x_BSD: Tensor, mask_BS: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Attend over the whole sequence: features B x S x D, and the keys and values B x H x S x E."""
        query, key, value = (split_heads(x, self.heads) for x in self.query_key_value(x_BSD).chunk(3, dim=-1))
        weights = torch.softmax(query @ key.mT / math.sqrt(query.size(-1)) + mask_BS[:, None, None, :], dim=-1)
        return self.output(merge_heads(weighted(self.dropout(weights), value))), key, value

    def advance(
        self, x_RTD: Tensor, pool_keys_BHPE: Tensor, pool_values_BHPE: Tensor, history_RP: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from T new positions to the visible slots of the pool and, causally, to one another, in one softmax.

        Returns:
            The attended features R x T x D and the new keys and values R x T x H x E, for the caller to append.
        """
        query, key, value = (x.unflatten(-1, (self.heads, -1)) for x in self.query_key_value(x_RTD).chunk(3, dim=-1))
        new_RHTT = causal_logits(query, key)
        slots = pool_keys_BHPE.size(2)
        if slots == 0:  # teacher forcing from the start: products with an empty pool cost time and do not export
            context = causal_context(self.dropout(torch.softmax(new_RHTT, dim=-1)), value)
            return self.output(context.flatten(2)), key, value

        past_BHQP = shared_logits(query, pool_keys_BHPE) + by_query(history_RP, pool_keys_BHPE, x_RTD.size(1))
        logits_BHQX = torch.cat([past_BHQP, over_sentences(new_RHTT, pool_keys_BHPE)], dim=-1)
        weights_BHQX = self.dropout(torch.softmax(logits_BHQX, dim=-1))
        context = shared_context(weights_BHQX[..., :slots], pool_values_BHPE, x_RTD.size(1))
        context = context + causal_context(over_rows(weights_BHQX[..., slots:], x_RTD.size(1)), value)
        return self.output(context.flatten(2)), key, value


# Every row attends to what all rows of its sentence share (a pool, a source) in the layout B x H x Q x ..., and to its
# own new positions in the layout R x H x T x ...; what crosses from one to the other are weights, never features.


# Shapes that a step needs are constants or read off the number of sentences, for each that is computed costs nodes.


def shared_logits(query_RTHE: Tensor, keys_BHXE: Tensor) -> Tensor:
    """Scaled logits B x H x Q x X of every row on the keys that all rows of its sentence share."""
    width = query_RTHE.size(-1)
    query_BHQE = query_RTHE.reshape(keys_BHXE.size(0), -1, *query_RTHE.shape[2:]).transpose(1, 2)
    if width <= SUMMED_AT_ONCE:
        return query_BHQE @ keys_BHXE.mT / math.sqrt(width)
    # Matrix kernels sum wider products in blocks that depend on the number of positions, thus on batch-mates' lengths.
    parts = zip(query_BHQE.split(SUMMED_AT_ONCE, dim=-1), keys_BHXE.split(SUMMED_AT_ONCE, dim=-1), strict=True)
    first, *others = (query @ keys.mT for query, keys in parts)
    logits: Tensor = sum(others, start=first)
    return logits / math.sqrt(width)


def shared_context(weights_BHQX: Tensor, values_BHXE: Tensor, length: int) -> Tensor:
    """Contexts R x T x H x E from the values that all rows of a sentence share."""
    contexts_BQHE = weighted(weights_BHQX, values_BHXE).transpose(1, 2)
    return contexts_BQHE.reshape(-1, length, *contexts_BQHE.shape[2:])


def causal_logits(query_RTHE: Tensor, key_RTHE: Tensor) -> Tensor:
    """Scaled logits R x H x T x T of new positions on one another and on nothing later."""
    length, heads, width = query_RTHE.shape[1:]
    if length == 1 and width % 4 == 0:  # of other widths the sum would depend on where in memory a row lies
        return (query_RTHE * key_RTHE).sum(-1).reshape(-1, heads, 1, 1) / math.sqrt(width)
    logits: Tensor = query_RTHE.transpose(1, 2) @ key_RTHE.permute(0, 2, 3, 1) / math.sqrt(width)
    return logits + torch.full((length, length), -torch.inf, device=logits.device).triu(1)


def causal_context(weights_RHTT: Tensor, value_RTHE: Tensor) -> Tensor:
    """Contexts R x T x H x E from a row's own new positions."""
    length, heads = value_RTHE.shape[1:3]
    if length == 1:
        return typed_as(weights_RHTT, value_RTHE).reshape(-1, 1, heads, 1) * value_RTHE
    return weighted(weights_RHTT, value_RTHE.transpose(1, 2)).transpose(1, 2)


def over_sentences(x_RHTX: Tensor, sentences: Tensor) -> Tensor:
    """R x H x T x X -> B x H x Q x X, with B read off the first axis of ``sentences``."""
    heads, length, width = x_RHTX.shape[1:]
    if length == 1:
        return x_RHTX.reshape(sentences.size(0), -1, heads, width).transpose(1, 2)
    by_row = x_RHTX.reshape(sentences.size(0), -1, heads, length, width)
    return by_row.transpose(1, 2).flatten(2, 3)


def over_rows(x_BHQX: Tensor, length: int) -> Tensor:
    """B x H x Q x X -> R x H x T x X."""
    sentences, heads, _, width = x_BHQX.shape
    if length == 1:
        return x_BHQX.transpose(1, 2).reshape(-1, heads, 1, width)
    by_row = x_BHQX.reshape(sentences, heads, -1, length, width).transpose(1, 2)
    return by_row.reshape(-1, heads, length, width)


def by_query(history_RP: Tensor, sentences: Tensor, length: int) -> Tensor:
    """R x P -> B x 1 x Q x P: what each of a row's T new positions adds to its logits on the pool."""
    if length > 1:
        history_RP = history_RP.repeat_interleave(length, dim=0)
    return history_RP.reshape(sentences.size(0), 1, -1, history_RP.size(1))


class FeedForward(nn.Module):
    """``W_2 act(W_1 x)``, with dropout on the hidden units; ``act`` is the rectifier unless said otherwise."""

    def __init__(self, width: int, hidden: int, *, bias: bool, dropout: float, activation: Activation = "relu") -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.inner = Linear(width, hidden, bias=bias)
        self.outer = Linear(hidden, width, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return projected
