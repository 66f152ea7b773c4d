"""Label-smoothed cross-entropy of the output layer, with the gradient written by hand in one pass.

The output layer and its loss are the largest single piece of a training step (a vocabulary of 8,000 and 3,500 target
symbols make 28M logits). Computed in chunks of rows the logits stay in the cache, the two softmax passes become one,
the products run in bfloat16 where asked, and nothing of size N x V is ever kept for the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_CHUNK = 512


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Computes its gradients in the forward pass: the loss is a scalar, so the backward pass only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        features_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        low_precision: bool,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.bfloat16 if low_precision else features_ND.dtype
        weight = weight_VD.to(dtype)
        d_features = torch.empty_like(features_ND)
        d_weight = torch.zeros_like(weight_VD)
        d_bias = None if bias_V is None else torch.zeros_like(bias_V)
        loss, likelihood = (
            features_ND.new_zeros((), dtype=torch.float64),
            features_ND.new_zeros((), dtype=torch.float64),
        )
        for start in range(0, features_ND.size(0), _CHUNK):
            part = slice(start, start + _CHUNK)
            x, gold = features_ND[part].to(dtype), target_N[part, None]
            logits = F.linear(x, weight).to(features_ND.dtype)
            if bias_V is not None:
                logits += bias_V
            log_probability = torch.log_softmax(logits, dim=-1)
            nll = -log_probability.gather(1, gold).sum(dtype=torch.float64)
            uniform = -log_probability.mean(dim=1).sum(dtype=torch.float64)
            loss += (1 - smoothing) * nll + smoothing * uniform
            likelihood += nll
            # d loss / d logits = p - (1 - eps) onehot - eps / V, in place of the log-probabilities
            gradient = log_probability.exp_().sub_(smoothing / weight.size(0))
            gradient.scatter_add_(1, gold, gradient.new_full(gold.shape, smoothing - 1))
            if d_bias is not None:
                d_bias += gradient.sum(0)
            low = gradient.to(dtype)
            d_features[part] = low @ weight
            d_weight += low.mT @ x
        ctx.save_for_backward(d_features, d_weight, d_bias)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        scale = gradients[0].to(d_features.dtype)
        return d_features * scale, d_weight * scale, None if d_bias is None else d_bias * scale, None, None, None


def smoothed_cross_entropy(
    features_BTD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_BT: Tensor,
    *,
    smoothing: float,
    padding: int = 0,
    low_precision: bool = False,
) -> tuple[Tensor, Tensor]:
    """Summed loss over the targets that are not padding, and the summed negative log-likelihood without smoothing.

    ``loss = sum (1 - eps) nll + eps mean_v(-log p_v)`` (Szegedy et al. 2016), natural logarithm.

    Args:
        features_BTD: what the output layer projects.
        weight_VD: the output layer's weight.
        bias_V: its bias, or None.
        target_BT: gold symbols.
        smoothing: eps, the mass spread evenly over the vocabulary.
        padding: the symbol to skip.
        low_precision: run the three products in bfloat16 (accumulated in float32).

    Returns:
        Two float64 scalars; gradients flow through the first.
    """
    keep = target_BT != padding
    features = features_BTD[keep]
    if features.dtype == torch.bfloat16:
        features = features.float()
    result: tuple[Tensor, Tensor] = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features, weight_VD, bias_V, target_BT[keep], smoothing, low_precision
    )
    return result
