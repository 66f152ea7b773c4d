"""Multi-source attention against its NumPy restatement, and what its strategies promise.

Shape suffixes: B sentences, R rows, S source positions, T target positions, E encoders, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from tandem.models.architectures.multisource import FeatureEncoder, MultiSource, MultiSourceConfig, TextEncoder
from tandem.models.architectures.protocol import Padded, feature_widths
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.errors import ConfigError
from tandem.models.search import DecodeBatch, SearchOptions, Sentence
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.comparison import assert_restated, shaken
from tests.models.architectures.examples import batch, parts_of, sentences, targets

pytestmark = pytest.mark.usefixtures("no_gradients")
CONFIG = MultiSourceConfig(
    (13, 0, 12), 11, (0, 5, 0), embedding=6, encoder_width=4, attention_width=7, decoder_width=8, strategy="flat"
)
SWITCHES = [
    {"strategy": strategy, "share_projections": share, "sentinel": sentinel}
    for strategy, share, sentinel in product(("flat", "hierarchical"), (False, True), (False, True))
]
STRATEGIES: list[dict[str, Any]] = [{"strategy": "concatenation"}, *SWITCHES]
SOURCES: dict[str, dict[str, Any]] = {
    "text-text": {"source_vocabularies": (13, 12), "features": ()},
    "text-matrix-text": {},
    "text": {"source_vocabularies": (13,), "features": ()},
}


def named(switches: dict[str, Any]) -> str:
    return "-".join(str(value if key == "strategy" else key) for key, value in switches.items() if value)


every_strategy = pytest.mark.parametrize("switches", STRATEGIES, ids=named)


def build(**changes: Any) -> MultiSource:
    """A model in float64, off its initial values."""
    model = shaken(build_model("multisource", replace(CONFIG, **changes)))
    assert isinstance(model, MultiSource)
    return model


@pytest.mark.parametrize("decoder", ["gru", "cgru"])
@pytest.mark.parametrize("sources", SOURCES.values(), ids=list(SOURCES))
@every_strategy
def test_the_whole_model(switches: dict[str, Any], sources: dict[str, Any], decoder: str) -> None:
    assert_restated("multisource", build(**switches, **sources, decoder=decoder))


@pytest.mark.parametrize("switches", [one for one in SWITCHES if one["strategy"] == "flat"], ids=named)
def test_flat_is_one_distribution_over_all_states(switches: dict[str, Any]) -> None:
    """Of sources of different lengths, and of the sentinel; the alignment is what each source has of its share."""
    model = build(**switches)
    memory, target_RT = model.encode(batch(sentences(model, (5, 1, 3)))), targets(6, 4)
    weights = model.attention(target_RT, memory)
    names = [f"decoder.0.source{index}" for index in range(3)] + ["decoder.0.sentinel"] * switches["sentinel"]
    assert list(weights) == names
    one_RT = torch.ones(6, 4, dtype=torch.float64)
    torch.testing.assert_close(torch.cat(list(weights.values()), dim=-1).sum(-1), one_RT)
    assert all((weights[name].sum(-1) < 0.99).all() for name in names)
    for name, alignment_RTS in zip(names, model.alignment(target_RT, memory), strict=False):
        share_RT1 = weights[name].sum(-1, keepdim=True)
        torch.testing.assert_close(alignment_RTS * share_RT1, weights[name])


@pytest.mark.parametrize("switches", [one for one in SWITCHES if one["strategy"] != "flat"], ids=named)
def test_hierarchical_is_a_distribution_over_encoders(switches: dict[str, Any]) -> None:
    model = build(**switches)
    memory, target_RT = model.encode(batch(sentences(model, (5, 1, 3)))), targets(6, 4)
    weights = model.attention(target_RT, memory)
    assert list(weights) == [*(f"decoder.0.source{index}" for index in range(3)), "decoder.0.encoders"]
    assert weights["decoder.0.encoders"].shape == (6, 4, 3 + switches["sentinel"])
    for weight_RTX in weights.values():
        torch.testing.assert_close(weight_RTX.sum(-1), torch.ones(6, 4, dtype=torch.float64))


@pytest.mark.parametrize(("strategy", "entry"), [("flat", "sentinel"), ("hierarchical", "encoders")])
@pytest.mark.parametrize("place", range(4))
def test_what_an_encoder_is_offset_by_is_its_share(strategy: str, entry: str, place: int) -> None:
    """With log 3 more on its energies its weights triple beside the others', sentinel included (last)."""
    model = build(strategy=strategy, sentinel=True)
    offsets = model.combination.offsets
    assert isinstance(offsets, torch.Tensor)
    memory, target_RT = model.encode(batch(sentences(model, (5, 3)))), targets(2, 1)

    def shares() -> torch.Tensor:
        weights = model.attention(target_RT, memory)
        if entry == "encoders":
            return weights["decoder.0.encoders"]
        return torch.cat([weight.sum(-1, keepdim=True) for weight in weights.values()], dim=-1)

    before_RTE = shares()
    offsets[place] += math.log(3)
    expected_RTE = before_RTE.clone()
    expected_RTE[..., place] *= 3
    torch.testing.assert_close(shares(), expected_RTE / expected_RTE.sum(-1, keepdim=True))


