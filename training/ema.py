"""The exponential moving average of the weights: what is validated and exported where the recipe asks for it.

``torch.optim.swa_utils`` keeps it; what is here is the warm-up of its decay and its place in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from models.loading import model_tensors
from models.protocol import Seq2SeqModel
from training.checkpoint import EMA, load_into

_COUNT = "ema_updates"


class MovingAverage:
    """``average = d average + (1 - d) weights`` after every update, ``d = min(decay, (1 + n) / (10 + n))``.

    n is the number of updates before; the first weights are taken as they are.

    Args:
        model: whose weights are averaged; the average is a copy of it.
        decay: d once it has warmed up, 0 to below 1.
    """

    def __init__(self, model: Seq2SeqModel[Any, Any], decay: float) -> None:
        def blend(average: Any, new: Any, count: Any) -> None:
            n = int(count)
            get_ema_multi_avg_fn(min(decay, (1 + n) / (10 + n)))(average, new, count)

        self._averaged = AveragedModel(model, multi_avg_fn=blend)
        self._averaged.requires_grad_(False)

    @property
    def model(self) -> Seq2SeqModel[Any, Any]:
        """The model with the averaged weights."""
        return cast("Seq2SeqModel[Any, Any]", self._averaged.module)

    def update(self, model: Seq2SeqModel[Any, Any]) -> None:
        """Take in the weights after an update."""
        self._averaged.update_parameters(model)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it."""
        weights = {f"{EMA}{name}": tensor for name, tensor in model_tensors(self.model).items()}
        return {**weights, _COUNT: self._averaged.n_averaged}

    def restore(self, tensors: Mapping[str, Tensor], where: str) -> None:
        """Go on from what :meth:`tensors` gave.

        Raises:
            CheckpointError: the tensors are those of another model, or of a run without a moving average.
        """
        load_into(self.model, {k.removeprefix(EMA): v for k, v in tensors.items() if k.startswith(EMA)}, where)
        self._averaged.n_averaged.copy_(tensors[_COUNT])
