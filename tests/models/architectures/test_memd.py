"""ME-MD against its NumPy restatement: every equation by itself, then the whole model, then its size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import additive_mask
from tandem.models.architectures.memd import (
    Attention,
    ConvolutionalEncoder,
    DecoderGate,
    EncoderGate,
    Memd,
    MemdConfig,
    MemdMemory,
    RecurrentDecoder,
    RecurrentEncoder,
)
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.registry import build_model
from tests.models.architectures.comparison import assert_same, shaken, vectors, weights_of
from tests.models.architectures.examples import Case, batch, parts_of, random_ids, sentences, targets
from tests.reference import layers as layers_reference
from tests.reference import memd as reference

pytestmark = pytest.mark.usefixtures("no_gradients")
D = 6
LENGTHS = (5, 2)
CONFIG = MemdConfig((9,), 9, width=8)


def padded() -> tuple[Tensor, Padded]:
    """Random vectors B x S x D, the source they belong to, and what lies in the padding is no zero."""
    return torch.randn(2, 5, D, dtype=torch.float64), Padded(torch.ones(2, 5), torch.tensor(LENGTHS))


def memory_of(decoder_keys: nn.Module, h_BSD: Tensor) -> MemdMemory:
    mask = additive_mask(torch.arange(5) < torch.tensor(LENGTHS)[:, None]).double()
    return MemdMemory(values=h_BSD, keys=(decoder_keys(h_BSD),), mask=mask)


def test_eq_4_attention() -> None:
    """Three rows of each sentence, from keys made once."""
    attention = shaken(Attention(D))
    h_BSD, _ = padded()
    s_RD = torch.randn(6, D, dtype=torch.float64)
    memory = memory_of(attention.source, h_BSD)
    c_RD, alpha_RS = attention(s_RD, memory.keys[0], memory)
    for row in range(6):
        length = LENGTHS[row // 3]
        hs = vectors(h_BSD[row // 3, :length])
        context, weights = layers_reference.additive_attention(weights_of(attention), s_RD[row].numpy(), hs)
        assert_same(c_RD[row], context)
        assert_same(alpha_RS[row, :length], weights)
        assert not alpha_RS[row, length:].any()


def test_eq_7_embedding_gate() -> None:
    gate = shaken(EncoderGate(D))
    e_TD, o_TD = torch.randn(2, 4, D, dtype=torch.float64)
    expected = [reference.eq7(weights_of(gate), e, o) for e, o in zip(vectors(e_TD), vectors(o_TD), strict=True)]
    assert_same(gate(e_TD, o_TD), expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_recurrent_encoder_alternates(depth: int) -> None:
    encoder = shaken(RecurrentEncoder(D, depth))
    e_BSD, source = padded()
    assert [layer.reverse for layer in encoder.layers] == [False, True, False][:depth]
    found = encoder(e_BSD, source)
    for b, length in enumerate(LENGTHS):
        assert_same(found[b, :length], reference.stacked(weights_of(encoder), vectors(e_BSD[b, :length])))


def test_eq_10_convolutional_encoder() -> None:
    encoder = shaken(ConvolutionalEncoder(D))
    e_BSD, source = padded()
    found = encoder(e_BSD, source)
    for b, length in enumerate(LENGTHS):
        assert_same(found[b, :length], reference.eq10(weights_of(encoder), vectors(e_BSD[b, :length])))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_eq_11_decoder(depth: int) -> None:
    """Whole targets at once, and one position after the other."""
    decoder = shaken(RecurrentDecoder(D, depth))
    h_BSD, _ = padded()
    memory = memory_of(decoder.attention.source, h_BSD)
    y_RTD = torch.randn(2, 4, D, dtype=torch.float64)
    states = tuple(torch.zeros(2, D, dtype=torch.float64) for _ in range(depth))
    q_RTD, after, alpha_RTS = decoder.advance(y_RTD, states, memory.keys[0], memory)
    for row, length in enumerate(LENGTHS):
        expected, weights = reference.eq11(weights_of(decoder), vectors(y_RTD[row]), vectors(h_BSD[row, :length]))
        assert_same(q_RTD[row], expected)
        assert_same(alpha_RTS[row, :, :length], weights)
    for position in range(4):
        q_R1D, states, _ = decoder.advance(y_RTD[:, position, None], states, memory.keys[0], memory)
        torch.testing.assert_close(q_R1D[:, 0], q_RTD[:, position], atol=1e-12, rtol=0)
    assert len(states) == depth
    for one, other in zip(states, after, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


def test_eq_12_decoder_gate() -> None:
    gate = shaken(DecoderGate(D))
    s_RD, c_RD = torch.randn(2, 4, D, dtype=torch.float64)
    expected = [reference.eq12(weights_of(gate), s, c) for s, c in zip(vectors(s_RD), vectors(c_RD), strict=True)]
    assert_same(gate(s_RD, c_RD), expected)


def test_alignment_is_the_mean_of_the_decoders() -> None:
    model = Case("memd", "3-encoders-3-decoders").build()
    memory, target_BT = model.encode(batch(sentences(model, LENGTHS))), targets(2, 4)
    attentions = model.attention(target_BT, memory)
    assert list(attentions) == [f"decoder{index}.0.source0" for index in range(3)]
    (found_BTS,) = model.alignment(target_BT, memory)
    torch.testing.assert_close(found_BTS, sum(attentions.values()) / 3, atol=1e-12, rtol=0)
    torch.testing.assert_close(found_BTS.sum(-1), torch.ones(2, 4, dtype=torch.float64), atol=1e-12, rtol=0)


def test_one_encoder_and_one_decoder_need_no_gate_and_no_combination() -> None:
    model = Case("memd", "one-each").build()
    names = [name for name, _ in model.named_parameters()]
    assert not [name for name in names if "encoder_gates" in name or name.startswith(("encoder_out", "decoder_out"))]


def test_dropout_acts_before_the_softmax_alone() -> None:
    """Everything up to the output layer's input is the same in training; half of that input is dropped."""
    model = Case("memd", "3-encoders-3-decoders").build(dropout=0.5)
    sources, target_BT = batch(sentences(model, LENGTHS)), random_ids(9, 2, 50, seed=0)
    expected_BTD = model.decode(target_BT, model.encode(sources))
    model.train()
    found_BTD = model.decode(target_BT, model.encode(sources))
    kept_BTD = found_BTD != 0
    torch.testing.assert_close(found_BTD[kept_BTD], 2 * expected_BTD[kept_BTD], atol=1e-12, rtol=0)
    assert 0.4 < float(kept_BTD.double().mean()) < 0.6


