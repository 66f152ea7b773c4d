"""Optimisers and learning-rate schedules of the papers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from tandem.models.config import bounded
from tandem.models.errors import ConfigError


@dataclass(frozen=True, slots=True)
class OptimiserConfig:
    """How the parameters are updated.

    Attributes:
        name: "adam" (Kingma and Ba 2015), "adamw" (with decoupled weight decay, Loshchilov and Hutter 2019), "nag"
            (Nesterov's accelerated gradient, as ConvS2S and DPN-S2S train) or "adadelta" (Zeiler 2012, as ME-MD
            trains).
        learning_rate: the peak rate (adam), the initial rate (nag) or the factor of each step, 1 in the paper
            (adadelta).
        schedule: "inverse-sqrt" warms up linearly and decays with 1/sqrt(update) (Vaswani et al. 2017); "plateau"
            divides by ``decay`` when the validation loss stops falling; "constant" stays at the rate after the warm-up;
            "cosine" falls from there to zero at the end along half a cosine (Loshchilov and Hutter 2017).
        warmup: updates of linear warm-up.
        cooldown: last updates, over which the rate falls linearly to zero (0 = none, as "cosine" needs).
        decay: divisor at a plateau.
        anneal: with "plateau", when the rate falls again after the first one: at each further plateau ("plateaus"), or
            after every epoch, whatever the loss does ("epochs", as Gehring et al. 2017, section 4.2).
        stop_below: with "plateau", training ends when the rate falls below this.
        beta1: first moment's decay (adam, adamw).
        beta2: second moment's decay (adam, adamw).
        epsilon: added to the root of the second moment (adam, adamw), or under both roots (adadelta).
        weight_decay: share of the weights, times the rate, that an update takes off them (adamw). Biases and gains,
            which are vectors, are left alone.
        rho: decay of the mean squares (adadelta).
        momentum: of nag.
        clip_norm: largest norm of the whole gradient (0 = no clipping).
    """

    name: Literal["adam", "adamw", "nag", "adadelta"] = "adam"
    learning_rate: float = bounded(1e-3, at_least=0.0)
    schedule: Literal["inverse-sqrt", "plateau", "constant", "cosine"] = "inverse-sqrt"
    warmup: int = bounded(1000, at_least=0)
    cooldown: int = bounded(0, at_least=0)
    decay: float = bounded(10.0, at_least=1.0)
    anneal: Literal["plateaus", "epochs"] = "plateaus"
    stop_below: float = bounded(1e-4, at_least=0.0)
    beta1: float = bounded(0.9, at_least=0.0, at_most=0.999999)
    beta2: float = bounded(0.98, at_least=0.0, at_most=0.999999)
    epsilon: float = bounded(1e-9, at_least=1e-20)  # at 0 what has no gradient would become 0 / 0
    weight_decay: float = bounded(0.01, at_least=0.0)
    rho: float = bounded(0.95, at_least=0.0, at_most=0.999999)
    momentum: float = bounded(0.99, at_least=0.0, at_most=0.999999)
    clip_norm: float = bounded(1.0, at_least=0.0)

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise ConfigError(f"learning_rate must be a finite number above 0, but is {self.learning_rate}")
        if self.schedule == "cosine" and self.cooldown:
            raise ConfigError(
                f"cooldown must be 0 with schedule = 'cosine', which falls to zero itself, but is {self.cooldown}"
            )


def build_optimiser(config: OptimiserConfig, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser over all parameters of ``model``; the trainer sets its rate before every update."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if config.name == "adam":
        betas = (config.beta1, config.beta2)
        return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=config.epsilon, fused=True)
    if config.name == "adamw":
        # Decay is for what multiplies: a bias or a gain that is small says nothing of how simple a model is.
        groups = [[p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() < 2]]
        decays = zip(groups, (config.weight_decay, 0.0), strict=True)
        return torch.optim.AdamW(
            [{"params": group, "weight_decay": decay} for group, decay in decays if group],
            lr=0.0,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )
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
        plateaus: how often the rate has been divided; see :func:`divisions`.
    """
    rate = config.learning_rate
    if config.warmup and update < config.warmup:
        rate *= update / config.warmup
    elif config.schedule == "inverse-sqrt":
        rate *= math.sqrt(max(config.warmup, 1) / update)
    elif config.schedule == "cosine":
        # The update after the last one would be at zero.
        rate *= (1 + math.cos(math.pi * (update - config.warmup) / (last_update + 1 - config.warmup))) / 2
    if config.schedule == "plateau":
        rate /= config.decay**plateaus
    if config.cooldown and update > last_update - config.cooldown:
        rate *= max(0, last_update - update + 1) / (config.cooldown + 1)
    return rate


def divisions(config: OptimiserConfig, done: int, *, stale: bool = False, epochs: int = 0) -> int:
    """How often the "plateau" schedule has divided the rate.

    Args:
        config: the schedule.
        done: how often it had.
        stale: whether a validation has just shown no lower loss.
        epochs: how many epochs have just ended.
    """
    if config.schedule != "plateau":
        return done
    if config.anneal == "plateaus" or not done:
        return done + stale
    return done + epochs


def spent(config: OptimiserConfig, plateaus: int) -> bool:
    """Whether a rate divided so often ends training."""
    return config.schedule == "plateau" and config.learning_rate / config.decay**plateaus < config.stop_below
