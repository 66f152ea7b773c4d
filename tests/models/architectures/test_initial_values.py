"""What models start from, where it is neither a paper's own formula nor a layer's default."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from tandem.models.architectures.layers.attention import SelfAttention
from tandem.models.architectures.layers.recurrent import GruCell
from tandem.models.architectures.layerwise import Layerwise, LayerwiseConfig
from tandem.models.architectures.multisource import MultiSource, MultiSourceConfig, TextEncoder
from tandem.models.architectures.registry import build_model

pytestmark = pytest.mark.usefixtures("no_gradients")


def assert_deviation(weights: Tensor, deviation: float) -> None:
    """The root mean square, within five of its own standard deviations of normal numbers."""
    share = 5 / math.sqrt(2 * weights.numel())
    assert float(weights.square().mean().sqrt()) == pytest.approx(deviation, rel=share)


def test_query_key_and_value_are_three_maps() -> None:
    """Each with the deviation of a D x D map, sqrt(2 / (D + D)); as one D x 3 D map they would be sqrt(2) smaller."""
    layer = SelfAttention(64, 4, bias=False, dropout=0.0)
    for part in (*layer.query_key_value.weight.chunk(3), layer.output.weight):
        assert_deviation(part, math.sqrt(2 / 128))


def test_side_vectors_are_as_long_as_embeddings() -> None:
    """N(0, d^-0.5), and two different ones: equal, they would tell nothing."""
    model = build_model("layerwise", LayerwiseConfig((30,), 30, width=1024, layers=1))
    assert isinstance(model, Layerwise)
    assert model.source_side is not None
    assert model.target_side is not None
    for vectors in (model.embedding, model.source_side, model.target_side):
        assert_deviation(vectors, 1024**-0.5)
    assert_deviation(model.source_side - model.target_side, math.sqrt(2 / 1024))


@pytest.mark.parametrize("reset", ["after", "before"])
@pytest.mark.parametrize("decoder", ["gru", "cgru"])
def test_recurrent_maps_are_orthogonal(decoder: Literal["gru", "cgru"], reset: Literal["after", "before"]) -> None:
    """Of every gate, in both directions of every encoder and in each of the decoder's cells."""
    config = MultiSourceConfig((9, 9), 9, embedding=6, encoder_width=5, attention_width=7, decoder_width=8)
    model = build_model("multisource", replace(config, decoder=decoder, gru_reset=reset))
    assert isinstance(model, MultiSource)
    encoders = [one for one in model.encoders if isinstance(one, TextEncoder)]
    cells = [gru.cell for one in encoders for gru in (one.forwards, one.backwards)]
    cells += [cell for cell in (model.cell, model.second_cell) if isinstance(cell, GruCell)]
    assert len(cells) == 5 + (decoder == "cgru")
    for cell in cells:
        gates = torch.cat([linear.weight for linear in cell.recurrent_maps]).chunk(3)
        for gate in gates:
            torch.testing.assert_close(gate @ gate.mT, torch.eye(len(gate)), atol=1e-5, rtol=0)