def test_init_is_orthogonal_by_blocks() -> None:
    """Square matrices orthogonal, others N(0, 0.01), biases 0 (section 4.3)."""
    config = MemdConfig((4000,), 4000, width=16, encoders=("gru2", "cnn"), decoders=(1, 2))
    model = build_model("memd", config)
    assert isinstance(model, Memd)
    for table in (model.source_embedding, model.target_embedding, model.output_weight):
        assert float(table.detach().std()) == pytest.approx(0.01, rel=0.02)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "energy" in name:
            assert 0.002 < float(parameter.detach().std()) < 0.02
        elif name.endswith(".weight"):
            for rows in parameter.detach().split(16):
                for block in rows.split(16, dim=1):
                    torch.testing.assert_close(block @ block.mT, torch.eye(16), atol=1e-5, rtol=0, msg=name)


def gru(d: int) -> int:
    """Six maps and a bias per gate."""
    return 6 * d * d + 3 * d


def decoder(d: int, depth: int) -> int:
    """Its layers; W, U, v and b of the attention; six maps and three biases of the gate; W and b of the output."""
    return depth * gru(d) + (2 * d * d + 2 * d) + (6 * d * d + 3 * d) + (3 * d * d + d)


@pytest.mark.parametrize(
    ("encoders", "decoders", "total"),
    [
        ((2,), (1,), 53_719_856),
        ((2, 4), (1,), 62_641_456),
        ((2, 4, 6), (1,), 73_399_600),
        ((2, 4, 6), (1, 2, 3), 87_831_856),
    ],
    ids=["rnnsearch", "2e1d", "3e1d", "3e3d"],
)
def test_parameters_at_the_papers_vocabularies(
    encoders: tuple[int, ...], decoders: tuple[int, ...], total: int
) -> None:
    """53.7M, 62.6M, 73.4M and 87.8M in table 3, at 30K words a side."""
    d, size = 512, 30_000
    config = MemdConfig((size,), size, encoders=tuple(f"gru{depth}" for depth in encoders), decoders=decoders)
    parts = parts_of("memd", config)
    several, many = len(encoders) > 1, len(decoders) > 1
    assert parts == {
        "embeddings": 2 * size * d,
        "encoders": sum(encoders) * gru(d),
        "encoder_gates": len(encoders) * (4 * d * d + 2 * d) if several else 0,
        "encoder_output": len(encoders) * d * d + d if several else 0,
        "decoders": sum(decoder(d, depth) for depth in decoders),
        "decoder_output": len(decoders) * d * d + d if many else 0,
        "output": size * d + size,
    }
    assert sum(parts.values()) == total


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        ({"width": 1024}, 122.6),
        ({"width": 2048}, 306.0),
        ({"encoders": ("gru4",), "decoders": (2,)}, 58.4),
        ({"encoders": ("gru6",), "decoders": (3,)}, 63.2),
    ],
    ids=["1024", "2048", "4layers", "6layers"],
)
def test_wider_and_deeper_networks(change: dict[str, Any], printed: float) -> None:
    """The other rows of table 3, in millions."""
    parts = parts_of("memd", replace(MemdConfig((30_000,), 30_000), **change))
    assert round(sum(parts.values()) / 1e6, 1) == printed
