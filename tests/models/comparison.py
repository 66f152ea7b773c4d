"""Between a model and its restatement in NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.reference.layers import Vectors, Weights


def weights_of(module: nn.Module) -> Weights:
    """The module's state as the restatement reads it."""
    return Weights({name: tensor.double().numpy() for name, tensor in module.state_dict().items()})


def shaken(module: nn.Module) -> Any:
    """The module in float64 and evaluation mode, its parameters moved off their initial zeros and ones."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3).requires_grad_(False)
    return module.double().eval()


def vectors(x_TD: Tensor) -> Vectors:
    """A sequence as the restatement has it: a list of vectors."""
    return list(x_TD.numpy())


def assert_same(found: Tensor, expected: Iterable[NDArray[np.float64]]) -> None:
    """Equal but for float64 rounding."""
    np.testing.assert_allclose(found.detach().numpy(), np.stack(list(expected)), atol=1e-12, rtol=0)
