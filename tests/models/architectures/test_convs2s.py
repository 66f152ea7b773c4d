"""ConvS2S against its NumPy restatement: every equation by itself, then the whole model, its start and its size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tandem.models.architectures import convs2s
from tandem.models.architectures.convs2s import (
    ConvS2S,
    ConvS2SConfig,
    ConvS2SMemory,
    attend_to_source,
)
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.registry import build_model
from tandem.training.optimisation.loss import smoothed_cross_entropy
from tests.models.architectures.comparison import assert_same, shaken, vectors, weights_of
from tests.models.architectures.examples import SOURCE_TYPES, TARGET_TYPES, batch, gradients, sentences, targets
from tests.reference import convs2s as reference
from tests.reference.layers import Weights

CONFIG = ConvS2SConfig(
    (SOURCE_TYPES,),
    TARGET_TYPES,
    embedding=8,
    output_embedding=6,
    encoder_widths=(8, 12),
    encoder_kernels=(3, 5),
    decoder_widths=(10, 10),
    decoder_kernels=(3, 3),
    max_positions=32,
    dropout=0.0,
)


def build(**changes: Any) -> ConvS2S:
    model = build_model("convs2s", replace(CONFIG, **changes))
    assert isinstance(model, ConvS2S)
    return model


@pytest.fixture
def read() -> tuple[Tensor, Tensor]:
    """Encoder output z and input embeddings e of two sentences of five positions."""
    z_BSF, e_BSF = torch.randn(2, 2, 5, CONFIG.embedding, dtype=torch.float64)
    return z_BSF, e_BSF


def memory_of(z_BSF: Tensor, e_BSF: Tensor, lengths: tuple[int, ...]) -> ConvS2SMemory:
    shown_BS = torch.arange(z_BSF.size(1)) < torch.tensor(lengths)[:, None]
    scale_B1 = torch.tensor(lengths, dtype=torch.float64)[:, None].sqrt()
    mask_BS = torch.zeros(shown_BS.shape, dtype=torch.float64).masked_fill(~shown_BS, -math.inf)
    return ConvS2SMemory(keys=z_BSF, values=(z_BSF + e_BSF) * math.sqrt(0.5), mask=mask_BS, scale=scale_B1)


def test_eq_1_and_2_attention(read: tuple[Tensor, Tensor]) -> None:
    query = shaken(Linear(10, CONFIG.embedding))
    h_RTD = torch.randn(2, 4, 10, dtype=torch.float64)
    g_RTF = torch.randn(2, 4, CONFIG.embedding, dtype=torch.float64)
    found, weights_RTS = attend_to_source((query(h_RTD) + g_RTF) * math.sqrt(0.5), memory_of(*read, (5, 3)))
    wrapped = Weights({f"query.{name}": tensor.numpy() for name, tensor in query.state_dict().items()})
    for row, length in enumerate((5, 3)):
        z, e = (vectors(part[row, :length]) for part in read)
        pairs = zip(vectors(h_RTD[row]), vectors(g_RTF[row]), strict=True)
        expected = [reference.eq1(wrapped, h, g, z) for h, g in pairs]
        assert_same(weights_RTS[row, :, :length], expected)
        assert_same(found[row], [reference.eq2(a, z, e) for a in expected])


@torch.no_grad()
def test_memory_is_keys_and_values_and_the_root_of_each_sentences_own_length() -> None:
    """Computed once: z, (z + e) sqrt(1/2), and S sqrt(1/S) of the sentence, not of the padded batch."""
    model = build().double()
    made = sentences(model, (5, 2, 7))
    memory = model.encode(batch(made, extra=3))
    torch.testing.assert_close(memory.scale, torch.tensor([[5.0], [2.0], [7.0]], dtype=torch.float64).sqrt())
    assert {name for name, _, _ in memory.tensors()} == {"keys", "values", "mask", "scale"}
    restated = reference.ConvS2SReference(weights_of(model), CONFIG.encoder_kernels, CONFIG.decoder_kernels)
    for b, (source,) in enumerate(made):
        e = restated.embed("source", source.tolist())
        z = restated.encode(e)
        assert_same(memory.keys[b, : len(source)], z)
        pairs = zip(z, e, strict=True)
        assert_same(memory.values[b, : len(source)], [(z_j + e_j) * np.sqrt(0.5) for z_j, e_j in pairs])


def test_attention_names_say_the_layers_that_attend() -> None:
    for attention, layers in (((), (0, 1)), ((True, False), (0,)), ((False, True), (1,))):
        model = build(attention=attention)
        names = list(model.attention(targets(1, 3), model.encode(batch(sentences(model, (4,))))))
        assert names == [f"decoder.{layer}.source0" for layer in layers]
        assert [layer.query is not None for layer in model.decoder] == [layer in layers for layer in range(2)]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, {"source_positions.table", "target_positions.table"}),
        ({"source_positions": False}, {"target_positions.table"}),
        ({"target_positions": False}, {"source_positions.table"}),
        ({"source_positions": False, "target_positions": False}, set()),
    ],
)
def test_positions_are_switched_by_side(changes: dict[str, bool], names: set[str]) -> None:
    model = build(**changes)
    assert {name for name in model.state_dict() if "positions" in name} == names
    assert sum(model.parameter_parts().values()) == sum(build().parameter_parts().values()) - (2 - len(names)) * 32 * 8


def test_windows_hold_what_each_convolution_still_needs() -> None:
    """k - 1 inputs of the width that enters; nothing for a convolution of width 1."""
    model = build(decoder_widths=(10, 7, 9), decoder_kernels=(5, 1, 3))
    state = model.init_state(model.encode(batch(sentences(model, (4, 3)))), 2)
    assert [tuple(window.shape) for window in state.windows] == [(4, 4, 10), (4, 2, 7)]


@pytest.mark.parametrize(("attention", "layers"), [((), 2), ((True, False), 1)])
def test_gradients_of_the_encoder_are_divided_by_twice_the_attentions(
    attention: tuple[bool, ...], layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 3.4, with and without: into z they are scaled, into e of the values they are not."""
    model = build(attention=attention).double()
    scaled = gradients(model)
    monkeypatch.setattr(convs2s, "scale_gradient", lambda x, factor: x)
    whole = gradients(model)
    monkeypatch.setattr(convs2s, "scale_gradient", lambda x, factor: x.detach())
    direct = gradients(model)  # through e of the values alone
    assert not [name for name in direct if name.startswith("encoder")]
    for name, gradient in whole.items():
        past = direct.get(name, torch.zeros_like(gradient))
        through = gradient - past
        expected = past + through / (2 * layers)
        torch.testing.assert_close(scaled[name], expected, atol=1e-10, rtol=1e-10)
        if name.startswith(("encoder", "source")):
            assert through.abs().max() > 1e-6
    assert direct["source_embedding"].abs().max() > 1e-6