@every_strategy
def test_padding_of_one_source_changes_nothing_of_the_others(switches: dict[str, Any]) -> None:
    model = build(**switches)
    sources, target_RT = batch(sentences(model, (5, 2))), targets(2, 4)
    expected = model.attention(target_RT, model.encode(sources))
    for index, source in enumerate(sources):
        filler = torch.full_like(source.values[:, :2], 3)
        padded = Padded(torch.cat([source.values, filler], dim=1), source.lengths)
        found = model.attention(target_RT, model.encode((*sources[:index], padded, *sources[index + 1 :])))
        for name, weight_RTX in expected.items():
            torch.testing.assert_close(found[name][..., : weight_RTX.size(2)], weight_RTX, atol=1e-14, rtol=0)


def test_features_may_be_half_precision_numbers() -> None:
    model = build()
    made = sentences(model, (3,))
    half = [tuple(x.half() if x.is_floating_point() else x for x in one) for one in made]
    exact = [tuple(x.float() if x.is_floating_point() else x for x in one) for one in half]
    target_RT = targets(1, 4)
    found, expected = (model.score(target_RT, model.encode(batch(one))) for one in (half, exact))
    torch.testing.assert_close(found, expected, atol=0, rtol=0)


def test_search_refuses_matrices_of_another_width() -> None:
    model = build().float()
    (made,) = sentences(model, (3,))
    text, matrix, other = (source.numpy() for source in made)
    running = DecodeBatch(TorchGraphs(model), beam_size=1)
    options = SearchOptions(beam_size=1)
    with pytest.raises(ValueError, match=r"source1 of 'a' must have the shape \('length', 5\), but has \(4, 3\)"):
        running.join([Sentence("a", (text, matrix[:, :3], other), options)])
    with pytest.raises(ValueError, match=r"source0 of 'b' must have the shape \('length',\), but has \(4, 5\)"):
        running.join([Sentence("b", (matrix, matrix, other), options)])
    running.join([Sentence("c", (text, matrix, other), options)])


def test_each_source_has_the_encoder_of_its_kind() -> None:
    model = build()
    kinds = [TextEncoder, FeatureEncoder, TextEncoder]
    assert [type(encoder) for encoder in model.encoders] == kinds
    assert feature_widths(model.config) == (0, 5, 0)
    assert feature_widths(replace(CONFIG, source_vocabularies=(13, 12), features=())) == (0, 0)


@pytest.mark.parametrize(("share", "fewer"), [(False, 0), (True, 1)])
def test_sharing_projections_saves_one_of_each_pair(share: bool, fewer: int) -> None:
    """A = 7 outputs of each map from states of 8, 5 and 8 and from the sentinel's 8, every map with a bias; W with one
    too, v, and a number for each of the four."""
    sizes = dict(build(sentinel=True, share_projections=share).parameter_parts())
    maps = sum(7 * width + 7 for width in (8, 5, 8, 8))
    energy, gate = 7 * 8 + 7 + 7 + 4, 8 * 6 + 8 + 8 * 8
    assert sizes["attention"] == (2 - fewer) * maps + energy + gate


def test_parameters_of_the_paper() -> None:
    """Post-editing at the paper's widths, two texts, flat attention without sharing or sentinel; 10,000 types."""
    config = MultiSourceConfig((10_000, 10_000), 10_000, strategy="flat")
    parts = parts_of("multisource", config)
    gru = 3 * (300 * 300 + 300 * 300 + 300)
    assert parts == {
        "embeddings": 3 * 10_000 * 300,
        "encoders": 2 * 2 * gru,
        "attention": 2 * 2 * (600 * 500 + 500) + (300 * 500 + 500) + 500 + 2,
        "decoder": (1200 * 300 + 300) + (800 * 300 + 300) + gru,
        "output": (800 * 300 + 300) + 10_000 * 300 + 10_000,
    }


def test_a_recipe_may_say_nothing_of_the_vocabularies() -> None:
    config = load_config("multisource", {"features": [0, 512]}, "recipe [model]")
    assert config.source_vocabularies == (0, 0)
    assert feature_widths(config) == (0, 512)
    with pytest.raises(ConfigError, match="features must be at least 0, but is -3"):
        load_config("multisource", {"features": [0, -3]}, "recipe [model]")
