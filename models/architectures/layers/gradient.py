"""Gradients that are not those of the forward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """``x`` itself; the gradient that flows back through it is multiplied by ``factor`` (ConvS2S section 3.4)."""
    if not x.requires_grad or factor == 1:
        return x
    scaled: Tensor = _ScaledGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return scaled
