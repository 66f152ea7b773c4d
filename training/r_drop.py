"""R-Drop (Wu et al. 2021): the loss of two passes of a batch with dropout, whose distributions are drawn together.

Like :mod:`training.loss` it computes its gradients in one pass over chunks of rows, but keeps log-probabilities in
float32, which the divergence is made of.

Shape suffixes: B sentences, T target positions, N targets that are not padding, C = 2 passes, M = C x rows of a chunk,
D features, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from training.loss import add_to_gold, chosen_rows, scaled, widened

_CHUNK = 256  # rows of each pass, whose logits stay in a CPU's cache
_BLOCK = 2048  # elsewhere, where many rows are one launch


class _RDropCrossEntropy(torch.autograd.Function):
    """Computes its gradients in the forward pass: the loss is a scalar, so the backward pass only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        features_CND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        alpha: float,
        products: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        passes, count, width = features_CND.shape
        rows = _CHUNK if features_CND.device.type == "cpu" else _BLOCK
        weight = weight_VD.to(products)
        d_features = torch.empty_like(features_CND)
        d_weight = torch.zeros_like(weight_VD)
        d_bias = None if bias_V is None else torch.zeros_like(bias_V)
        loss = features_CND.new_zeros((), dtype=torch.float64)
        likelihood = torch.zeros_like(loss)
        for start in range(0, count, rows):
            part = slice(start, start + rows)
            x = features_CND[:, part].reshape(-1, width).to(products)
            logits = F.linear(x, weight).to(features_CND.dtype)
            if bias_V is not None:
                logits += bias_V
            gold_M1 = target_N[part, None].repeat(passes, 1)
            log_probability = torch.log_softmax(logits, dim=-1)
            nll = -log_probability.gather(1, gold_M1).sum(dtype=torch.float64)
            uniform = -log_probability.mean(dim=1).sum(dtype=torch.float64)
            loss += ((1 - smoothing) * nll + smoothing * uniform) / passes
            likelihood += nll / passes
            gradient = torch.empty_like(log_probability)
            loss += _divergence(log_probability, gradient, alpha)
            # (p - (1 - eps) onehot - eps / V) / 2, and the divergence's own, are d loss / d logits.
            gradient.sub_(smoothing / weight.size(0) / passes)
            add_to_gold(gradient, gold_M1[:, 0], (smoothing - 1) / passes)
            if d_bias is not None:
                d_bias += gradient.sum(0)
            low = gradient.to(products)
            d_features[:, part] = (low @ weight).view(passes, -1, width)
            d_weight += low.mT @ x
        ctx.save_for_backward(d_features, d_weight, d_bias)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled(ctx.saved_tensors, gradients[0]), None, None, None, None


def _divergence(log_p_MV: Tensor, gradient_MV: Tensor, alpha: float) -> Tensor:
    """R-Drop's term of a chunk, M = 2 x rows; leaves p / 2 plus the term's gradient in ``gradient_MV``.

    With ``d = log p1 - log p2``: ``KL(p1 | p2) = sum_v p1 d``, and both divergences together ``sum_v (p1 - p2) d``;
    the gradient of KL(p1 | p2) is ``p1 (d - KL(p1 | p2))`` for the logits of p1 and ``p2 - p1`` for those of p2.
    """
    first, second = log_p_MV.chunk(2)
    difference = first - second
    p1, p2 = torch.exp(first), torch.exp(second)
    there = (p1 * difference).sum(1, keepdim=True)
    back = -(p2 * difference).sum(1, keepdim=True)
    quarter = alpha / 4  # half of eq. 4, times the half within its mean of both divergences
    g1, g2 = gradient_MV.chunk(2)
    torch.mul(p1, 0.5 + quarter * (difference - there + 1), out=g1).sub_(p2, alpha=quarter)
    torch.mul(p2, 0.5 + quarter * (1 - difference - back), out=g2).sub_(p1, alpha=quarter)
    return quarter * (there + back).sum(dtype=torch.float64)


def r_drop_cross_entropy(
    features_CBTD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_BT: Tensor,
    *,
    smoothing: float,
    alpha: float,
    padding: int = 0,
    low_precision: bool | torch.dtype = False,
    places_N: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy of two passes with dropout, whose distributions are drawn together.

    ``loss = (CE_1 + CE_2) / 2 + alpha / 2 (KL(p1 | p2) + KL(p2 | p1)) / 2``, gradients through both: half of eq. 4 of
    R-Drop (Wu et al. 2021), so that alpha is the paper's and the loss has the size that it has without R-Drop.

    Args:
        features_CBTD: what the output layer projects, of both passes.
        weight_VD: the output layer's weight.
        bias_V: its bias, or None.
        target_BT: gold symbols.
        smoothing: eps, the mass spread evenly over the vocabulary.
        alpha: weight of the divergence.
        padding: the symbol to skip.
        low_precision, places_N: as in :func:`training.loss.smoothed_cross_entropy`.

    Returns:
        Two float64 scalars, the loss and the mean of both passes' negative log-likelihoods.
    """
    features_CND, target_N = chosen_rows(features_CBTD, target_BT, places_N, padding)
    features_CND, products = widened(features_CND, low_precision)
    result: tuple[Tensor, Tensor] = _RDropCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_CND, weight_VD, bias_V, target_N, smoothing, alpha, products
    )
    return result
