"""Between a model and its restatement in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.models.architectures.examples import AnyModel, batch, sentences, targets
from tests.reference.convs2s import ConvS2SReference
from tests.reference.dpn import DpnReference
from tests.reference.layers import Vectors, Weights
from tests.reference.layerwise import LayerwiseReference
from tests.reference.memd import MemdReference
from tests.reference.multisource import MultiSourceReference
from tests.reference.transformer import TransformerReference

RESTATEMENTS: dict[str, Callable[[Weights, Any], Any]] = {
    "dpn": lambda weights, config: DpnReference(weights, config.kernel, config.heads),
    "transformer": TransformerReference,
    "convs2s": lambda weights, config: ConvS2SReference(weights, config.encoder_kernels, config.decoder_kernels),
    "layerwise": LayerwiseReference,
    "multisource": MultiSourceReference,
    "memd": lambda weights, config: MemdReference(weights, config.encoders),
}
"""By architecture: the restatement for one sentence, made of the model's weights and configuration."""


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


@torch.no_grad()
def assert_restated(architecture: str, model: AnyModel) -> None:
    """A padded batch against the restatement of each sentence alone: logits and every attention."""
    made, target_BT = sentences(model, (5, 2)), targets(2, 4)
    memory = model.encode(batch(made, extra=2, filler=3))
    logits_BTV, attentions = model.score(target_BT, memory), model.attention(target_BT, memory)
    for b, sources in enumerate(made):
        restated = RESTATEMENTS[architecture](weights_of(model), model.config)
        plain = [vectors(source.double()) if source.is_floating_point() else source.tolist() for source in sources]
        given = plain if architecture == "multisource" else plain[0]
        np.testing.assert_allclose(
            logits_BTV[b].numpy(), restated.score(given, target_BT[b].tolist()), atol=1e-11, rtol=0
        )
        assert list(attentions) == list(restated.seen)
        for name, weights in restated.seen.items():
            assert_same(attentions[name][b, :, : len(weights[0])], weights)
            assert not attentions[name][b, :, len(weights[0]) :].any()