def test_init_follows_section_3_5_and_appendix_a() -> None:
    """Embeddings N(0, 0.1); before a gate N(0, sqrt(4 p / n)), else N(0, sqrt(p / n)); biases 0; gains change nothing.

    p is what dropout retains of the layer's own input: of convolutions, of the maps that read embeddings, of the
    output layer; 1 elsewhere.
    """
    torch.manual_seed(0)
    model = build(
        source_vocabularies=(2000,),
        target_vocabulary=1500,
        embedding=64,
        output_embedding=48,
        encoder_widths=(80, 112),
        decoder_widths=(96, 72),
        max_positions=1000,
        dropout=0.2,
    )
    expected = {
        "encoder_input": 0.8 / 64,
        "encoder.0.convolution.linear": 4 * 0.8 / (3 * 80),
        "encoder.1.convolution.linear": 4 * 0.8 / (5 * 80),
        "encoder.1.residual": 1 / 80,
        "encoder_output": 1 / 112,
        "decoder_input": 0.8 / 64,
        "decoder.0.convolution.linear": 4 * 0.8 / (3 * 96),
        "decoder.0.query": 1 / 96,
        "decoder.0.context": 1 / 64,
        "decoder.1.convolution.linear": 4 * 0.8 / (3 * 96),
        "decoder.1.residual": 1 / 96,
        "decoder.1.query": 1 / 72,
        "decoder.1.context": 1 / 64,
        "decoder_output": 1 / 72,
        "output": 0.8 / 48,
    }
    layers = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    assert layers.keys() == expected.keys()
    for name, layer in layers.items():
        assert float(layer.weight.detach().std()) == pytest.approx(math.sqrt(expected[name]), rel=0.05), name
        assert abs(float(layer.weight.detach().mean())) < 0.05 * math.sqrt(expected[name]), name
        assert layer.bias is not None
        assert not layer.bias.any()
        torch.testing.assert_close(layer.effective_weight(), layer.weight)
    tables = [name for name, _ in model.named_parameters() if "embedding" in name or "positions" in name]
    assert len(tables) == 4
    for name in tables:
        assert float(model.get_parameter(name).detach().std()) == pytest.approx(0.1, rel=0.02)


def test_everything_but_the_tables_is_weight_normalised_until_folded() -> None:
    model = shaken(build())
    gains = {name.removesuffix(".gain") for name in model.state_dict() if name.endswith(".gain")}
    assert gains == {name for name, module in model.named_modules() if isinstance(module, Linear)}
    assert "output" in gains
    source, target_BT = batch(sentences(model, (5, 3))), targets(2, 4)
    expected_BTV = model.score(target_BT, model.encode(source))
    model.prepare_for_inference()
    assert not [name for name in model.state_dict() if name.endswith(".gain")]
    torch.testing.assert_close(model.score(target_BT, model.encode(source)), expected_BTV, atol=1e-12, rtol=0)
    weight_VD, _ = model.output_parameters()
    assert weight_VD is model.output.weight
    assert not [name for name in build(weight_norm=False).state_dict() if name.endswith(".gain")]


