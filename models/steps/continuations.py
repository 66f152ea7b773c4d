"""From logits to the best continuations: the one beam step that everything which searches runs.

The graphs of :mod:`models.steps.torch_graphs` and TorchScript call :func:`best_continuations` as it stands, exported
ONNX graphs hold the same operator by operator (training/export/searching.py), a search over static buffers calls its
two halves (extras/gpu). What a row may not produce, or must, is told by models/search/constraints.py, or by rules of
that search.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V target vocabulary, C candidates, J bans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tandem.models.steps.numbers import SPARE, block_width

Count = Any  # of candidates: a number, or a tensor where a graph is run or traced


def best_continuations(
    logits_RV: Tensor, values: Mapping[str, Tensor], sentences: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, tokens and parents B x C of each sentence's best, and the log-sum-exp of :func:`best_per_row`.

    ``values`` are a step's ``score``, ``banned``, ``forced`` and ``count``, as :mod:`models.search.graphs` has them.
    """
    count: Count = values["count"]
    best_RC, token_RC, lse_R = best_per_row(logits_RV, values["banned"], values["forced"], count)
    return *best_of_rows(best_RC + values["score"][:, None], token_RC, sentences, count), lse_R


def best_per_row(logits_RV: Tensor, banned_RJ: Tensor, forced_R: Tensor, count: Count) -> tuple[Tensor, Tensor, Tensor]:
    """The best ``count`` continuations of each row: without the banned, or the forced one alone.

    Returns:
        Log-probabilities R x C, tokens R x C, and the log-sum-exp of each row as far as a finite logit gives it away:
        it is not finite where a logit is NaN or infinite.
    """
    # A log-sum-exp of its own would cost five times this, and a logarithm rounds a row by its place in the batch
    # (vector units and remainders differ).
    scores_RV = torch.log_softmax(logits_RV, dim=-1)
    best_RC, token_RC = best_allowed(scores_RV, banned_RJ, count)
    first_R1 = token_RC[:, :1]
    lse_R = (logits_RV.gather(1, first_R1) - scores_RV.gather(1, first_R1)).squeeze(1)
    alone_R1 = scores_RV.gather(1, forced_R[:, None].clamp_min(0))
    return *_or_forced(best_RC, token_RC, forced_R, alone_R1), lse_R


def _or_forced(best_RC: Tensor, token_RC: Tensor, forced_R: Tensor, alone_R1: Tensor) -> tuple[Tensor, Tensor]:
    """The continuations of each row, or the forced one (-1: none) with its score alone."""
    forced_R1 = forced_R[:, None]
    is_forced_R1, first_C = forced_R1 >= 0, torch.arange(best_RC.size(1), device=best_RC.device) == 0
    best_RC = torch.where(is_forced_R1, torch.where(first_C, alone_R1, -torch.inf), best_RC)
    return best_RC, torch.where(is_forced_R1, forced_R1, token_RC)


def best_of_rows(total_RC: Tensor, token_RC: Tensor, sentences: int, count: Count) -> tuple[Tensor, Tensor, Tensor]:
    """Totals, tokens and parents of each sentence's best ``count``, of so many continuations of each row."""
    scores_BC, flat_BC = torch.topk(total_RC.reshape(sentences, -1), count, dim=-1)
    tokens_BC = token_RC.reshape(sentences, -1).gather(1, flat_BC)
    return scores_BC, tokens_BC, torch.div(flat_BC, total_RC.size(1), rounding_mode="floor")


def best_allowed(scores_RV: Tensor, banned_RJ: Tensor, count: Count) -> tuple[Tensor, Tensor]:
    """The ``count`` largest scores of each row that are not banned, and their tokens, R x C.

    -inf where fewer are allowed, with any tokens.
    """
    return largest(without(scores_RV, banned_RJ), count)


def without(scores_RV: Tensor, banned_RJ: Tensor) -> Tensor:
    """The scores, those of the banned tokens -inf. What pads the bans lies beyond V."""
    size = scores_RV.size(1)
    penalty_RJ = torch.where(banned_RJ >= size, 0.0, -torch.inf)
    return scores_RV.scatter_add(1, banned_RJ.clamp_max(size - 1), penalty_RJ)


def largest(scores_RV: Tensor, count: Count) -> tuple[Tensor, Tensor]:
    """The ``count`` largest scores of each row and their places, R x C.

    The vocabulary is cut into blocks where it can be: the largest scores lie in the blocks of largest maxima, which
    processors find and search in less time than the whole. To a GPU a dozen kernels are more than one large top-k.
    """
    rows, size = scores_RV.shape
    width = block_width(size)
    if not width or scores_RV.is_cuda:
        if size < SPARE:  # enough columns to choose from, however small the vocabulary
            scores_RV = torch.cat([scores_RV, scores_RV.new_full((rows, SPARE - size), -torch.inf)], dim=1)
        best_RC, place_RC = torch.topk(scores_RV, count, dim=-1)
        return best_RC, place_RC.clamp_max(size - 1)
    blocks_RNW = scores_RV.unflatten(1, (-1, width))
    blocks = size // width
    chosen: Count = count.clamp_max(blocks) if isinstance(count, Tensor) else min(count, blocks)
    # Blocks in their own order, so that of equal scores the one of the smaller token still comes first.
    block_RM = torch.topk(blocks_RNW.amax(-1), chosen, dim=-1).indices.sort(dim=-1).values
    held_RX = blocks_RNW[torch.arange(rows, device=scores_RV.device)[:, None], block_RM].flatten(1)
    best_RC, at_RC = torch.topk(held_RX, count, dim=-1)
    rank_RC = torch.div(at_RC, width, rounding_mode="floor")
    return best_RC, (block_RM.gather(1, rank_RC) - rank_RC) * width + at_RC
