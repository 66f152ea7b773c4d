"""The operators of the layers, in ONNX."""

from __future__ import annotations

from itertools import product
from typing import Literal

import onnxruntime as ort
import pytest
import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.recurrent import Gru
from tandem.training.export.tracing import OPSET, TRANSLATIONS


class EveryKind(nn.Module):
    """Recurrent layers of both directions and both places of the reset gate."""

    def __init__(self) -> None:
        super().__init__()
        resets: tuple[Literal["after", "before"], ...] = ("after", "before")
        self.layers = nn.ModuleList(
            Gru(5, 7, reverse=reverse, reset=reset) for reverse, reset in product((False, True), resets)
        )

    def forward(self, x_BSC: Tensor, lengths_B: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor for layer in self.layers for tensor in layer(x_BSC, lengths_B))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # inside the exporter
def test_recurrent_layers_of_every_kind() -> None:
    """At sizes other than those traced, in a padded batch."""
    torch.manual_seed(1)
    layers = EveryKind()
    for parameter in layers.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    sizes = ({0: torch.export.Dim("sentence"), 1: torch.export.Dim("source")}, {0: torch.export.Dim("sentence")})
    program = torch.export.export(layers, (torch.randn(3, 4, 5), torch.tensor([4, 1, 3])), dynamic_shapes=sizes)
    made = torch.onnx.export(program, opset_version=OPSET, verbose=False, custom_translation_table=dict(TRANSLATIONS))
    assert made is not None
    session = ort.InferenceSession(made.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    given = (torch.randn(2, 9, 5), torch.tensor([9, 6]))
    names = [value.name for value in session.get_inputs()]
    found = session.run(None, dict(zip(names, (one.numpy() for one in given), strict=True)))
    with torch.no_grad():
        for one, other in zip(found, layers(*given), strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other, atol=1e-6, rtol=1e-5)
