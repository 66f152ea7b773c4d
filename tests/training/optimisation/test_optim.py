"""Optimisers and schedules against their papers' formulas."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from tandem.models.errors import ConfigError
from tandem.training.optimisation.optim import OptimiserConfig, build_optimiser, divisions, learning_rate, spent

ADAM = OptimiserConfig(learning_rate=0.1, beta1=0.9, beta2=0.98, epsilon=1e-9)
ADADELTA = OptimiserConfig("adadelta", 1.0, "constant", warmup=0, epsilon=1e-6, rho=0.95)
NAG = OptimiserConfig("nag", 0.1, "plateau", warmup=0, momentum=0.9)


class Quadratic(nn.Module):
    """f(x) = sum_i c_i x_i^2 / 2, so that the gradient is c x."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64))
        self.c = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)

    def forward(self) -> torch.Tensor:
        return (self.c * self.x**2).sum() / 2


def run(config: OptimiserConfig, rates: list[float]) -> list[list[float]]:
    model = Quadratic()
    optimiser = build_optimiser(config, model)
    path = []
    for rate in rates:
        optimiser.param_groups[0]["lr"] = rate
        model().backward()
        optimiser.step()
        optimiser.zero_grad()
        path.append(model.x.tolist())
    return path


def test_nesterovs_accelerated_gradient() -> None:
    """v = m v + g;  x -= rate (g + m v): Sutskever et al. 2013 in the variables of the look-ahead point."""
    rates = [0.1, 0.1, 0.05, 0.05, 0.01]
    start = Quadratic()
    x, v, expected = start.x.detach(), torch.zeros(3, dtype=torch.float64), []
    for rate in rates:
        g = start.c * x
        v = 0.9 * v + g
        x = x - rate * (g + 0.9 * v)
        expected.append(x.tolist())
    torch.testing.assert_close(torch.tensor(run(NAG, rates)), torch.tensor(expected))


def test_adam() -> None:
    """m, v with their bias corrections (Kingma and Ba 2015, algorithm 1)."""
    rates = [0.1, 0.1, 0.05, 0.2]
    start = Quadratic()
    x = start.x.detach()
    m = v = torch.zeros(3, dtype=torch.float64)
    expected = []
    for t, rate in enumerate(rates, 1):
        g = start.c * x
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        x = x - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-9)
        expected.append(x.tolist())
    torch.testing.assert_close(torch.tensor(run(ADAM, rates)), torch.tensor(expected))


def test_adadelta() -> None:
    """x -= RMS[dx] / RMS[g] g, both mean squares decaying with rho (Zeiler 2012, algorithm 1)."""
    rates = [1.0, 1.0, 0.5, 1.0]
    start = Quadratic()
    x = start.x.detach()
    squares = steps = torch.zeros(3, dtype=torch.float64)
    expected = []
    for rate in rates:
        g = start.c * x
        squares = 0.95 * squares + 0.05 * g * g
        step = (steps + 1e-6).sqrt() / (squares + 1e-6).sqrt() * g
        steps = 0.95 * steps + 0.05 * step * step
        x = x - rate * step
        expected.append(x.tolist())
    torch.testing.assert_close(torch.tensor(run(ADADELTA, rates)), torch.tensor(expected))


def test_every_trainable_parameter_is_optimised() -> None:
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    for config in (ADAM, NAG, ADADELTA):
        (group,) = build_optimiser(config, model).param_groups
        assert group["params"] == [model.weight]


@pytest.mark.parametrize("update", [1, 2, 399, 400, 401, 1600, 10_000])
def test_inverse_square_root(update: int) -> None:
    """Vaswani et al. 2017, section 5.3: proportional to min(t^-0.5, t warmup^-1.5), 1 at its peak."""
    config = OptimiserConfig(learning_rate=2e-3, warmup=400)
    expected = 2e-3 * min(update**-0.5, update * 400**-1.5) * 400**0.5
    assert learning_rate(config, update, 20_000, plateaus=0) == pytest.approx(expected, rel=1e-12)
    assert learning_rate(config, update, 20_000, plateaus=3) == pytest.approx(expected, rel=1e-12)


