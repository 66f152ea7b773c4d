"""Layer-wise coordination against its NumPy restatement, its prefix, and its sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch

from tandem.models.architectures.layers.attention import KeyValueMemory, KeyValueState, merge_heads, split_heads
from tandem.models.architectures.layerwise import Layer, Layerwise, LayerwiseConfig, MixedAttention
from tandem.models.architectures.registry import build_model
from tandem.models.architectures.transformer import TransformerConfig
from tests.models.architectures.comparison import assert_same, shaken, weights_of
from tests.models.architectures.examples import BOS, VARIANTS, Case, batch, parts_of, sentences, targets
from tests.reference.layerwise import LayerwiseReference, eq3

pytestmark = pytest.mark.usefixtures("no_gradients")
CONFIG = LayerwiseConfig((9,), 9, width=8, hidden=12, heads=2, layers=2)
every_variant = pytest.mark.parametrize("case", [Case("layerwise", name) for name in VARIANTS["layerwise"]], ids=str)


@pytest.mark.parametrize("heads", [1, 2])
def test_eq_3_mixed_attention(heads: int) -> None:
    """Three target positions on five source positions and one another, head by head as matrices with the mask M."""
    mixed = shaken(MixedAttention(replace(CONFIG, heads=heads)))
    source_SD, target_TD = (torch.randn(n, 8, dtype=torch.float64) for n in (5, 3))
    query_XD, keys_XD, values_XD = mixed.query_key_value(torch.cat([source_SD, target_TD])).chunk(3, dim=-1)
    prefix_keys, prefix_values = (split_heads(one[None, :5], heads) for one in (keys_XD, values_XD))
    memory = KeyValueMemory((prefix_keys,), (prefix_values,), torch.zeros(1, 5, dtype=torch.float64))
    empty = (torch.zeros(1, heads, 0, 8 // heads, dtype=torch.float64),)
    state = KeyValueState(torch.zeros(1, dtype=torch.int64), torch.zeros(1, 0), empty, empty)
    found, keys, values, on_source, on_target = mixed.mix(target_TD[None], 0, state, memory)
    by_head = ([part.numpy() for part in x.chunk(heads, dim=-1)] for x in (query_XD[5:], keys_XD, values_XD))
    contexts = [eq3(q, k, v, 5) for q, k, v in zip(*by_head, strict=True)]
    assert_same(found[0], np.concatenate(contexts, axis=-1) @ mixed.output.weight.numpy().T)
    made = keys[0].flatten(1), values[0].flatten(1)
    torch.testing.assert_close(made, (keys_XD[5:], values_XD[5:]), atol=1e-12, rtol=0)
    torch.testing.assert_close(on_source.sum(-1) + on_target.sum(-1), torch.ones(1, heads, 3, dtype=torch.float64))


@every_variant
def test_the_memory_is_the_source_of_a_run_without_target(case: Case) -> None:
    """What the target is changes no source position: keys and values are those of the source alone."""
    model = case.build()
    ((source,),) = sentences(model, (5,))
    memory = model.encode(batch([(source,)]))
    runs: list[list[int]] = [[], [BOS, 5, 6]]
    for target in runs:
        restated = LayerwiseReference(weights_of(model), model.config)
        restated.run(source.tolist(), target)
        assert len(memory.keys) == len(restated.prefix)
        for layer, (keys, values) in enumerate(restated.prefix):
            assert_same(merge_heads(memory.keys[layer])[0], keys)
            assert_same(merge_heads(memory.values[layer])[0], values)


@pytest.mark.parametrize("variant", ["full", "no-mixed-attention"])
def test_alignment_is_the_source_share_made_whole(variant: str) -> None:
    model = Case("layerwise", variant).build()
    memory, target_RT = model.encode(batch(sentences(model, (5, 3)))), targets(2, 4)
    weights = model.attention(target_RT, memory)
    (alignment_RTS,) = model.alignment(target_RT, memory)
    share_RTS = (weights["mixed.0.source0"] + weights["mixed.1.source0"]) / 2
    total_RT1 = share_RTS.sum(-1, keepdim=True)
    torch.testing.assert_close(alignment_RTS * total_RT1, share_RTS, atol=1e-12, rtol=0)
    assert (variant == "full") == bool((total_RT1 < 0.999).all())


def test_one_stack_or_two() -> None:
    shared, apart = (build_model("layerwise", replace(CONFIG, layers=4, share_weights=s)) for s in (True, False))
    assert isinstance(shared, Layerwise)
    assert isinstance(apart, Layerwise)
    assert [len(shared.stack), len(shared.source_stack)] == [4, 0]
    assert [len(apart.stack), len(apart.source_stack)] == [2, 2]


@pytest.mark.parametrize(("share_weights", "depth"), [(True, 6), (False, 3)])
def test_deepnorm_starts_with_smaller_maps(share_weights: bool, depth: int) -> None:
    """beta = (8 N)^(-1/4) on values, output and feed-forward, not on queries and keys (Wang et al. 2022, figure 2)."""
    models = []
    for norm in ("post", "deepnorm"):
        torch.manual_seed(1)
        config = replace(CONFIG, layers=6, share_weights=share_weights, norm=norm)
        models.append(build_model("layerwise", config).state_dict())
    plain, scaled = models
    beta = (8 * depth) ** -0.25
    for name, weight in plain.items():
        *unscaled, last = weight.chunk(3) if name.endswith("query_key_value.weight") else (weight,)
        small = "attention" in name or name.endswith(("inner.weight", "outer.weight"))
        expected = torch.cat([*unscaled, last * beta if small else last])
        torch.testing.assert_close(scaled[name], expected, msg=name)


@pytest.mark.parametrize(("norm", "least", "most"), [("pre", 0.03, 1), ("deepnorm", 0.2, 1), ("post", 0, 0.02)])
def test_what_reaches_the_queries_of_ten_layers(
    norm: Literal["pre", "post", "deepnorm"], least: float, most: float
) -> None:
    """Gradients of the layer with the smallest, over those of the one with the largest.

    With norms after the residuals the states of the upper layers are all alike, so it does not matter where they look,
    and they are not taught to: such a stack becomes a language model.
    """
    config = LayerwiseConfig((12,), 12, width=64, hidden=256, heads=4, layers=10, norm=norm, dropout=0.0)
    torch.manual_seed(1)
    model = build_model("layerwise", config)
    assert isinstance(model, Layerwise)
    made, target_BT = sentences(model, (6, 4, 5, 6) * 4), targets(16, 6)
    with torch.enable_grad():
        logits_BTV = model.score(target_BT, model.encode(batch(made)))
        torch.nn.functional.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), target_BT[:, 1:].flatten()).backward()
    norms = []
    for layer in model.stack:
        assert isinstance(layer, Layer)
        gradient = layer.attention.query_key_value.weight.grad
        assert gradient is not None
        norms.append(float(gradient.chunk(3)[0].norm()))
    assert least < min(norms) / max(norms) < most


def layers_of(config: LayerwiseConfig, count: int) -> int:
    """Layers of four maps without bias, a feed-forward with biases and two norms."""
    d, f = config.width, config.hidden
    return count * (4 * d * d + 2 * d * f + f + d + 4 * d)


def final_norm(config: LayerwiseConfig) -> int:
    """That of the last target states, which pre-norm adds: in a stack no other norm comes after it."""
    return 2 * config.width if config.norm == "pre" else 0


SMALL = LayerwiseConfig((31_350,), 31_350)
POST = replace(SMALL, norm="post")  # as figure 1 has it
BASE = LayerwiseConfig((40_000,), 40_000, width=512, hidden=2048, heads=8)
# The paper prints a feed-forward width of 2,048, but with it the model is smaller than the one it is compared with.
BIG = replace(BASE, width=1024, hidden=4096, heads=16)


@pytest.mark.parametrize("norm", ["pre", "post", "deepnorm"])
@pytest.mark.parametrize(
    ("change", "total"),
    [
        ({}, 19_068_416),
        ({"share_weights": False}, 19_068_416),
        ({"mixed_attention": False}, 19_068_416),
        ({"side_embeddings": False}, 19_068_416 - 2 * 256),
        ({"positions": "none"}, 19_068_416),
    ],
    ids=str,
)
def test_parameters_of_table_3(norm: Literal["pre", "post", "deepnorm"], change: dict[str, Any], total: int) -> None:
    """All five rows print 19.07M: halving the layers of two stacks leaves their number as it was."""
    config = replace(SMALL, norm=norm, **change)
    total += final_norm(config)
    sides = 1 if config.share_weights else 2
    parts = parts_of("layerwise", config)
    assert parts == {
        "embeddings": 31_350 * 256,
        "sides": 2 * 256 * config.side_embeddings,
        "stack": layers_of(config, 14 // sides) + final_norm(config),
        "source_stack": layers_of(config, 14 - 14 // sides),
    }
    assert sum(parts.values()) == total
    assert round(total / 1e6, 2) == 19.07


@pytest.mark.parametrize("layers", [10, 14, 18, 22])
def test_depths_of_table_4(layers: int) -> None:
    expected = 19_068_416 + layers_of(POST, layers - 14)
    assert sum(parts_of("layerwise", replace(POST, layers=layers)).values()) == expected


@pytest.mark.parametrize(("config", "total", "transformer"), [(BASE, 64.59, 64.6), (BIG, 217.25, 217.3)])
def test_base_and_big_are_of_the_transformers_size(config: LayerwiseConfig, total: float, transformer: float) -> None:
    """At the 40K joint vocabulary of WMT14 English-German (section 4.1), 14 layers for the Transformer's 6 + 6."""
    d = config.width
    assert config.layers == 14
    assert d // config.heads == 64
    millions = sum(parts_of("layerwise", config).values()) / 1e6
    assert millions == pytest.approx((40_000 * d + 2 * d + layers_of(config, 14) + final_norm(config)) / 1e6)
    assert round(millions, 2) == total
    sizes = (config.width, config.hidden, config.heads, 6, 6)
    baseline = parts_of("transformer", TransformerConfig((40_000,), 40_000, *sizes, norm="post", tied="all"))
    assert millions == pytest.approx(sum(baseline.values()) / 1e6, rel=0.002)
    assert millions == pytest.approx(transformer, rel=0.002)
