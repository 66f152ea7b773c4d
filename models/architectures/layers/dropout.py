"""Dropout that does not cost more than the layer it regularises.

On a CPU, ``torch.nn.functional.dropout`` draws one 64-bit number per element and takes longer than a 256 x 1,024
product. Here eight 8-bit draws are cut from each random 64-bit integer, and a mask is a factor for every element: 0
where it is dropped, else what makes the mean of all factors 1. One product applies it, and one its gradient.

While a model trains, masks are made once a batch (:class:`Masks`), and each dropout reads a stretch of them that begins
anywhere: random numbers and masks for all of them anew would take longer than the products of the masks. Within a
dropout the elements fall independently. Two dropouts of a batch read some of the same factors, for elements that are as
far apart as their beginnings happen to be, which differs from batch to batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 256
_BEGINNINGS = 2**18
"""Places of the common factors at which a mask may begin."""


class Masks:
    """Factors that the dropouts of a batch share."""

    def __init__(self) -> None:
        self._seed = 0
        self._size = 0
        self._factors: dict[tuple[torch.dtype, int], Tensor] = {}

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Within it all dropouts on a CPU read from these, which are drawn anew for it by torch's generator."""
        (self._seed,) = torch.empty(1, dtype=torch.int64).random_().tolist()
        token = _SHARED.set(self)
        try:
            yield
        finally:
            _SHARED.reset(token)
            self._factors.clear()

    def stretch(self, x: Tensor, threshold: int) -> Tensor:
        """A mask for ``x``."""
        (start,) = torch.randint(_BEGINNINGS, (1,)).tolist()
        stop = start + x.numel()
        made = self._factors.get((x.dtype, threshold))
        if made is None or len(made) < stop:
            # More of them begin with the same ones, whatever was asked for before: what is computed again has its mask.
            self._size = max(self._size, x.numel() + _BEGINNINGS)
            generator = torch.Generator().manual_seed(self._seed)
            made = self._factors[x.dtype, threshold] = factors(self._size, x.dtype, threshold, generator)
        return made[start:stop].view(x.shape)


_SHARED: ContextVar[Masks | None] = ContextVar("masks", default=None)


def factors(count: int, dtype: torch.dtype, threshold: int, generator: torch.Generator | None = None) -> Tensor:
    """Independent factors: 0 where a draw of 256 is below the threshold, else the scale, 256 / (256 - threshold)."""
    scale = _LEVELS / (_LEVELS - threshold)
    # Without the bounds it draws from [0, 2^63): the top bit of every eighth byte would be 0.
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    draws = words.view(torch.uint8)[:count].to(dtype)
    if torch.finfo(dtype).bits > 16:
        return draws.ge_(threshold).mul_(scale)
    # 16 bits do not hold the scale: some factors are the number below it and some the one above, to the same mean.
    step = torch.finfo(dtype).eps * 2.0 ** math.floor(math.log2(scale))
    below = math.floor(scale / step) * step
    above = round((_LEVELS - (_LEVELS - threshold) * below) / step)  # of the 256 draws
    higher = draws.clone().ge_(_LEVELS - above)
    return draws.ge_(threshold).mul_(below).add_(higher, alpha=step)


class Dropout(nn.Module):
    """Zeroes a share of the elements while training and scales the rest up; the identity otherwise."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.rate)
        threshold, masks = max(1, round(self.rate * _LEVELS)), _SHARED.get()
        if masks is None:
            return x * factors(x.numel(), x.dtype, threshold).view(x.shape)
        return x * masks.stretch(x, threshold)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
