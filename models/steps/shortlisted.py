"""One step's search over the entries of shortlists (:mod:`models.search.shortlist`) instead of the whole vocabulary.

Sentences share the product with the output layer over the union of their lists, and nothing else: what one gets is the
same bytes whatever the other entries are. Tokens that a sentence does not list cannot be chosen, but they keep their
part of the probability: without it the scores of hypotheses are too high, and those of some more than of others. Label
smoothing gives all unlikely tokens about the same, so each counts as one of the mean logit and ``SPREAD`` more.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V vocabulary, W entries, L of them in a sentence's
list, C candidates.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tandem.models.steps.continuations import without
from tandem.models.steps.numbers import GRID, SPREAD


def best_listed(
    logits_RW: Tensor, mean_R1: Tensor, values: Mapping[str, Tensor], size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`models.steps.continuations.best_continuations` over entries; fewer where K x W are fewer than ``count``.

    ``mean_R1`` is the mean of all ``size`` logits; bans and forced tokens are places among the entries.
    """
    entries_W, listed_BW = values["entries"], values["listed"]
    masked_RW = mask(logits_RW, listed_BW)
    lse_R1 = log_sum_exp(masked_RW, unlisted(mean_R1, listed_BW, size))
    total_RW = _constrained(masked_RW, values["score"][:, None] - lse_R1, values)
    flat_BX = total_RW.reshape(listed_BW.size(0), -1)
    count = values["count"].clamp_max(flat_BX.size(1))
    scores_BC, place_BC = torch.topk(flat_BX, count, dim=-1)  # type: ignore[arg-type] # a traced number is a tensor
    entry_BC = place_BC % entries_W.size(0)
    parents_BC = torch.div(place_BC, entries_W.size(0), rounding_mode="floor")
    return scores_BC, entries_W[entry_BC], parents_BC, lse_R1.squeeze(1)


def _constrained(masked_RW: Tensor, offset_R1: Tensor, values: Mapping[str, Tensor]) -> Tensor:
    """The totals of all continuations, -inf where they are banned or another one is forced (-1: none)."""
    forced_R1 = values["forced"][:, None]
    free_R1, only_R1 = forced_R1 < 0, forced_R1.clamp_min(0)
    total_RW = without(masked_RW + torch.where(free_R1, offset_R1, -torch.inf), values["banned"])
    alone_R1 = torch.where(free_R1, -torch.inf, masked_RW.gather(1, only_R1) + offset_R1)
    return total_RW.scatter_reduce(1, only_R1, alone_R1, "amax")


def mask(logits_RW: Tensor, listed_BW: Tensor) -> Tensor:
    """The logits R x W, -inf where a row's sentence does not list the entry."""
    sentences, entries = listed_BW.shape
    logits_BKW: Tensor = logits_RW.unflatten(0, (sentences, -1))
    return (logits_BKW + listed_BW[:, None]).reshape(-1, entries)


def mean_logit(logits_RV: Tensor) -> Tensor:
    """The mean R x 1 of each row, whatever the order in which it is summed: over multiples of 2^-24, in float64."""
    levels_RV = torch.round(logits_RV * GRID).double()
    return levels_RV.sum(-1, keepdim=True).float() * (1 / (GRID * logits_RV.size(1)))


def unlisted(mean_R1: Tensor, listed_BW: Tensor, size: int) -> Tensor:
    """The log of what the tokens that a row's sentence does not list add to its sum: R x 1."""
    left_B1 = size - torch.exp(listed_BW).sum(-1, keepdim=True)
    return (mean_R1.reshape(listed_BW.size(0), -1) + (torch.log(left_B1) + SPREAD)).reshape(-1, 1)


def log_sum_exp(masked_RW: Tensor, rest_R1: Tensor) -> Tensor:
    """Log-sum-exp R x 1 of each row and its rest, whatever the order of its columns and however many are -inf.

    A sum of floats depends on its order. Here every term is a multiple of 2^-23, at most 2: ``1 + exp(x - max)`` in
    float32. Sums of up to 2^29 such terms are exact in float64.
    """
    most_R1 = torch.maximum(masked_RW.amax(-1, keepdim=True), rest_R1)
    terms_RW, last_R1 = ((1 + torch.exp(one - most_R1)).double() for one in (masked_RW, rest_R1))
    sum_R1 = terms_RW.sum(-1, keepdim=True) + last_R1 - (masked_RW.size(1) + 1)
    return most_R1 + torch.log(sum_R1.float())
