"""Label-smoothed cross-entropy of the output layer, with the gradient written by hand.

The output layer and its loss are the largest single piece of a training step (a vocabulary of 8,000 and 3,500 target
symbols make 28M logits). Here the products run in a narrow type where asked, the softmax of a few rows at a time is
taken while their logits are in the cache and is the gradient already but for the gold symbols, and label smoothing
costs no pass over the logits at all: its gradient is the same for every symbol, and the mean of a row's logits is the
product of its features with the mean row of the weight. No more than a block of N x V is ever kept.

Shape suffixes: B sentences, T target positions, N targets that are not padding (or some of them), D features,
V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_BLOCK = 4096  # rows whose probabilities are kept for the products with them
_CACHED = 256  # rows whose logits stay in a CPU's cache
_REUSED = 24 << 20  # bytes of probabilities; glibc gives larger blocks back to the system after every use


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
        products: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        weight, bias = weight_VD.to(products), None if bias_V is None else bias_V.to(products)
        mean = _mean_row(weight_VD, bias_V)
        d_features, d_weight = torch.empty_like(features_ND), torch.zeros_like(weight_VD)
        d_bias = None if bias_V is None else torch.zeros_like(bias_V)
        likelihood = features_ND.new_zeros((), dtype=torch.float64)
        uniform = torch.zeros_like(likelihood)
        for part in _slices(target_N, _kept_rows(weight)):
            x_ND = features_ND[part].to(products)
            p_NV, log_sum_N, gold_N = _softmax(x_ND, weight, bias, target_N[part])
            likelihood += (log_sum_N - gold_N).sum(dtype=torch.float64)
            uniform += (log_sum_N - _mean_logit(features_ND[part], mean)).sum(dtype=torch.float64)
            # d loss / d logits = p - (1 - eps) onehot - eps / V; the last term joins below.
            gradient_NV = add_to_gold(p_NV, target_N[part], smoothing - 1)
            d_features[part] = gradient_NV @ weight
            d_weight += gradient_NV.mT @ x_ND
            if d_bias is not None:  # as a product, which is far quicker than a sum over the first axis
                d_bias += (gradient_NV.mT @ gradient_NV.new_ones(len(gradient_NV), 1))[:, 0]
        _smooth(smoothing, features_ND, mean, d_features, d_weight, d_bias)
        ctx.save_for_backward(d_features, d_weight, d_bias)
        ctx.mark_non_differentiable(likelihood)
        return (1 - smoothing) * likelihood + smoothing * uniform, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled(ctx.saved_tensors, gradients[0]), None, None, None


class _Rows(torch.autograd.Function):
    """Some rows ... x M x D -> ... x N x D, each taken once, so that the gradient is laid back instead of added up."""

    @staticmethod
    def forward(ctx: Any, x_MD: Tensor, place_N: Tensor) -> Tensor:
        ctx.save_for_backward(place_N)
        ctx.rows = x_MD.size(-2)
        return x_MD.index_select(-2, place_N)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (place_N,), (gradient_ND,) = ctx.saved_tensors, gradients
        *lead, _, width = gradient_ND.shape
        return gradient_ND.new_zeros(*lead, ctx.rows, width).index_copy_(-2, place_N, gradient_ND), None


def chosen_rows(
    features_BTD: Tensor, target_BT: Tensor, places_N: Tensor | None, padding: int
) -> tuple[Tensor, Tensor]:
    """Features ... x N x D and targets N of the positions that count.

    Args:
        features_BTD: ... x B x T x D.
        target_BT: gold symbols.
        places_N: the positions, counted over all rows; None: where there is no padding, which a GPU must be waited for.
        padding: the symbol to skip.
    """
    target_M = target_BT.flatten()
    if places_N is None:
        places_N = (target_M != padding).nonzero()[:, 0]
    rows: Tensor = _Rows.apply(features_BTD.flatten(-3, -2), places_N)  # type: ignore[no-untyped-call]
    return rows, target_M.index_select(0, places_N)


def add_to_gold(x_NV: Tensor, target_N: Tensor, value: float) -> Tensor:
    """Add a number to the gold symbol's element of every row, in place.

    Read and written back, for each row has one: adding up by index sorts on a GPU, and ``scatter_add_`` copies the
    whole of N x V on a CPU.
    """
    gold = (torch.arange(len(x_NV), device=x_NV.device), target_N)
    return x_NV.index_put_(gold, x_NV[gold] + x_NV.new_full((), value))


def _slices(rows: Tensor, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, len(rows), size)]


def _kept_rows(weight_VD: Tensor) -> int:
    """Rows whose probabilities are kept together."""
    if weight_VD.device.type != "cpu":
        return _BLOCK
    return min(_BLOCK, max(_CACHED, _REUSED // (len(weight_VD) * weight_VD.element_size())))


def _at_once(rows: Tensor) -> int:
    """Rows whose logits are made together."""
    return _CACHED if rows.device.type == "cpu" else _BLOCK


def _mean_row(weight_VD: Tensor, bias_V: Tensor | None) -> tuple[Tensor, Tensor]:
    """What gives the mean of a row's logits: the weight's mean row and the bias's mean."""
    return weight_VD.mean(0), weight_VD.new_zeros(()) if bias_V is None else bias_V.mean()


