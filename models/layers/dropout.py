"""Dropout that does not cost more than the layer it regularises.

On a CPU, ``torch.nn.functional.dropout`` draws one 64-bit number per element and takes longer than a 256 x 1,024
product. Here eight 8-bit draws are cut from each random 64-bit integer. The rate is therefore a multiple of 1/256, and
the kept values are scaled by exactly its complement, so the expectation is unchanged. ``benchmarks/training_ops.py``
measures both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 256


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_()
        # random_() without bounds draws from [0, 2^63): the top bit of every eighth byte is always 0, so mix it in.
        words ^= words << 1
        keep = words.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
        ctx.save_for_backward(keep)
        ctx.scale = _LEVELS / (_LEVELS - threshold)
        kept: Tensor = (x * ctx.scale).mul_(keep)
        return kept

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * ctx.scale).mul_(keep), None


class Dropout(nn.Module):
    """Zeroes a share of the elements while training and scales the rest up; the identity otherwise."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        result: Tensor = _ByteDropout.apply(x, max(1, round(self.rate * _LEVELS)))  # type: ignore[no-untyped-call]
        return result

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
