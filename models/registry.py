"""Every architecture by name. A new one is one more line here and one more file beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.config import load_dataclass
from models.convs2s import ConvS2S, ConvS2SConfig
from models.dpn import Dpn, DpnConfig
from models.ensemble import Ensemble, EnsembleConfig
from models.errors import ConfigError
from models.layerwise import Layerwise, LayerwiseConfig
from models.memd import Memd, MemdConfig
from models.multisource import MultiSource, MultiSourceConfig
from models.protocol import ModelConfig, Seq2SeqModel
from models.transformer import Transformer, TransformerConfig

ARCHITECTURES: dict[str, tuple[type[Any], type[Seq2SeqModel[Any, Any]]]] = {
    "dpn": (DpnConfig, Dpn),
    "layerwise": (LayerwiseConfig, Layerwise),
    "transformer": (TransformerConfig, Transformer),
    "multisource": (MultiSourceConfig, MultiSource),
    "memd": (MemdConfig, Memd),
    "convs2s": (ConvS2SConfig, ConvS2S),
    "ensemble": (EnsembleConfig, Ensemble),
}


def load_config(architecture: str, mapping: Mapping[str, Any], where: str) -> ModelConfig:
    """The configuration of a registered architecture from a plain mapping.

    Raises:
        ConfigError: unknown architecture or key, or a value out of bounds; the message lists the known ones.
    """
    if architecture not in ARCHITECTURES:
        raise ConfigError(f"{where}: unknown architecture {architecture!r}: known are {', '.join(ARCHITECTURES)}")
    config: ModelConfig = load_dataclass(ARCHITECTURES[architecture][0], mapping, where)
    return config


def build_model(architecture: str, config: ModelConfig) -> Seq2SeqModel[Any, Any]:
    """A freshly initialised model (from torch's global generator)."""
    return ARCHITECTURES[architecture][1](config)
