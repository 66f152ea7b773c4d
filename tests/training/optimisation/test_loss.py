"""The loss and its hand-written gradients against torch's own, in float64.

Shape suffixes: B sentences, T target positions, D features, V vocabulary.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tandem.training.optimisation import loss as loss_module
from tandem.training.optimisation.loss import _CACHED, smoothed_cross_entropy

V, D = 11, 5


def problem(count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features 1 x T x D, weight, bias and targets without padding."""
    features, weight, bias = (torch.randn(*shape, dtype=dtype) for shape in ((1, count, D), (V, D), (V,)))
    return *(x.requires_grad_() for x in (features, weight, bias)), torch.randint(1, V, (1, count))  # type: ignore[return-value]


def expected_loss(features: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float) -> Tensor:
    logits = F.linear(features, weight, bias).flatten(0, 1)
    return F.cross_entropy(logits, target.flatten(), ignore_index=0, label_smoothing=smoothing, reduction="sum")


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("count", [1, _CACHED - 1, _CACHED, _CACHED + 1, 2 * _CACHED + 7])
def test_loss_and_gradients(count: int, smoothing: float, with_bias: bool) -> None:
    features, weight, bias, target = problem(count)
    parameters = (features, weight, bias) if with_bias else (features, weight)
    loss, likelihood = smoothed_cross_entropy(
        features, weight, bias if with_bias else None, target, smoothing=smoothing
    )
    found = torch.autograd.grad(loss / 7, parameters)
    reference = expected_loss(features, weight, bias if with_bias else None, target, smoothing)
    torch.testing.assert_close(loss, reference, atol=1e-9, rtol=1e-12)
    for one, other in zip(found, torch.autograd.grad(reference / 7, parameters), strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)
    plain = expected_loss(features, weight, bias if with_bias else None, target, 0.0)
    torch.testing.assert_close(likelihood, plain, atol=1e-9, rtol=1e-12)
    assert not likelihood.requires_grad


def test_rows_of_several_blocks_are_the_same_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    features, weight, bias, target = problem(2 * _CACHED)
    losses = [smoothed_cross_entropy(features, weight, bias, target, smoothing=0.1)]
    monkeypatch.setattr(loss_module, "_BLOCK", _CACHED + 3)
    losses.append(smoothed_cross_entropy(features, weight, bias, target, smoothing=0.1))
    torch.testing.assert_close(*losses)
    for one, other in zip(*(torch.autograd.grad(loss, (features, weight, bias)) for loss, _ in losses), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_evaluation_gives_the_same_sums_without_gradients(smoothing: float) -> None:
    features, weight, bias, target = problem(_CACHED + 9)
    expected = smoothed_cross_entropy(features, weight, bias, target, smoothing=smoothing)
    with torch.no_grad():
        found = smoothed_cross_entropy(features, weight, bias, target, smoothing=smoothing)
    torch.testing.assert_close(found, tuple(value.detach() for value in expected))
    assert not found[0].requires_grad


def test_the_formula_of_label_smoothing() -> None:
    """(1 - eps) nll + eps times the mean of -log p over the vocabulary."""
    features, weight, bias, target = problem(1)
    loss, _ = smoothed_cross_entropy(features, weight, bias, target, smoothing=0.25)
    log_p = torch.log_softmax(features[0, 0] @ weight.T + bias, 0)
    torch.testing.assert_close(loss, -0.75 * log_p[target[0, 0]] - 0.25 * log_p.sum() / V)


def test_padding_counts_for_nothing() -> None:
    features, weight, bias, target = problem(8)
    padded_BTD = features.detach().reshape(2, 4, D).clone().requires_grad_()
    target_BT = target.reshape(2, 4).clone()
    target_BT[0, 2:] = 0
    loss, likelihood = smoothed_cross_entropy(padded_BTD, weight, bias, target_BT, smoothing=0.1)
    torch.testing.assert_close(loss, expected_loss(padded_BTD, weight, bias, target_BT, 0.1))
    torch.testing.assert_close(likelihood, expected_loss(padded_BTD, weight, bias, target_BT, 0.0))
    (gradient,) = torch.autograd.grad(loss, padded_BTD)
    assert not gradient[0, 2:].any()
    assert gradient[0, :2].any()


def test_padding_alone_is_no_loss() -> None:
    features, weight, bias, target = problem(4)
    loss, likelihood = smoothed_cross_entropy(features, weight, bias, torch.zeros_like(target), smoothing=0.1)
    assert float(loss.detach()) == float(likelihood) == 0.0
    assert not any(g.any() for g in torch.autograd.grad(loss, (features, weight, bias)))


def test_gradients_reach_through_a_tied_and_a_composed_weight() -> None:
    """The weight may be an embedding used elsewhere, or computed from others."""
    features, weight, bias, target = problem(6)
    gain = torch.rand(V, 1, dtype=torch.float64, requires_grad=True)
    loss, _ = smoothed_cross_entropy(features + weight[2], gain * weight, bias, target, smoothing=0.1)
    reference = expected_loss(features + weight[2], gain * weight, bias, target, 0.1)
    for one, other in zip(*(torch.autograd.grad(x, (weight, gain)) for x in (loss, reference)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("features_dtype", "products", "near_loss", "near_gradient"),
    [
        (torch.float32, True, 5e-3, 1e-2),
        (torch.bfloat16, True, 5e-3, 1e-2),
        (torch.float16, torch.float16, 1e-3, 2e-3),
    ],
)
def test_low_precision_stays_near(
    features_dtype: torch.dtype, products: bool | torch.dtype, near_loss: float, near_gradient: float
) -> None:
    """bfloat16 products carry 8 bits, float16 three more; loss and gradients come out in float64 and float32."""
    features, weight, bias, target = problem(600, torch.float32)
    loss, _ = smoothed_cross_entropy(
        features.to(features_dtype), weight, bias, target, smoothing=0.1, low_precision=products
    )
    reference = expected_loss(features, weight, bias, target, 0.1)
    assert loss.dtype == torch.float64
    assert float(loss.detach()) == pytest.approx(float(reference.detach()), rel=near_loss)
    for one, other in zip(*(torch.autograd.grad(x, (weight, bias)) for x in (loss, reference)), strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < near_gradient
