"""Dropout that does not cost more than the layer it regularises.

On a CPU, ``torch.nn.functional.dropout`` draws one 64-bit number per element and takes longer than a 256 x 1,024
product. Here eight 8-bit draws are cut from each random 64-bit integer. The rate is therefore a multiple of 1/256, and
the kept values are scaled by exactly its complement, so the expectation is unchanged. A dropped element is one whose
bits are cleared, since integer arithmetic runs on whole vector registers and comparisons and selections do not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 256
_BITS = {  # integers of the same width
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        # Without the bounds it draws from [0, 2^63): the top bit of every eighth byte would be 0.
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        draws = words.view(torch.uint8)[: x.numel()].view(x.shape)
        # -1, all bits, where a draw is below the share of levels that are kept, else 0; widening repeats the sign.
        keep = draws.to(torch.int16).sub_(_LEVELS - threshold).bitwise_right_shift_(15).to(_BITS[x.dtype])
        ctx.save_for_backward(keep)
        ctx.scale = _LEVELS / (_LEVELS - threshold)
        return _kept(x, ctx.scale, keep)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return _kept(gradients[0], ctx.scale, keep), None


def _kept(x: Tensor, scale: float, keep: Tensor) -> Tensor:
    """``x`` times the scale, where ``keep`` has all bits set; 0 elsewhere."""
    scaled = (x * scale).contiguous()
    scaled.view(keep.dtype).bitwise_and_(keep)
    return scaled


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
