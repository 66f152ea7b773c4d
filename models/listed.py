"""One step's search over the entries of shortlists (:mod:`models.shortlist`) instead of the whole vocabulary.

Sentences share the product with the output layer over the union of their lists, and nothing else: each one's
probabilities are over its own list, and the same bytes whatever the other entries are.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, W entries, C candidates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def mask(logits_RW: Tensor, listed_BW: Tensor) -> Tensor:
    """The logits R x W, -inf where a row's sentence does not list the entry."""
    sentences, entries = listed_BW.shape
    return (logits_RW.reshape(sentences, -1, entries) + listed_BW[:, None]).reshape(-1, entries)


def log_sum_exp(masked_RW: Tensor) -> Tensor:
    """Log-sum-exp R x 1 of each row, whatever the order of its columns and however many are -inf.

    A sum of floats depends on its order. Here every term is a multiple of 2^-23, at most 2: ``1 + exp(x - max)`` in
    float32. Sums of up to 2^29 such terms are exact in float64.
    """
    most_R1 = masked_RW.amax(-1, keepdim=True)
    terms_RW = (1 + torch.exp(masked_RW - most_R1)).double()
    sum_R1 = terms_RW.sum(-1, keepdim=True) - masked_RW.size(1)
    return most_R1 + torch.log(sum_R1).float()


def force(total_RW: Tensor, held_RW: Tensor, forced_R: Tensor) -> Tensor:
    """The totals; where a row has a ``forced`` entry (-1: none), its total of ``held_RW`` and nothing else."""
    forced_R1 = forced_R[:, None]
    free_R1, only_R1 = forced_R1 < 0, forced_R1.clamp_min(0)
    alone_R1 = held_RW.gather(1, only_R1).masked_fill(free_R1, -torch.inf)
    return total_RW.masked_fill(~free_R1, -torch.inf).scatter_reduce(1, only_R1, alone_R1, "amax")


def best_listed(total_RW: Tensor, sentences: int, count: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Totals, entries and parents B x C of each sentence's best continuations; fewer where K x W are fewer."""
    entries = total_RW.size(1)
    flat_BX = total_RW.reshape(sentences, -1)
    best_BC, place_BC = torch.topk(flat_BX, count.clamp_max(flat_BX.size(1)), dim=-1)
    return best_BC, place_BC % entries, torch.div(place_BC, entries, rounding_mode="floor")
