"""One update: gradients of all batches of all processes, clipped, applied, or skipped where they are not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from tandem.models.architectures.layers.dropout import Masks
from tandem.models.architectures.protocol import Seq2SeqModel
from tandem.models.errors import CheckpointError
from tandem.training.data.batches import TrainingBatch
from tandem.training.loop.objective import Objective, Selection
from tandem.training.optimisation.ema import MovingAverage
from tandem.training.optimisation.optim import build_optimiser
from tandem.training.optimisation.precision import float32_products
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe

_SCALE, _SINCE = "scaler.scale", "scaler.growth_tracker"


@dataclass(frozen=True, slots=True)
class Step:
    """What an update did.

    Attributes:
        loss: this process's summed loss, a float64 scalar where it was computed: reading it waits for the device.
        nll: this process's summed negative log-likelihood, likewise.
        norm: of the gradient of the mean loss over all processes' target symbols, before clipping.
        applied: whether the weights changed; a gradient that is not finite changes nothing.
    """

    loss: Tensor
    nll: Tensor
    norm: float
    applied: bool


class Stepper:
    """Holds what an update changes: weights, the optimiser's state, the loss scale, the moving average.

    Args:
        model: what is trained, on its device.
        recipe: optimiser, precision and the rest.
        processes: those that train together.
        selection: what part of the vocabulary each batch needs; None for all.
    """

    def __init__(
        self, model: Seq2SeqModel[Any, Any], recipe: Recipe, processes: Processes, selection: Selection | None = None
    ) -> None:
        self.model, self._config, self._processes = model, recipe.optimiser, processes
        self.optimiser = build_optimiser(recipe.optimiser, model)
        decay = recipe.training.ema_decay
        self.average = MovingAverage(model, decay) if decay else None
        device = torch.device(processes.device)
        self._precision = recipe.training.precision
        self._scaler = torch.amp.GradScaler(device.type, enabled=recipe.training.precision == "fp16")
        self.objective = Objective(model, recipe.training, selection)
        self._masks = Masks()
        self._parallel: DistributedDataParallel | None = None
        if processes.count > 1:
            own = [device] if device.type == "cuda" else None
            self._parallel = DistributedDataParallel(
                self.objective,
                device_ids=own,
                broadcast_buffers=False,  # they are tables that no update changes
                gradient_as_bucket_view=True,
            )

    @property
    def best(self) -> Seq2SeqModel[Any, Any]:
        """The model that is validated: the moving average where there is one."""
        return self.model if self.average is None else self.average.model

    @property
    def loss_scale(self) -> float | None:
        """By what the loss is multiplied in fp16; None in other precisions."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else None

    def step(self, batches: Sequence[TrainingBatch], tokens: int, rate: float) -> Step:
        """Make one update.

        Args:
            batches: this process's batches.
            tokens: target symbols of all processes' batches, over which the loss is a mean.
            rate: the learning rate.
        """
        with float32_products(self._precision):
            return self._step(batches, tokens, rate)

    def _step(self, batches: Sequence[TrainingBatch], tokens: int, rate: float) -> Step:
        self.model.train()
        loss = nll = torch.zeros((), dtype=torch.float64, device=self._processes.device)
        forward = self._parallel or self.objective
        for number, batch in enumerate(batches, start=1):
            with self._exchanging(number == len(batches)), self._masks.shared():
                smoothed, plain = forward(batch)
                mean = smoothed / tokens
                if self._parallel is not None:
                    mean = mean * self._processes.count  # its gradients are means over the processes, ours sums
                self._scaler.scale(mean).backward()
            loss, nll = loss + smoothed.detach(), nll + plain
        norm, applied = self._apply(rate)
        return Step(loss, nll, norm, applied)

    def _exchanging(self, last: bool) -> AbstractContextManager[None]:
        """Gradients are exchanged with those of the last batch."""
        return nullcontext() if last or self._parallel is None else self._parallel.no_sync()

    def _apply(self, rate: float) -> tuple[float, bool]:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self._scaler.unscale_(self.optimiser)
        norm = self._clip()
        applied = math.isfinite(norm)
        if applied:
            self._scaler.step(self.optimiser)
        self._scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        if applied and self.average is not None:
            self.average.update(self.model)
        return norm, applied

    def _clip(self) -> float:
        """Shorten the gradient to the recipe's longest, where it is longer or not finite; its norm before.

        The norm is the one number that an update waits for: it decides whether there is one.
        """
        gradients = [one.grad for one in self.model.parameters() if one.grad is not None]
        total = torch.nn.utils.get_total_norm(gradients, foreach=True)
        norm, longest = float(total), self._config.clip_norm
        if longest and not norm <= longest:  # else every gradient would be multiplied by 1
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), longest, total, foreach=True)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps besides the model's weights and the optimiser's state."""
        tensors = {} if self.average is None else self.average.tensors()
        if self._scaler.is_enabled():
            state = self._scaler.state_dict()
            tensors[_SCALE] = torch.tensor(state["scale"], dtype=torch.float64)
            tensors[_SINCE] = torch.tensor(state["_growth_tracker"])
        return tensors

    def restore(self, tensors: Mapping[str, Tensor], where: str) -> None:
        """Go on from what :meth:`tensors` gave.

        Raises:
            CheckpointError: something is missing, or belongs to another model.
        """
        if self.average is not None:
            self.average.restore(tensors, where)
        if self._scaler.is_enabled():
            if not {_SCALE, _SINCE} & tensors.keys():
                return  # the run was in another precision, and scales from here on as one that begins
            if _SCALE not in tensors or _SINCE not in tensors:
                raise CheckpointError(f"{where} lacks the loss scale of fp16: resume from an older checkpoint")
            values = {"scale": float(tensors[_SCALE]), "_growth_tracker": int(tensors[_SINCE])}
            self._scaler.load_state_dict(self._scaler.state_dict() | values)
