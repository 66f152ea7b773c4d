"""Dot-product attention over a memory and over a pool of past positions.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T new positions, P pool slots,
Q queries of one sentence (K x T), D width, H heads, E = D / H.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.layers.dropout import Dropout
from models.layers.linear import Linear


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


def attend(
    query_BQD: Tensor, keys_BSD: Tensor, values_BSD: Tensor, mask_BS: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """One-head attention: contexts B x Q x D and weights B x Q x S (eq. 4 of DPN-S2S, times ``scale``)."""
    weights_BQS = torch.softmax(query_BQD @ keys_BSD.mT * scale + mask_BS[:, None, :], dim=-1)
    return weights_BQS @ values_BSD, weights_BQS


def attend_heads(
    query_BQD: Tensor, keys_BSD: Tensor, values_BSD: Tensor, mask_BS: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    """Multi-head scaled attention: contexts B x Q x D and weights B x H x Q x S."""
    q, k, v = (split_heads(x, heads) for x in (query_BQD, keys_BSD, values_BSD))
    weights_BHQS = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)) + mask_BS[:, None, None, :], dim=-1)
    return merge_heads(weights_BHQS @ v), weights_BHQS


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
        """Attend over the whole sequence: features, and the keys and values, all B x S x D."""
        query, key, value = self.query_key_value(x_BSD).chunk(3, dim=-1)
        q, k, v = (split_heads(x, self.heads) for x in (query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)) + mask_BS[:, None, None, :], dim=-1)
        return self.output(merge_heads(self.dropout(weights) @ v)), key, value

    def advance(
        self, x_RTD: Tensor, pool_keys_BPD: Tensor, pool_values_BPD: Tensor, history_RP: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from T new positions to the visible slots of the pool and, causally, to one another, in one softmax.

        Returns:
            The attended features R x T x D and the new keys and values R x T x D, for the caller to append.
        """
        heads = self.heads
        query, key, value = self.query_key_value(x_RTD).chunk(3, dim=-1)
        new, v_RHTE = self.causal(query, key, value)
        slots = pool_keys_BPD.size(1)
        if slots == 0:  # teacher forcing from the start: products with an empty pool cost time and do not export
            return self.output(merge_heads(self.dropout(torch.softmax(new, dim=-1)) @ v_RHTE)), key, value

        past = shared_logits(query, pool_keys_BPD, heads) + history_RP[:, None, None, :]
        weights_RHTX = self.dropout(torch.softmax(torch.cat([past, new], dim=-1), dim=-1))
        past_weights, new_weights = weights_RHTX[..., :slots], weights_RHTX[..., slots:]
        from_pool = shared_context(past_weights, pool_values_BPD, heads)
        features = self.output(from_pool + merge_heads(new_weights @ v_RHTE))
        return features, key, value

    def causal(self, query_RTD: Tensor, key_RTD: Tensor, value_RTD: Tensor) -> tuple[Tensor, Tensor]:
        """Logits R x H x T x T of new positions on one another and on nothing later; the values R x H x T x E."""
        q_RHTE, k_RHTE, v_RHTE = (split_heads(x, self.heads) for x in (query_RTD, key_RTD, value_RTD))
        new = q_RHTE @ k_RHTE.mT / math.sqrt(q_RHTE.size(-1))
        length = query_RTD.size(1)
        if length > 1:
            new = new + torch.full((length, length), -torch.inf, device=query_RTD.device).triu(1)
        return new, v_RHTE


def shared_logits(query_RTD: Tensor, keys_BPD: Tensor, heads: int) -> Tensor:
    """Scaled logits R x H x T x P of every row on the keys that all rows of its sentence share."""
    rows, length, _ = query_RTD.shape
    q_BHQE = split_heads(by_sentence(query_RTD, keys_BPD), heads)
    logits_BHQP = q_BHQE @ split_heads(keys_BPD, heads).mT
    by_row = logits_BHQP.transpose(1, 2).reshape(rows, length, heads, keys_BPD.size(1)).transpose(1, 2)
    return by_row / math.sqrt(q_BHQE.size(-1))


def shared_context(weights_RHTP: Tensor, values_BPD: Tensor, heads: int) -> Tensor:
    """Contexts R x T x D from the values that all rows of a sentence share."""
    rows, _, length, _ = weights_RHTP.shape
    contexts_BHQE = split_rows(weights_RHTP, values_BPD) @ split_heads(values_BPD, heads)
    return contexts_BHQE.transpose(1, 2).reshape(rows, length, values_BPD.size(-1))


def split_rows(weights_RHTP: Tensor, sentences: Tensor) -> Tensor:
    """R x H x T x P -> B x H x (K T) x P."""
    rows, heads, length, slots = weights_RHTP.shape
    queries = rows * length // sentences.size(0)  # not -1: a pool may have no slot yet
    return weights_RHTP.transpose(1, 2).reshape(sentences.size(0), queries, heads, slots).transpose(1, 2)


class FeedForward(nn.Module):
    """``W_2 relu(W_1 x)``, with dropout on the hidden units."""

    def __init__(self, width: int, hidden: int, *, bias: bool, dropout: float) -> None:
        super().__init__()
        self.inner = Linear(width, hidden, bias=bias)
        self.outer = Linear(hidden, width, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.outer(self.dropout(torch.relu(self.inner(x))))
        return projected
