"""What a row may not, or must, produce next, on the device: models/search/constraints.py and repetition.py in tensors.

Both rules keep a state per row that follows the beam, and cost a few small kernels a step whatever sizes are asked for.

Repetition. ``match_BKL[i]`` is the length of the longest stretch of a row's text that ends before place i and also ends
the text. Token i may not follow where that is at least n - 1 (it would complete an n-gram that is there), or where the
p = age - i tokens from i on are a stretch of at most ``LONGEST_PERIOD`` that stands r times in a row already: then all
but one of r x p tokens equal the one p before, and the match is at least r p - 1. So both are one comparison with a
bound that depends on the place. A new token makes ``match[i] = match[i - 1] + 1`` where it equals token i - 1, else 0.

Shape suffixes: B slots, K rows of a slot, L target positions, M required tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.search.hypotheses import Sentence
from models.search.repetition import LONGEST_PERIOD, most_rounds

FREE = -1  # where no token is forced, required or written yet
NEVER = 1 << 20  # more than any hypothesis has tokens, and so many times LONGEST_PERIOD is an int32


def repetition_bounds(sentence: Sentence) -> tuple[int, int]:
    """Of a sentence the least match that an n-gram forbids, and the rounds that it may go; ``NEVER`` where it may."""
    size, rounds = sentence.options.no_repeat_ngram_size, sentence.options.max_rounds
    if rounds:
        texts = (source.tolist() for source in sentence.sources if source.ndim == 1)
        rounds = max([rounds, *map(most_rounds, texts)])
    return size - 1 if size else NEVER, rounds or NEVER


def repeating(text_BKL: Tensor, match_BKL: Tensor, age_B: Tensor, bounds: tuple[Tensor, Tensor]) -> Tensor:
    """Which tokens of each row's text B x K x L would repeat an n-gram, or go a round too many; ``FREE`` elsewhere.

    ``bounds`` are those of ``repetition_bounds``.
    """
    ngram_B, rounds_B = bounds
    back_BL = age_B[:, None] - torch.arange(text_BKL.size(2), device=age_B.device)
    least_BL = torch.where(back_BL <= LONGEST_PERIOD, rounds_B[:, None] * back_BL - 1, NEVER)
    least_BL = torch.minimum(least_BL, ngram_B[:, None])
    banned_BKL = (match_BKL >= least_BL[:, None]) & (back_BL > 0)[:, None]
    return torch.where(banned_BKL, text_BKL, FREE)


def ban(allowed_BKV: Tensor, banned_BKL: Tensor) -> None:
    """Make tokens -inf, in place; negative ones stand for none."""
    penalty_BKL = torch.zeros_like(banned_BKL, dtype=allowed_BKV.dtype).masked_fill(banned_BKL >= 0, -torch.inf)
    allowed_BKV.scatter_add_(2, banned_BKL.clamp_min(0), penalty_BKL)


def append_text(text_BKL: Tensor, match_BKL: Tensor, parent_BK: Tensor, token_BK: Tensor, position_B: Tensor) -> None:
    """Let each row's text be its parent's and the new token, in place; what is not written yet is ``FREE``."""
    own_BKL = parent_BK[:, :, None].expand(-1, -1, text_BKL.size(2))
    old_BKL = text_BKL.gather(1, own_BKL)
    longer_BKL = match_BKL.gather(1, own_BKL)[..., :-1] + 1
    match_BKL[..., 1:].copy_(torch.where(old_BKL[..., :-1] == token_BK[..., None], longer_BKL, 0))
    position_BK1 = position_B[:, None, None].expand(-1, token_BK.size(1), 1)
    text_BKL.copy_(old_BKL.scatter(2, position_BK1, token_BK[..., None]))


def require(
    allowed_BKV: Tensor, log_BKV: Tensor, required_BM: Tensor, owed_BKM: Tensor, room_B: Tensor, *, eos: int
) -> Tensor:
    """Let rows that owe tokens produce these and not end, and rows that have them produce them no more, in place.

    Args:
        allowed_BKV: log-probabilities with all other bans.
        log_BKV: those without any.
        required_BM: ``FREE`` behind the last.
        owed_BKM: which of them each row still owes.
        room_B: tokens that still fit.

    Returns:
        The token B x K that a row must produce, for only as many fit as it owes; else ``FREE``.
    """
    rows, most = owed_BKM.shape[1:]
    # What pads the required tokens stands for token 0, padding, which nobody may require: it is written as it is.
    token_BM, padding_BM = required_BM.clamp_min(0), required_BM < 0
    token_BKM = token_BM[:, None].expand(-1, rows, -1)
    same_BMM = token_BM[:, :, None] == token_BM[:, None, :]
    wanted_BKM = (same_BMM[:, None] & owed_BKM[:, :, None]).any(dim=-1)
    value_BKM = torch.where(wanted_BKM, log_BKV.gather(2, token_BKM), -torch.inf)
    value_BKM = torch.where(padding_BM[:, None], allowed_BKV.gather(2, token_BKM), value_BKM)
    allowed_BKV.scatter_(2, token_BKM, value_BKM)
    count_BK = owed_BKM.sum(dim=-1)
    allowed_BKV.select(2, eos).masked_fill_(count_BK > 0, -torch.inf)
    first_BK1 = torch.where(owed_BKM, torch.arange(most, device=owed_BKM.device), most - 1).amin(dim=-1, keepdim=True)
    must_BK = (count_BK > 0) & (room_B[:, None] <= count_BK)
    return torch.where(must_BK, token_BKM.gather(2, first_BK1).squeeze(2), FREE)


def pay(required_BM: Tensor, owed_BKM: Tensor, parent_BK: Tensor, token_BK: Tensor) -> None:
    """Let each row owe what its parent owed less the new token, of equal ones the first, in place."""
    old_BKM = owed_BKM.gather(1, parent_BK[:, :, None].expand(-1, -1, owed_BKM.size(2)))
    paid_BKM = old_BKM & (required_BM[:, None] == token_BK[..., None])
    first_BKM = paid_BKM & (paid_BKM.cumsum(dim=-1) == 1)
    owed_BKM.copy_(old_BKM & ~first_BKM)
