"""The strict loader of configurations and the registry: every fault is named, all at once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from tandem.models.architectures.registry import ARCHITECTURES, load_config
from tandem.models.config import bounded, load_dataclass, to_mapping
from tandem.models.errors import ConfigError
from tests.models.architectures.examples import CASES, VARIANTS, Case


@dataclass(frozen=True, slots=True)
class Inner:
    rate: float = bounded(0.5, at_least=0.0, at_most=1.0)
    kind: Literal["a", "b"] = "a"

    def __post_init__(self) -> None:
        if self.kind == "b" and self.rate == 0:
            raise ConfigError("kind b needs a rate")


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    sizes: tuple[int, ...] = bounded((1,), at_least=1)
    pair: tuple[int, str] = (1, "x")
    limit: int | None = None
    flag: bool = False
    inner: Inner = Inner()
    several: tuple[Inner, ...] = ()
    free: dict[str, Any] = field(default_factory=dict)


def load(**mapping: Any) -> Outer:
    return load_dataclass(Outer, {"name": "n"} | mapping, "x.toml")


def test_loads_nested_tables() -> None:
    loaded = load(
        sizes=[2, 3], pair=[4, "y"], limit=5, flag=True, inner={"rate": 1, "kind": "b"}, several=[{}], free={"k": [1]}
    )
    assert loaded == Outer("n", (2, 3), (4, "y"), 5, True, Inner(1.0, "b"), (Inner(),), {"k": [1]})
    assert isinstance(loaded.inner.rate, float)


def test_mapping_and_back() -> None:
    loaded = load(limit=None, several=[{"rate": 0.25}], free={"k": {"l": 1}})
    assert load_dataclass(Outer, json.loads(json.dumps(to_mapping(loaded))), "again") == loaded


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"nme": "n"}, "x.toml has no key 'nme': did you mean 'name'? known keys are flag, free, inner, limit, name, "),
        ({"zzzz": 1}, "x.toml has no key 'zzzz': known keys are flag, free"),
        ({"inner": {"rat": 1}}, "x.toml inner has no key 'rat': did you mean 'rate'? known keys are kind, rate"),
        ({"several": [{}, {"no": 1}]}, "x.toml several[1] has no key 'no'"),
        ({"name": 3}, "x.toml name must be of type str, but is 3"),
        ({"flag": 1}, "x.toml flag must be of type bool, but is 1"),
        ({"limit": True}, "x.toml limit must be of type int, but is True"),
        ({"limit": 1.5}, "x.toml limit must be of type int, but is 1.5"),
        ({"sizes": 3}, "x.toml sizes must be a list, but is 3"),
        ({"sizes": ["a"]}, "x.toml sizes[0] must be of type int, but is 'a'"),
        ({"sizes": [1, 0]}, "x.toml sizes must be at least 1, but is 0"),
        ({"pair": [1]}, "x.toml pair must have 2 items, but has 1"),
        ({"inner": 3}, "x.toml inner must be a table, but is 3"),
        ({"free": 3}, "x.toml free must be a table, but is 3"),
        ({"inner": {"rate": 1.5}}, "x.toml inner rate must be at most 1.0, but is 1.5"),
        ({"inner": {"rate": -1}}, "x.toml inner rate must be at least 0.0, but is -1.0"),
        ({"inner": {"rate": math.nan}}, "x.toml inner rate must be a finite number, but is nan"),
        ({"inner": {"rate": "1"}}, "x.toml inner rate must be of type float, but is '1'"),
        ({"inner": {"rate": True}}, "x.toml inner rate must be of type float, but is True"),
        ({"inner": {"kind": "c"}}, "x.toml inner kind must be one of 'a', 'b', but is 'c'"),
        ({"inner": {"kind": [1]}}, "x.toml inner kind must be one of 'a', 'b', but is [1]"),
        ({"inner": {"kind": "b", "rate": 0}}, "x.toml inner: kind b needs a rate"),
    ],
)
def test_each_fault_is_named(mapping: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(**mapping)
    assert str(raised.value).startswith(message)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^x lacks the key 'name'$"):
        load_dataclass(Outer, {}, "x")


def test_all_faults_come_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        load(flag=1, sizes=[0], inner={"rate": 2.0}, nonsense=0)
    assert len(str(raised.value).split("; ")) == 4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_architectures_configuration_survives_a_bundle(case: Case) -> None:
    """A manifest keeps it as JSON."""
    config = case.build().config
    assert load_config(case.architecture, json.loads(json.dumps(to_mapping(config))), "manifest") == config


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_refuses_unknown_keys_and_values_out_of_bounds(architecture: str) -> None:
    unknown = r"x has no key 'target_vocabulray': did you mean 'target_vocabulary'\? known keys are .*source_vocab"
    with pytest.raises(ConfigError, match=unknown):
        load_config(architecture, {"target_vocabulray": 4}, "x")
    with pytest.raises(ConfigError, match=r"x target_vocabulary must be at least 0, but is -1"):
        load_config(architecture, {"target_vocabulary": -1}, "x")
    if ARCHITECTURES[architecture][1].trainable:
        with pytest.raises(ConfigError, match=r"x dropout must be at most 0\.9, but is 1\.0"):
            load_config(architecture, {"dropout": 1.0}, "x")


JOINT = "needs one joint vocabulary"
PROJECTED = 'need strategy = "flat" or "hierarchical"'
CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("dpn", {"heads": 3}, "8 is not a multiple of 3"),
    ("dpn", {"kernel": 4}, "kernel must be odd, but is 4"),
    ("dpn", {"source_vocabularies": (9, 9)}, "one source, but 2 are given"),
    ("dpn", {"tied": "all", "source_vocabularies": (8,)}, f'tied = "all" {JOINT}'),
    ("dpn", {"equal_embeddings": True, "source_vocabularies": (8,)}, f"equal_embeddings {JOINT}"),
    ("transformer", {"heads": 3}, "8 is not a multiple of 3"),
    ("transformer", {"source_vocabularies": (9, 9)}, "one source, but 2 are given"),
    ("transformer", {"tied": "all", "source_vocabularies": (8,)}, JOINT),
    ("convs2s", {"source_vocabularies": (9, 9)}, "one source, but 2 are given"),
    ("convs2s", {"encoder_widths": ()}, "encoder_widths must name at least one layer"),
    ("convs2s", {"encoder_kernels": (3,)}, "encoder_kernels must have one entry per layer, but has 1 for 2 widths"),
    (
        "convs2s",
        {"decoder_kernels": (3, 3, 3)},
        "decoder_kernels must have one entry per layer, but has 3 for 2 widths",
    ),
    ("convs2s", {"tied": "decoder", "output_embedding": 6}, "output_embedding = embedding, but they are 6 and 8"),
    ("convs2s", {"tied": "all", "output_embedding": 8, "source_vocabularies": (8,)}, JOINT),
    ("convs2s", {"attention": (True,)}, "one entry per decoder layer, but has 1 for 2"),
    ("convs2s", {"attention": (False, False)}, "true in at least one decoder layer"),
    ("layerwise", {"heads": 3}, "8 is not a multiple of 3"),
    ("layerwise", {"source_vocabularies": (9, 9)}, "one source, but 2 are given"),
    ("layerwise", {"source_vocabularies": (8,)}, f"{JOINT} for source and target, but the sizes are 8 and 11"),
    ("layerwise", {"layers": 3, "share_weights": False}, "layers must be even, half a side, but it is 3"),
    ("memd", {"source_vocabularies": (9, 9)}, "ME-MD has one source, but 2 are given"),
    ("memd", {"encoders": ()}, "encoders must name at least one"),
    ("memd", {"decoders": ()}, "decoders must name at least one"),
    ("memd", {"encoders": ("gru2", "gru0", "lstm2")}, r"but \['gru0', 'lstm2'\] are not"),
    ("multisource", {"features": (0, 5)}, "one width per source, 3, but has 2"),
    (
        "multisource",
        {"source_vocabularies": (13, 7, 12)},
        "source 1 has features, so its vocabulary must be 0, but is 7",
    ),
    ("multisource", {"source_vocabularies": (), "features": ()}, "at least one source"),
    ("multisource", {"strategy": "concatenation", "sentinel": True}, PROJECTED),
    ("multisource", {"strategy": "concatenation", "share_projections": True}, PROJECTED),
]


@pytest.mark.parametrize(("architecture", "change", "message"), CONTRADICTIONS)
def test_contradictory_configurations_are_refused(architecture: str, change: dict[str, Any], message: str) -> None:
    keys = VARIANTS[architecture].get("flat") or next(iter(VARIANTS[architecture].values()))
    config: Any = load_config(architecture, keys, "x")
    with pytest.raises(ConfigError, match=message):
        replace(config, **change)


def test_an_unknown_architecture_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=f"x: unknown architecture 'dnp': known are {', '.join(ARCHITECTURES)}"):
        load_config("dnp", {}, "x")