def test_the_loss_reaches_gain_and_direction_of_the_output_layer() -> None:
    """The loss computes the output layer itself, from the effective weight: both of its factors learn from it."""
    model = build().double()
    memory, target_BT = model.encode(batch(sentences(model, (5, 3)))), targets(2, 4)
    gold_BT = target_BT.roll(-1, dims=1)
    weight, bias = model.output_parameters()
    loss, _ = smoothed_cross_entropy(model.decode(target_BT, memory), weight, bias, gold_BT, smoothing=0.1, padding=-1)
    loss.backward()
    output = model.output
    assert output.gain is not None
    found = [parameter.grad.clone() for parameter in (output.weight, output.gain) if parameter.grad is not None]
    assert len(found) == 2
    assert all(gradient.abs().max() > 1e-6 for gradient in found)
    # As automatic differentiation of the plain formula has it.
    model.zero_grad()
    logits_BTV = model.score(target_BT, model.encode(batch(sentences(model, (5, 3)))))
    log_BTV = torch.log_softmax(logits_BTV, dim=-1)
    nll = -log_BTV.gather(2, gold_BT[:, :, None])
    (0.9 * nll.sum() - 0.1 * log_BTV.mean(-1).sum()).backward()
    for gradient, parameter in zip(found, (output.weight, output.gain), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-9, rtol=0)
    # A direction has no gradient along itself.
    assert float((found[0] * output.weight.detach()).sum(1).abs().max()) < 1e-9


WIDE = ConvS2SConfig(
    (8848,),
    6632,
    encoder_widths=(512,) * 4,
    encoder_kernels=(3,) * 4,
    decoder_widths=(512,) * 4,
    decoder_kernels=(3,) * 4,
)
DEEP = replace(
    WIDE,
    encoder_widths=(256,) * 8,
    encoder_kernels=(3,) * 8,
    decoder_widths=(256,) * 8,
    decoder_kernels=(3,) * 8,
)


@pytest.mark.parametrize(
    ("config", "total", "folded"),
    [(WIDE, 20_379_600, 20_360_168), (DEEP, 13_827_024, 13_807_080)],
    ids=["wide", "deep"],
)
def test_parameters_at_the_dictionaries_of_iwslt14(config: ConvS2SConfig, total: int, folded: int) -> None:
    """20.37M and 13.82M in table 1 of DPN-S2S, gains counted: one per output channel of every map."""
    d, f, layers = config.encoder_widths[0], config.embedding, len(config.encoder_widths)
    convolutions = layers * (3 * d * 2 * d + 2 * d)
    maps = f * d + d + d * f + f
    plain = {
        "embeddings": (8848 + 6632) * f,
        "positions": 2 * 1024 * f,
        "encoder": maps + convolutions,
        "decoder": maps + convolutions + layers * maps,
        "output": 6632 * f + 6632,
    }
    gains = {"encoder": d + f + layers * 2 * d, "decoder": (1 + layers) * (d + f) + layers * 2 * d, "output": 6632}
    with torch.device("meta"):
        model = build_model("convs2s", config)
    assert dict(model.parameter_parts()) == {name: count + gains.get(name, 0) for name, count in plain.items()}
    assert sum(model.parameter_parts().values()) == total
    model.prepare_for_inference()
    assert dict(model.parameter_parts()) == plain
    assert sum(plain.values()) == folded


def test_the_sizes_of_wmt14_change_width_and_kernel() -> None:
    """English-German: ten layers of 512 and three of 768 with kernels of width 3, two of 2,048 that are linear maps."""
    widths, kernels = (512,) * 10 + (768,) * 3 + (2048,) * 2, (3,) * 13 + (1,) * 2
    config = replace(
        CONFIG,
        embedding=512,
        output_embedding=512,
        encoder_widths=widths,
        encoder_kernels=kernels,
        decoder_widths=widths,
        decoder_kernels=kernels,
    )
    with torch.device("meta"):
        model = build_model("convs2s", config)
    assert isinstance(model, ConvS2S)
    for side in (model.encoder, model.decoder):
        assert [layer.residual is not None for layer in side] == [index in (10, 13) for index in range(15)]


def test_without_source_positions_a_source_has_no_bound() -> None:
    model = build(max_positions=4, source_positions=False)
    assert model.encode(batch(sentences(model, (5,)))).keys.size(1) == 5
