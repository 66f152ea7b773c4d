"""Every architecture by name. A new one is a line more in :mod:`models.architectures.single`, and a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem.models.architectures.ensemble import ARCHITECTURE, Ensemble, EnsembleConfig
from tandem.models.architectures.protocol import ModelConfig, Seq2SeqModel
from tandem.models.architectures.single import FORMER, SINGLE, Architectures, load_from, stored_keys

ARCHITECTURES: Architectures = {**SINGLE, ARCHITECTURE: (EnsembleConfig, Ensemble)}


def load_config(architecture: str, mapping: Mapping[str, Any], where: str) -> ModelConfig:
    """The configuration of a registered architecture from a plain mapping.

    Raises:
        ConfigError: unknown architecture or key, or a value out of bounds; the message lists the known ones.
    """
    return load_from(ARCHITECTURES, architecture, mapping, where)


def build_model(architecture: str, config: ModelConfig) -> Seq2SeqModel[Any, Any]:
    """A freshly initialised model (from torch's global generator)."""
    return ARCHITECTURES[architecture][1](config)


__all__ = ["ARCHITECTURES", "FORMER", "build_model", "load_config", "stored_keys"]
