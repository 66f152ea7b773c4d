"""The Transformer against its NumPy restatement, and its sizes as the papers' baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tandem.models.architectures.registry import build_model
from tandem.models.architectures.transformer import ContextGate, Transformer, TransformerConfig
from tests.models.architectures.examples import Case, batch, parts_of, sentences, targets

CONFIG = TransformerConfig((9,), 9, width=8, hidden=12, heads=2)


BASELINE = TransformerConfig(
    source_vocabularies=(8848,),
    target_vocabulary=6632,
    norm="pre",
    positions="learned",
    tied="none",
    hidden_bias=False,
    output_bias=True,
)
WIDE = replace(BASELINE, width=512, hidden=2048, encoder_layers=2, decoder_layers=2)
DEEP = replace(BASELINE, width=256, hidden=1024, encoder_layers=4, decoder_layers=4)


@pytest.mark.parametrize(("config", "total"), [(WIDE, 27_068_904), (DEEP, 13_542_888)], ids=["wide", "deep"])
def test_parameters_at_the_dictionaries_of_iwslt14(config: TransformerConfig, total: int) -> None:
    """27.06M and 13.54M in table 1 of DPN-S2S."""
    d, f, layers = config.width, config.hidden, config.encoder_layers
    parts = parts_of("transformer", config)
    assert parts == {
        "embeddings": (8848 + 6632) * d,
        "positions": 2 * 1024 * d,
        "encoder": layers * (4 * d * d + 2 * d * f + 2 * 2 * d) + 2 * d,
        "decoder": layers * (8 * d * d + 2 * d * f + 3 * 2 * d) + 2 * d,
        "output": 6632 * d + 6632,
    }
    assert sum(parts.values()) == total


def test_small_transformer_of_layer_wise_coordination() -> None:
    """19.07M with one shared table at V = 31,350, no table of positions and biases in the feed-forward maps alone."""
    config = TransformerConfig(
        (31_350,), 31_350, norm="post", tied="all", encoder_layers=6, decoder_layers=6, positions="sinusoidal"
    )
    total = sum(parts_of("transformer", config).values())
    d, f = 256, 1024
    feed_forward, norm = 2 * d * f + f + d, 2 * d
    assert total == 31_350 * d + 6 * (4 * d * d + feed_forward + 2 * norm) + 6 * (8 * d * d + feed_forward + 3 * norm)
    assert round(total / 1e6, 2) == 19.07


SMALL = TransformerConfig((31_350,), 31_350, tied="all", encoder_layers=6, decoder_layers=6)


def test_the_context_gates_that_layer_wise_coordination_is_compared_with() -> None:
    """19.08M in section 5.4: a gate for each of four heads in six layers, from both contexts of 256."""
    gated, plain = (sum(parts_of("transformer", replace(SMALL, context_gate=gate)).values()) for gate in (True, False))
    assert gated - plain == 6 * (2 * 256 * 4 + 4)
    assert (round(plain / 1e6, 2), round(gated / 1e6, 2)) == (19.07, 19.08)


def test_an_open_context_gate_takes_the_source_and_a_closed_one_the_target() -> None:
    """2 ((1 - g) t + g s), a gate for each of the two heads."""
    gate = ContextGate(8, 2)
    assert gate.linear.bias is not None
    gate.linear.bias.data.copy_(torch.tensor([50.0, -50.0]))
    target, source = torch.randn(2, 3, 5, 8)
    torch.testing.assert_close(gate(target, source), 2 * torch.cat([source[..., :4], target[..., 4:]], dim=-1))


def test_context_gates_start_as_the_plain_sum() -> None:
    models = []
    for gate in (False, True):
        torch.manual_seed(1)
        models.append(build_model("transformer", replace(CONFIG, context_gate=gate)).double().eval())
    plain, gated = models
    gated.load_state_dict(plain.state_dict(), strict=False)
    target_BT, sources = targets(2, 4) % 9, batch(sentences(plain, (5, 3)))
    with torch.no_grad():
        found, expected = (model.score(target_BT, model.encode(sources)) for model in (gated, plain))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_shared_tables_are_one_tensor() -> None:
    for tied, tables in (("none", 3), ("decoder", 2), ("all", 1)):
        model = Case("transformer", f"pre-learned-{tied}").build()
        assert isinstance(model, Transformer)
        assert len({id(t) for t in (model.source_embedding, model.target_embedding, model.output_weight)}) == tables
