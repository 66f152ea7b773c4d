"""The Transformer against its NumPy restatement, and its sizes as the papers' baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.transformer import Transformer, TransformerConfig
from tests.models.architectures import Case, parts_of

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


def test_shared_tables_are_one_tensor() -> None:
    for tied, tables in (("none", 3), ("decoder", 2), ("all", 1)):
        model = Case("transformer", f"pre-learned-{tied}").build()
        assert isinstance(model, Transformer)
        assert len({id(t) for t in (model.source_embedding, model.target_embedding, model.output_weight)}) == tables
