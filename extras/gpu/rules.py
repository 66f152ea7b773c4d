"""What a row may not, or must, produce next, on the device: models/search/constraints.py and repetition.py in tensors.

Both rules keep a state per row that follows the beam, and cost a few small kernels a step whatever sizes are asked for.

Repetition. ``match_BKL[i]`` is the length of the longest stretch of a row's text that ends before place i and also ends
the text. Token i may not follow where that is at least n - 1 (it would complete an n-gram that is there), or where the
p = age - i tokens from i on are a stretch of at most ``LONGEST_PERIOD`` that stands r times in a row already: then all
but one of r x p tokens equal the one p before, and the match is at least r p - 1. So both are one comparison with a
bound that depends on the place. A new token makes ``match[i] = match[i - 1] + 1`` where it equals token i - 1, else 0.

Shape suffixes: B slots, K rows of a slot, L target positions, M required tokens, J bans of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tandem.models.search.hypotheses import Sentence
from tandem.models.search.rounds import LONGEST_PERIOD, allowed_rounds

FREE = -1  # where no token is forced, required or written yet
NEVER = 1 << 20  # more than any hypothesis has tokens, and so many times LONGEST_PERIOD is an int32


def repetition_bounds(sentence: Sentence) -> tuple[int, int]:
    """Of a sentence the least match that an n-gram forbids, and the rounds that it may go; ``NEVER`` where it may."""
    size, rounds = sentence.options.no_repeat_ngram_size, sentence.options.max_rounds
    return size - 1 if size else NEVER, allowed_rounds(rounds, sentence.sources) or NEVER


def repeating(
    text_BKL: Tensor, match_BKL: Tensor, age_B: Tensor, bounds: tuple[Tensor, Tensor], *, nothing: int
) -> Tensor:
    """Which tokens of each row's text B x K x L would repeat an n-gram, or go a round too many; ``nothing`` elsewhere.

    ``bounds`` are those of ``repetition_bounds``.
    """
    ngram_B, rounds_B = bounds
    back_BL = age_B[:, None] - torch.arange(text_BKL.size(2), device=age_B.device)
    least_BL = torch.where(back_BL <= LONGEST_PERIOD, rounds_B[:, None] * back_BL - 1, NEVER)
    least_BL = torch.minimum(least_BL, ngram_B[:, None])
    banned_BKL = (match_BKL >= least_BL[:, None]) & (back_BL > 0)[:, None]
    return torch.where(banned_BKL, text_BKL, nothing)


def append_text(text_BKL: Tensor, match_BKL: Tensor, parent_BK: Tensor, token_BK: Tensor, position_B: Tensor) -> None:
    """Let each row's text be its parent's and the new token, in place; what is not written yet is ``FREE``."""
    own_BKL = parent_BK[:, :, None].expand(-1, -1, text_BKL.size(2))
    old_BKL = text_BKL.gather(1, own_BKL)
    longer_BKL = match_BKL.gather(1, own_BKL)[..., :-1] + 1
    match_BKL[..., 1:].copy_(torch.where(old_BKL[..., :-1] == token_BK[..., None], longer_BKL, 0))
    position_BK1 = position_B[:, None, None].expand(-1, token_BK.size(1), 1)
    text_BKL.copy_(old_BKL.scatter(2, position_BK1, token_BK[..., None]))


def require(
    banned_BKJ: Tensor, required_BM: Tensor, owed_BKM: Tensor, room_B: Tensor, *, eos: int, nothing: int
) -> tuple[Tensor, Tensor]:
    """The bans of all rows: what a row owes is none, and it may not end; what it has paid for is one.

    And the token B x K that a row must produce, for only as many fit as it owes; else ``FREE``. ``required_BM`` is
    ``FREE`` behind the last; ``room_B`` tokens still fit.
    """
    rows, most = owed_BKM.shape[1:]
    token_BKM = required_BM[:, None].expand(-1, rows, -1)
    owed_token_BKM = torch.where(owed_BKM, token_BKM, FREE)
    is_owed_BKJ, is_owed_BKM = (_among(one, owed_token_BKM) for one in (banned_BKJ, token_BKM))
    count_BK1 = owed_BKM.sum(dim=-1, keepdim=True)
    bans = (
        torch.where(is_owed_BKJ, nothing, banned_BKJ),
        torch.where(is_owed_BKM | (token_BKM == FREE), nothing, token_BKM),
        torch.where(count_BK1 > 0, eos, nothing),
    )
    first_BK1 = torch.where(owed_BKM, torch.arange(most, device=owed_BKM.device), most - 1).amin(dim=-1, keepdim=True)
    must_BK1 = (count_BK1 > 0) & (room_B[:, None, None] <= count_BK1)
    forced_BK = torch.where(must_BK1, token_BKM.gather(2, first_BK1), FREE).squeeze(2)
    return torch.cat(bans, dim=2), forced_BK


def _among(token_BKJ: Tensor, chosen_BKM: Tensor) -> Tensor:
    """Whether each token is one of its row's chosen ones."""
    return (token_BKJ[:, :, None] == chosen_BKM[..., None]).any(dim=2)


def pay(required_BM: Tensor, owed_BKM: Tensor, parent_BK: Tensor, token_BK: Tensor) -> None:
    """Let each row owe what its parent owed less the new token, of equal ones the first, in place."""
    old_BKM = owed_BKM.gather(1, parent_BK[:, :, None].expand(-1, -1, owed_BKM.size(2)))
    paid_BKM = old_BKM & (required_BM[:, None] == token_BK[..., None])
    first_BKM = paid_BKM & (paid_BKM.cumsum(dim=-1) == 1)
    owed_BKM.copy_(old_BKM & ~first_BKM)
