"""From a batch to its loss: the model in the recipe's precision, once or, with R-Drop, twice at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.protocol import Padded, Seq2SeqModel
from training.data.batches import TrainingBatch
from training.loss import smoothed_cross_entropy
from training.r_drop import r_drop_cross_entropy
from training.recipe import TrainingConfig
from training.recomputation import recomputed
from training.selection import Selection

AnyModel = Seq2SeqModel[Any, Any]
NARROW = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Objective(nn.Module):
    """The loss of a batch as a module, which is what DistributedDataParallel wraps.

    While training it is what the recipe asks for; in evaluation mode plain cross-entropy.

    Args:
        model: what is trained.
        config: precision, label smoothing, R-Drop and recomputation.
        selection: what part of the vocabulary each training batch needs; None for all.
    """

    def __init__(self, model: AnyModel, config: TrainingConfig, selection: Selection | None = None) -> None:
        super().__init__()
        self.model, self._config, self._selection = model, config, selection

    def forward(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """The summed loss over the target symbols, and the summed negative log-likelihood: two float64 scalars."""
        config, device = self._config, next(self.model.parameters()).device
        narrow = NARROW[config.precision]
        twice = self.model.training and config.r_drop > 0
        sources = tuple(_to(source, device, twice) for source in batch.sources)
        target = batch.target_in.to(device)
        with (
            torch.autocast(device.type, narrow or torch.bfloat16, enabled=narrow is not None),
            recomputed(self.model, config.recompute and self.model.training),
        ):
            # Both passes of R-Drop are one batch: dropout draws for every row.
            features = self.model.decode(torch.cat([target] * 2) if twice else target, self.model.encode(sources))
        weight, bias = self.model.output_parameters()
        smoothing, products = config.label_smoothing if self.model.training else 0.0, narrow or False
        gold = batch.target_out
        if self._selection is not None and self.model.training:
            weight, bias, gold = self._selection.restrict(weight, bias, batch)
        gold = gold.to(device)
        if not twice:
            return smoothed_cross_entropy(features, weight, bias, gold, smoothing=smoothing, low_precision=products)
        passes = features.unflatten(0, (2, -1))
        return r_drop_cross_entropy(
            passes, weight, bias, gold, smoothing=smoothing, alpha=config.r_drop, low_precision=products
        )


def _to(source: Padded, device: torch.device, twice: bool) -> Padded:
    values, lengths = source.values.to(device), source.lengths.to(device)
    return Padded(torch.cat([values] * 2), torch.cat([lengths] * 2)) if twice else Padded(values, lengths)
