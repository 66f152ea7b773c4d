"""Low-rank adapters: fine-tuning that learns a small sum beside weights that stay (Hu et al. 2022, "LoRA").

Every linear map has ``W + alpha / r * B A`` in the place of ``W`` (section 4.1, equation 3). What they have learnt is
written into W when the model is prepared for inference, so that a bundle is one like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from tandem.models.architectures.layers.linear import Linear, LowRank
from tandem.models.steps.loading import model_tensors


def add_adapters(model: nn.Module, rank: int, alpha: float) -> None:
    """Give every linear map an adapter, which changes nothing yet, and freeze all that was there.

    Args:
        model: whose maps get them, in place.
        rank: r, at most that of the map.
        alpha: what their sums are multiplied by, times r.
    """
    model.requires_grad_(False)
    for linear in [module for module in model.modules() if isinstance(module, Linear)]:
        outputs, inputs = linear.weight.shape
        linear.adapter = LowRank(inputs, outputs, min(rank, inputs, outputs), alpha).to(linear.weight)


def with_adapters(tensors: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Tensors of a model without adapters, and those that ``model`` begins with."""
    return {name: one for name, one in model_tensors(model).items() if ".adapter." in name} | dict(tensors)
