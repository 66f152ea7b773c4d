"""DPN-S2S against its NumPy restatement: every equation by itself, then the whole model, then its size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tandem.models.architectures.dpn import (
    DoubleAttention,
    Dpn,
    DpnConfig,
    DpnMemory,
    Gate,
)
from tandem.models.architectures.layers.attention import additive_mask, attend, split_heads
from tandem.models.architectures.registry import build_model
from tests.models.architectures.comparison import assert_same, shaken, vectors, weights_of
from tests.models.architectures.examples import Case, batch, gradients, parts_of, sentences, targets
from tests.reference import dpn as reference
from tests.reference.layers import Vectors, Weights, attention

pytestmark = pytest.mark.usefixtures("no_gradients")
CONFIG = DpnConfig((9,), 9, width=8, hidden=12, heads=2, cnn_layers=2, san_layers=2, kernel=3, dropout=0.0)


@pytest.fixture
def encoded() -> DpnMemory:
    """Two encoder paths of one sentence with five positions."""
    paths = torch.randn(2, 1, 5, CONFIG.width, dtype=torch.float64)
    mask = torch.zeros(1, 5, dtype=torch.float64)
    scale = torch.full((1, 1), 5.0, dtype=torch.float64).sqrt()
    return DpnMemory(paths=tuple(paths), keys=(), values=(), mask=mask, scale=scale)


def named(memory: DpnMemory) -> dict[str, Vectors]:
    return dict(zip(("cnn", "san"), (vectors(path[0]) for path in memory.paths), strict=True))


def test_eq_4_attention() -> None:
    query_BQD, keys_BSD, values_BSD = (torch.randn(2, n, 8, dtype=torch.float64) for n in (3, 5, 5))
    mask_BS = additive_mask(torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    contexts, weights = attend(query_BQD, keys_BSD, values_BSD, mask_BS, 0.7)
    for b, length in enumerate((5, 3)):
        keys, values = (vectors(x[b, :length]) for x in (keys_BSD, values_BSD))
        expected = [attention(q, keys, values, 0.7) for q in query_BQD[b].numpy()]
        assert_same(contexts[b], [context for context, _ in expected])
        assert_same(weights[b, :, :length], [weight for _, weight in expected])


@pytest.mark.parametrize("own", ["cnn", "san"])
def test_eq_8_one_query_attends_to_both_paths(own: str, encoded: DpnMemory) -> None:
    double = shaken(DoubleAttention(CONFIG.width, 2, own=("cnn", "san").index(own)))
    query_RTD = torch.randn(2, 3, CONFIG.width, dtype=torch.float64)
    mixed, (weights_c, weights_a) = double(query_RTD, encoded, 0.5)
    for row in range(2):
        expected = [reference.eq8(q, named(encoded), 0.5) for q in query_RTD[row].numpy()]
        assert_same(weights_c[row], [weights["cnn"] for _, weights in expected])
        assert_same(weights_a[row], [weights["san"] for _, weights in expected])
        wrapped = Weights({f"attention.{name}": tensor.numpy() for name, tensor in double.state_dict().items()})
        assert_same(mixed[row], [reference.fuse(wrapped, own, contexts) for contexts, _ in expected])


def test_eq_8_with_one_path_has_no_gate(encoded: DpnMemory) -> None:
    double = DoubleAttention(CONFIG.width, 1, own=0)
    assert not list(double.parameters())
    one = replace(encoded, paths=encoded.paths[1:])
    query_RTD = torch.randn(1, 3, CONFIG.width, dtype=torch.float64)
    mixed, weights = double(query_RTD, one, 1.0)
    assert len(weights) == 1
    keys = vectors(encoded.paths[1][0])
    assert_same(mixed[0], [attention(q, keys, keys)[0] for q in query_RTD[0].numpy()])


@pytest.mark.parametrize("heads", [1, 2])
def test_eq_6_projections(heads: int, encoded: DpnMemory) -> None:
    """Each encoder path has key and value maps of its own; the logits' scale is the heads'."""
    double = shaken(DoubleAttention(CONFIG.width, 2, own=0, heads=heads, weight_norm=True))
    keys, values = double.project(encoded.paths)
    query_RTD = torch.randn(1, 3, CONFIG.width, dtype=torch.float64)
    projected = replace(encoded, paths=(), keys=tuple(keys), values=tuple(values))
    mixed, (weights_c, weights_a) = double(query_RTD, projected, 7.0)
    expected = [reference.eq6(weights_of(double), q, named(encoded), heads) for q in query_RTD[0].numpy()]
    assert_same(weights_c[0], [weights["cnn"] for _, weights in expected])
    assert_same(weights_a[0], [weights["san"] for _, weights in expected])
    gate = weights_of(double).under("gate")
    assert_same(mixed[0], [reference.eq9(gate, contexts["cnn"], contexts["san"]) for contexts, _ in expected])


def test_projections_are_made_once_a_sentence() -> None:
    """Per decoder layer and encoder path its keys and values, CNN layers first, and nothing else of the encoders."""
    model = Case("dpn", "projections").build()
    assert isinstance(model, Dpn)
    sources = batch(sentences(model, (5, 3)))
    memory = model.encode(sources)
    assert memory.paths == ()
    assert len(memory.keys) == len(memory.values) == 2 * (2 + 2)
    plain = Dpn(replace(model.config, projections=False)).double().eval()
    plain.load_state_dict(model.state_dict(), strict=False)
    outputs = plain.encode(sources).paths
    for layer, module in enumerate([*model.cnn_decoder, *model.san_decoder]):
        for path, h in enumerate(outputs):
            found = memory.keys[2 * layer + path], memory.values[2 * layer + path]
            made = module.attention.keys[path](h), module.attention.values[path](h)
            expected = tuple(split_heads(one, model.config.heads) for one in made)
            torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("equation", [reference.eq9, reference.eq10])
def test_eq_9_and_10_gates(equation: Any) -> None:
    gate = shaken(Gate(CONFIG.width))
    x_TD, y_TD = torch.randn(2, 4, CONFIG.width, dtype=torch.float64)
    pairs = zip(vectors(x_TD), vectors(y_TD), strict=True)
    assert_same(gate(x_TD, y_TD), [equation(weights_of(gate), x, y) for x, y in pairs])


def test_attention_names_say_decoder_path_layer_and_encoder_path() -> None:
    model = Case("dpn", "both-both").build()
    weights = model.attention(targets(2, 3), model.encode(batch(sentences(model, (4, 4)))))
    assert list(weights) == [
        f"{path}.{n}.{source}" for path in ("cnn", "san") for n in (0, 1) for source in ("cnn", "san")
    ]


@pytest.mark.parametrize("variant", ["both-both", "both-cnn", "cnn-san", "projections"])
def test_gradients_of_the_cnn_encoder_are_scaled_where_the_configuration_says_so(variant: str) -> None:
    """Those of the SAN encoder, and of what reads the encoders, are whole; by default all are, as in the paper."""
    model = Case("dpn", variant).build()
    assert isinstance(model, Dpn)
    assert model.config.gradient_scale == 1
    whole = gradients(model)
    model.config = replace(model.config, gradient_scale=0.125)
    scaled = gradients(model)
    for name, gradient in whole.items():
        if name.startswith("cnn_encoder"):
            assert gradient.abs().max() > 1e-6
            gradient = gradient * 0.125
        if not name.startswith("source"):
            torch.testing.assert_close(scaled[name], gradient, atol=1e-10, rtol=1e-10)


def test_init_follows_convs2s() -> None:
    """Embeddings N(0, 0.1), what feeds a gated linear unit N(0, sqrt(4 p / n)), biases 0, gains that change nothing."""
    torch.manual_seed(0)
    model = build_model(
        "dpn", replace(CONFIG, source_vocabularies=(4000,), target_vocabulary=4000, width=64, dropout=0.2)
    )
    assert isinstance(model, Dpn)
    for table in (model.source_embedding, model.target_embedding, model.source_positions.table):
        assert float(table.detach().std()) == pytest.approx(0.1, rel=0.02)
    for layer in (*model.cnn_encoder, *model.cnn_decoder):
        linear = layer.convolution.linear
        assert float(linear.weight.detach().std()) == pytest.approx((4 * 0.8 / (3 * 64)) ** 0.5, rel=0.02)
        torch.testing.assert_close(linear.effective_weight(), linear.weight)
        assert not linear.bias.any()


def test_equal_embeddings_start_equal_and_are_two() -> None:
    model = build_model("dpn", replace(CONFIG, equal_embeddings=True))
    assert isinstance(model, Dpn)
    assert model.source_embedding.equal(model.target_embedding)
    assert model.source_embedding is not model.target_embedding
    other = build_model("dpn", CONFIG)
    assert isinstance(other, Dpn)
    assert not other.source_embedding.equal(other.target_embedding)


def test_tied_tables_are_one_and_all_else_starts_as_it_does_untied() -> None:
    joint = replace(CONFIG, source_vocabularies=(CONFIG.target_vocabulary,))
    torch.manual_seed(3)
    tied = build_model("dpn", replace(joint, tied="all"))
    torch.manual_seed(3)
    untied = build_model("dpn", joint)
    assert isinstance(tied, Dpn)
    assert tied.source_embedding is tied.target_embedding
    assert tied.output_parameters()[0] is tied.source_embedding
    saved = untied.parameter_parts()["embeddings"] - tied.parameter_parts()["embeddings"]
    assert saved == CONFIG.target_vocabulary * CONFIG.width
    others = dict(untied.named_parameters())
    kept = {name: weight for name, weight in tied.named_parameters() if "embedding" not in name}
    assert len(kept) == len(others) - 2
    assert all(weight.equal(others[name]) for name, weight in kept.items())


PARTS = {
    "embeddings": (8848 + 6632) * 256,
    "positions": 2 * 1024 * 256,
    # k d 2d + 2d a convolution
    "cnn_encoder": 4 * (3 * 256 * 512 + 512),
    # 4 d^2 + 2 d f + 2 norms; a final norm
    "san_encoder": 2 * (4 * 256**2 + 2 * 256 * 1024 + 2 * 512) + 512,
    # convolution, W_q and W_o with bias, attention gate
    "cnn_decoder": 4 * (3 * 256 * 512 + 512 + 2 * (256**2 + 256) + 513),
    # 4 d^2 + W_q + W_o + 2 d f + 3 norms, attention gate; a final norm
    "san_decoder": 2 * (4 * 256**2 + 2 * 256**2 + 2 * 256 * 1024 + 3 * 512 + 513) + 512,
    # bias of the tied output layer, output gate
    "output": 6632 + 513,
}


@pytest.mark.parametrize(("weight_norm", "total"), [(False, 11_587_567), (True, 11_593_711)])
def test_parameters_at_the_dictionaries_of_iwslt14(weight_norm: bool, total: int) -> None:
    """11.57M in table 1; gains are two per gated output channel and one per mapped one."""
    config = DpnConfig((8848,), 6632, weight_norm=weight_norm)
    parts = parts_of("dpn", config)
    gains = {"cnn_encoder": 4 * 512, "cnn_decoder": 4 * (512 + 2 * 256)} if weight_norm else {}
    assert parts == {name: count + gains.get(name, 0) for name, count in PARTS.items()}
    assert sum(parts.values()) == total


@pytest.mark.parametrize(("weight_norm", "total"), [(False, 13_160_431), (True, 13_170_671)])
def test_parameters_with_projections(weight_norm: bool, total: int) -> None:
    """13.16M: the 12 maps of the 6 decoder layers, and 2 more maps for each encoder path in each of them."""
    parts = parts_of("dpn", DpnConfig((8848,), 6632, weight_norm=weight_norm, projections=True))
    base = parts_of("dpn", DpnConfig((8848,), 6632, weight_norm=weight_norm))
    more = {name: count - base[name] for name, count in parts.items() if count != base[name]}
    gains = 4 * 4 * 256 if weight_norm else 0
    assert more == {"cnn_decoder": 4 * 4 * 256**2 + gains, "san_decoder": 2 * 4 * 256**2}
    assert sum(parts.values()) == total