def test_inverse_square_root_without_warm_up() -> None:
    config = OptimiserConfig(learning_rate=1.0, warmup=0)
    assert [learning_rate(config, t, 100, 0) for t in (1, 4, 25)] == pytest.approx([1.0, 0.5, 0.2])


def test_a_constant_rate_stays() -> None:
    config = replace(ADADELTA, warmup=10)
    assert [learning_rate(config, update, 100, plateaus=3) for update in (5, 10, 11, 100)] == [0.5, 1.0, 1.0, 1.0]


def test_plateaus_divide() -> None:
    assert [learning_rate(NAG, 50, 100, plateaus) for plateaus in range(4)] == pytest.approx([0.1, 0.01, 1e-3, 1e-4])
    gentle = replace(NAG, decay=2.0, warmup=10)
    assert learning_rate(gentle, 5, 100, 1) == pytest.approx(0.1 / 2 / 2)
    assert learning_rate(gentle, 10, 100, 1) == pytest.approx(0.1 / 2)


def test_what_divides_the_rate() -> None:
    by_epoch = replace(NAG, anneal="epochs")
    assert [divisions(NAG, done, stale=True) for done in (0, 1, 2)] == [1, 2, 3]
    assert [divisions(NAG, done, epochs=1) for done in (0, 1, 2)] == [0, 1, 2]
    assert [divisions(by_epoch, done, stale=True) for done in (0, 1, 2)] == [1, 1, 2]
    assert [divisions(by_epoch, done, epochs=1) for done in (0, 1, 2)] == [0, 2, 3]
    assert divisions(ADAM, 0, stale=True, epochs=1) == 0
    floor = replace(NAG, stop_below=5e-4)  # the rate itself is 0.1
    assert [spent(floor, plateaus) for plateaus in (0, 1, 2, 3)] == [False, False, False, True]
    assert not spent(replace(ADAM, stop_below=1.0), 9)


def test_cooldown_falls_in_equal_steps_to_just_above_zero() -> None:
    config = replace(NAG, cooldown=4)
    rates = [learning_rate(config, update, 10, 0) for update in range(5, 12)]
    assert rates == pytest.approx([0.1, 0.1, 0.08, 0.06, 0.04, 0.02, 0.0])


def test_the_rate_never_jumps() -> None:
    config = OptimiserConfig(learning_rate=1.0, warmup=100, cooldown=200)
    rates = [learning_rate(config, update, 1000, 0) for update in range(1, 1001)]
    assert max(abs(a - b) for a, b in pairwise(rates)) <= 0.0101
    assert all(math.isfinite(rate) and rate > 0 for rate in rates)


class Affine(nn.Module):
    """f(W, b) = sum of W and of b: every gradient is 1."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
        self.w = nn.Parameter(torch.tensor([[3.0]], dtype=torch.float64))


def test_adamw_takes_a_share_of_the_weights_and_not_of_biases() -> None:
    """x -= rate (m / (sqrt(v) + eps) + decay x) (Loshchilov and Hutter 2019, algorithm 2); here m = sqrt(v) = 1."""
    model = Affine()
    config = OptimiserConfig("adamw", weight_decay=0.5, epsilon=0.0)
    optimiser = build_optimiser(config, model)
    for _ in range(2):
        for group in optimiser.param_groups:
            group["lr"] = 0.1
        (model.w.sum() + model.b.sum()).backward()
        optimiser.step()
        optimiser.zero_grad()
    weight = 3.0
    for _ in range(2):
        weight = weight - 0.1 * (1 + 0.5 * weight)
    assert model.w.item() == pytest.approx(weight)
    assert model.b.item() == pytest.approx(2.0 - 0.2)


def test_cosine() -> None:
    """Half a cosine after the warm-up; the middle is at half the rate, the update after the last would be at zero."""
    config = OptimiserConfig(learning_rate=0.4, schedule="cosine", warmup=4)
    rates = [learning_rate(config, update, 23, 0) for update in range(1, 25)]
    assert rates[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert rates[13] == pytest.approx(0.2)
    assert rates[23] == pytest.approx(0.0)
    assert all(later < earlier for earlier, later in pairwise(rates[3:]))
    with pytest.raises(ConfigError, match="cooldown must be 0 with schedule = 'cosine'"):
        OptimiserConfig(schedule="cosine", cooldown=1)
