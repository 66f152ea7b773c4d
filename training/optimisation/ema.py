"""The exponential moving average of the weights: what is validated and exported where the recipe asks for it.

``torch.optim.swa_utils`` was left aside: it keeps its count in a tensor, which a decay that warms up would have to read
back from the GPU after every update.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from tandem.models.architectures.protocol import Seq2SeqModel
from tandem.models.steps.loading import model_tensors
from tandem.training.checkpoint import EMA, load_into

_COUNT = "ema_updates"


class MovingAverage:
    """``average = d average + (1 - d) weights`` after every update, ``d = min(decay, (1 + n) / (10 + n))``.

    n is the number of updates before; the first weights are taken as they are.

    Args:
        model: whose weights are averaged; the average is a copy of it.
        decay: d once it has warmed up, 0 to below 1.

    Attributes:
        model: the model with the averaged weights.
    """

    def __init__(self, model: Seq2SeqModel[Any, Any], decay: float) -> None:
        self._decay, self._updates = decay, 0
        self.model: Seq2SeqModel[Any, Any] = deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model: Seq2SeqModel[Any, Any]) -> None:
        """Take in the weights after an update."""
        average: list[Tensor] = list(self.model.parameters())
        weights: list[Tensor] = list(model.parameters())
        n = self._updates
        share = 1 - min(self._decay, (1 + n) / (10 + n)) if n else 1.0
        torch._foreach_lerp_(average, weights, share)
        self._updates += 1

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it."""
        weights = {f"{EMA}{name}": tensor for name, tensor in model_tensors(self.model).items()}
        return {**weights, _COUNT: torch.tensor(self._updates)}

    def restore(self, tensors: Mapping[str, Tensor], where: str) -> None:
        """Go on from what :meth:`tensors` gave.

        Raises:
            CheckpointError: the tensors are those of another model, or of a run without a moving average.
        """
        load_into(self.model, {k.removeprefix(EMA): v for k, v in tensors.items() if k.startswith(EMA)}, where)
        self._updates = int(tensors[_COUNT])
