"""The architectures of one model by name, of which ensembles are made; :mod:`models.architectures.registry` has all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tandem.models.architectures.convs2s import ConvS2S, ConvS2SConfig
from tandem.models.architectures.dpn import Dpn, DpnConfig
from tandem.models.architectures.layerwise import Layerwise, LayerwiseConfig
from tandem.models.architectures.memd import Memd, MemdConfig
from tandem.models.architectures.multisource import MultiSource, MultiSourceConfig
from tandem.models.architectures.protocol import ModelConfig, Seq2SeqModel
from tandem.models.architectures.transformer import Transformer, TransformerConfig
from tandem.models.config import load_dataclass
from tandem.models.errors import ConfigError

Architectures: TypeAlias = Mapping[str, tuple[type[Any], type[Seq2SeqModel[Any, Any]]]]
"""Configuration and model by name."""

SINGLE: Architectures = {
    "dpn": (DpnConfig, Dpn),
    "layerwise": (LayerwiseConfig, Layerwise),
    "transformer": (TransformerConfig, Transformer),
    "multisource": (MultiSourceConfig, MultiSource),
    "memd": (MemdConfig, Memd),
    "convs2s": (ConvS2SConfig, ConvS2S),
}


@dataclass(frozen=True, slots=True)
class Former:
    """What a model was before its architecture had some of its keys.

    Attributes:
        keys: those that came later, with what every model did before.
        mark: how the name of a tensor ends that only models with these keys' defaults have.
    """

    keys: dict[str, Any]
    mark: str


FORMER = {
    "layerwise": Former({"norm": "post"}, "final_norm.weight"),
    "multisource": Former({"energy_bias": False}, "query.bias"),
}
"""By architecture. Bundles and checkpoints that were written then lack the keys, and their models are as they were."""


def stored_keys(architecture: str, keys: Mapping[str, Any], tensors: Collection[str] | None = None) -> dict[str, Any]:
    """A model's keys as a file has them, with what they meant when it was written.

    Args:
        architecture: a name of the registry.
        keys: as written, all of them or those that were not default.
        tensors: the names of the model's tensors, which tell a default of today from what was unknown; None where all
            keys were written.
    """
    former = FORMER.get(architecture)
    if former is None or (tensors is not None and any(name.endswith(former.mark) for name in tensors)):
        return dict(keys)
    return {**former.keys, **keys}


def load_from(known: Architectures, architecture: str, mapping: Mapping[str, Any], where: str) -> ModelConfig:
    """The configuration of one of some architectures from a plain mapping.

    Raises:
        ConfigError: unknown architecture or key, or a value out of bounds; the message lists the known ones.
    """
    if architecture not in known:
        raise ConfigError(f"{where}: unknown architecture {architecture!r}: known are {', '.join(known)}")
    config: ModelConfig = load_dataclass(known[architecture][0], mapping, where)
    return config
