"""From a batch to its loss: the model in the recipe's precision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from tandem.models.architectures.protocol import Padded, Seq2SeqModel
from tandem.models.errors import ConfigError
from tandem.training.data.batches import TrainingBatch
from tandem.training.data.dataset import PreparedData
from tandem.training.optimisation.loss import smoothed_cross_entropy
from tandem.training.optimisation.precision import NARROW
from tandem.training.optimisation.recomputation import recomputed
from tandem.training.recipe import TrainingConfig

AnyModel = Seq2SeqModel[Any, Any]


class Selection(Protocol):
    """The part of the output layer that a batch needs, where a recipe asks for ``selection``. An extra brings it."""

    def restrict(
        self, weight_VD: Tensor, bias_V: Tensor | None, batch: TrainingBatch
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The rows of the output layer L x D, their biases, and the batch's targets B x T as numbers of rows."""


OpenSelection: TypeAlias = Callable[[PreparedData, Path, TrainingConfig], Selection]
"""Makes the selection that a recipe asks for, of the training split and the prepared folder."""


class Objective(nn.Module):
    """The loss of a batch as a module, which is what DistributedDataParallel wraps.

    While training it is what the recipe asks for; in evaluation mode plain cross-entropy.

    Args:
        model: what is trained.
        config: precision, label smoothing, recomputation and compilation.
        selection: what part of the vocabulary each training batch needs; None for all.

    Raises:
        ConfigError: the model is to be compiled and goes position by position.
    """

    def __init__(self, model: AnyModel, config: TrainingConfig, selection: Selection | None = None) -> None:
        super().__init__()
        self.model, self._config, self._selection = model, config, selection
        if config.compile and model.recurrent:
            raise ConfigError(
                f"training compile must be false for {type(model).__name__}, which goes from position to position"
            )
        # The loss stays outside: it is a few large products, with a gradient of its own.
        self._compiled = torch.compile(self._features, dynamic=True) if config.compile else self._features

    def _features(self, sources: tuple[Padded, ...], target: Tensor) -> Tensor:
        return self.model.decode(target, self.model.encode(sources))

    def forward(self, given: TrainingBatch) -> tuple[Tensor, Tensor]:
        """The summed loss over the target symbols, and the summed negative log-likelihood: two float64 scalars."""
        config, device = self._config, next(self.model.parameters()).device
        narrow = NARROW[config.precision]
        batch = given.to(device)
        advance = self._compiled if self.model.training else self._features
        with (
            torch.autocast(device.type, narrow or torch.bfloat16, enabled=narrow is not None),
            recomputed(self.model, config.recompute and self.model.training),
        ):
            features = advance(batch.sources, batch.target_in)
        weight, bias = self.model.output_parameters()
        smoothing, products = config.label_smoothing if self.model.training else 0.0, narrow or False
        gold = batch.target_out
        if self._selection is not None and self.model.training:
            weight, bias, gold = self._selection.restrict(weight, bias, given)
        return smoothed_cross_entropy(
            features,
            weight,
            bias,
            gold.to(device, non_blocking=True),
            smoothing=smoothing,
            low_precision=products,
            places_N=batch.target_places,
        )
