"""The end of a step as one Triton kernel: log-softmax, bans and top-k in one pass over the logits.

In torch these are some ten passes over R x V numbers and a top-k of a dozen kernels. Here one program reads a row once,
keeps the running log-sum-exp (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3) and
the best so far, and looks whether a token is banned only when it would be among them.

Imported where it is asked for: Triton comes with PyTorch's CUDA builds. ``TRITON_INTERPRET=1`` runs it on a CPU.

Shape suffixes: R rows, V vocabulary, J bans of a row, X best of one row.
"""

from __future__ import annotations

from typing import Any

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from models.steps.continuations import or_forced

BLOCK = 1024  # logits that a program looks at together


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _best(  # type: ignore[no-untyped-def]  # what these are Triton infers
    logits,
    banned,
    best,
    token,
    total,
    size,
    bans,
    X: tl.constexpr,
    XS: tl.constexpr,
    BANS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ban = tl.arange(0, BANS)
    banned_J = tl.load(banned + row * bans + ban, mask=ban < bans, other=-1)
    place = tl.arange(0, XS)
    inside_X = place < X
    best_X = tl.full([XS], float("-inf"), tl.float32)
    token_X = tl.zeros([XS], tl.int64)
    lowest = tl.min(tl.where(inside_X, best_X, float("inf")), 0)
    highest = tl.full([], float("-inf"), tl.float32)
    summed = tl.zeros([], tl.float32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < size
        x = tl.load(logits + row * size + at, mask=inside, other=float("-inf"))
        higher = tl.maximum(highest, tl.max(x, 0))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # nothing but -inf so far
        summed = summed * tl.exp(highest - base) + tl.sum(tl.exp(x - base), 0)
        highest = higher
        top = tl.max(x, 0)
        while top > lowest:
            found = tl.min(tl.where(x == top, at, size), 0)
            is_banned = tl.max((banned_J == found).to(tl.int32), 0) > 0
            spot = tl.min(tl.where(inside_X & (best_X == lowest), place, XS), 0)
            put = (place == spot) & (is_banned == 0)
            best_X = tl.where(put, top, best_X)
            token_X = tl.where(put, found.to(tl.int64), token_X)
            lowest = tl.min(tl.where(inside_X, best_X, float("inf")), 0)
            x = tl.where(at == found, float("-inf"), x)
            top = tl.max(x, 0)
    normaliser = highest + tl.log(summed)
    tl.store(total + row, normaliser)
    tl.store(best + row * X + place, best_X - normaliser, mask=inside_X)
    tl.store(token + row * X + place, token_X, mask=inside_X)


def best_per_row(logits_RV: Tensor, banned_RJ: Tensor, forced_R: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`models.steps.continuations.best_per_row`, of float32 logits; what is not forced comes in no order."""
    rows, bans = banned_RJ.shape
    logits_RV = logits_RV.contiguous()
    best_RX = logits_RV.new_empty(rows, count)
    token_RX = torch.empty_like(best_RX, dtype=torch.int64)
    total_R = logits_RV.new_empty(rows)
    kernel: Any = _best[(rows,)]
    kernel(
        logits_RV,
        banned_RJ.contiguous(),
        best_RX,
        token_RX,
        total_R,
        logits_RV.size(1),
        bans,
        X=count,
        XS=triton.next_power_of_2(count),
        BANS=triton.next_power_of_2(max(1, bans)),
        BLOCK=BLOCK,
    )
    alone_R1 = logits_RV.gather(1, forced_R[:, None].clamp_min(0)) - total_R[:, None]
    return *or_forced(best_RX, token_RX, forced_R, alone_R1), total_R
