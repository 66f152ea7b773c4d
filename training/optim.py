"""Optimisers and learning-rate schedules of the papers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from models.config import bounded


@dataclass(frozen=True, slots=True)
class OptimiserConfig:
    """How the parameters are updated.

    Attributes:
        name: "adam" (Kingma and Ba 2015), "nag" (Nesterov's accelerated gradient, as ConvS2S and DPN-S2S train) or
            "adadelta" (Zeiler 2012, as ME-MD trains).
        learning_rate: the peak rate (adam), the initial rate (nag) or the factor of each step, 1 in the paper
            (adadelta).
        schedule: "inverse-sqrt" warms up linearly and decays with 1/sqrt(update) (Vaswani et al. 2017); "plateau"
            divides by ``decay`` whenever the validation loss stops falling (Gehring et al. 2017); "constant" stays at
            the rate after the warm-up.
        warmup: updates of linear warm-up.
        cooldown: last updates, over which the rate falls linearly to zero (0 = none).
        decay: divisor at a plateau.
        stop_below: with "plateau", training ends when the rate falls below this.
        beta1: first moment's decay (adam).
        beta2: second moment's decay (adam).
        epsilon: added to the root of the second moment (adam), or under both roots (adadelta).
        rho: decay of the mean squares (adadelta).
        momentum: of nag.
        clip_norm: largest norm of the whole gradient (0 = no clipping).
    """

    name: Literal["adam", "nag", "adadelta"] = "adam"
    learning_rate: float = bounded(1e-3, at_least=0.0)
    schedule: Literal["inverse-sqrt", "plateau", "constant"] = "inverse-sqrt"
    warmup: int = bounded(1000, at_least=0)
    cooldown: int = bounded(0, at_least=0)
    decay: float = bounded(10.0, at_least=1.0)
    stop_below: float = bounded(1e-4, at_least=0.0)
    beta1: float = bounded(0.9, at_least=0.0, at_most=1.0)
    beta2: float = bounded(0.98, at_least=0.0, at_most=1.0)
    epsilon: float = bounded(1e-9, at_least=0.0)
    rho: float = bounded(0.95, at_least=0.0, at_most=1.0)
    momentum: float = bounded(0.99, at_least=0.0, at_most=1.0)
    clip_norm: float = bounded(1.0, at_least=0.0)


def build_optimiser(config: OptimiserConfig, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser over all parameters of ``model``; the trainer sets its rate before every update."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if config.name == "adam":
        betas = (config.beta1, config.beta2)
        return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=config.epsilon, fused=True)
    if config.name == "adadelta":
        return torch.optim.Adadelta(parameters, lr=config.learning_rate, rho=config.rho, eps=config.epsilon)
    momentum = config.momentum
    return torch.optim.SGD(parameters, lr=config.learning_rate, momentum=momentum, nesterov=momentum > 0, fused=True)


def learning_rate(config: OptimiserConfig, update: int, last_update: int, plateaus: int) -> float:
    """The rate of one update.

    Args:
        config: the schedule.
        update: 1-based number of the update about to be made.
        last_update: the last update that training is to make.
        plateaus: how often the validation loss has stopped falling.
    """
    rate = config.learning_rate
    if config.warmup and update < config.warmup:
        rate *= update / config.warmup
    elif config.schedule == "inverse-sqrt":
        rate *= math.sqrt(max(config.warmup, 1) / update)
    if config.schedule == "plateau":
        rate /= config.decay**plateaus
    if config.cooldown and update > last_update - config.cooldown:
        rate *= max(0, last_update - update + 1) / (config.cooldown + 1)
    return rate