def _mean_logit(features_ND: Tensor, mean: tuple[Tensor, Tensor]) -> Tensor:
    return features_ND @ mean[0] + mean[1]


def _softmax(x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities N x V in the products' type; log of the sum of exponentials and gold logits, at least float32."""
    wide = torch.promote_types(x_ND.dtype, torch.float32)
    p_NV = x_ND.new_empty(len(x_ND), len(weight_VD))
    log_sum, gold = (torch.empty(len(x_ND), dtype=wide, device=x_ND.device) for _ in range(2))
    for part in _slices(x_ND, _at_once(x_ND)):
        logits = F.linear(x_ND[part], weight_VD, bias_V)
        p = torch.softmax(logits, dim=-1, out=p_NV[part])
        # The largest probability tells the sum: p_max = exp(max) / sum. In bfloat16 it is off by at most 0.002.
        log_sum[part] = logits.amax(1).to(wide) - p.amax(1).to(wide).log()
        gold[part] = logits.gather(1, target_N[part, None])[:, 0]
    return p_NV, log_sum, gold


def _smooth(
    smoothing: float,
    features_ND: Tensor,
    mean: tuple[Tensor, Tensor],
    d_features: Tensor,
    d_weight: Tensor,
    d_bias: Tensor | None,
) -> None:
    """Add to the gradients what follows from -eps / V in that of every logit."""
    each = smoothing / len(d_weight)
    d_features.sub_(mean[0], alpha=smoothing)
    d_weight.sub_(features_ND.sum(0), alpha=each)
    if d_bias is not None:
        d_bias.sub_(each * len(features_ND))


def scaled(saved: tuple[Tensor, Tensor, Tensor | None], gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients that a forward pass has computed, times that of its scalar loss."""
    scale = gradient.to(saved[0].dtype)
    return tuple(None if d is None else d * scale for d in saved)


def _evaluated(
    features_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    products: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """The same two sums without gradients, from products in the given type."""
    weight, mean = weight_VD.to(products), _mean_row(weight_VD, bias_V)
    likelihood = features_ND.new_zeros((), dtype=torch.float64)
    uniform = torch.zeros_like(likelihood)
    for part in _slices(target_N, _at_once(features_ND)):
        logits = F.linear(features_ND[part].to(products), weight).to(features_ND.dtype)
        if bias_V is not None:
            logits += bias_V
        log_sum = logits.logsumexp(1)
        likelihood += (log_sum - logits.gather(1, target_N[part, None])[:, 0]).sum(dtype=torch.float64)
        uniform += (log_sum - _mean_logit(features_ND[part], mean)).sum(dtype=torch.float64)
    return (1 - smoothing) * likelihood + smoothing * uniform, likelihood


def smoothed_cross_entropy(
    features_BTD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_BT: Tensor,
    *,
    smoothing: float,
    padding: int = 0,
    low_precision: bool | torch.dtype = False,
    places_N: Tensor | None = None,
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
        low_precision: run the three products in this type, bfloat16 if true (accumulated in float32).
        places_N: where there is no padding, as :func:`chosen_rows` takes it.

    Returns:
        Two float64 scalars; gradients flow through the first. The second is exact where no gradient is asked for; else
        it may be off by 0.002 for each target in bfloat16.
    """
    features_ND, target_N = chosen_rows(features_BTD, target_BT, places_N, padding)
    features_ND, products = widened(features_ND, low_precision)
    if not torch.is_grad_enabled():
        return _evaluated(features_ND, weight_VD, bias_V, target_N, smoothing, products)
    result: tuple[Tensor, Tensor] = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_ND, weight_VD, bias_V, target_N, smoothing, products
    )
    return result


def widened(features: Tensor, low_precision: bool | torch.dtype) -> tuple[Tensor, torch.dtype]:
    """Features in float32 where they are narrower, and the type of the products with them."""
    if features.dtype in (torch.bfloat16, torch.float16):
        features = features.float()
    return features, torch.bfloat16 if low_precision is True else low_precision or features.dtype
