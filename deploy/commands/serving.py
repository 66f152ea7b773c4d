"""`tandem serve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.errors import ConfigError
from service.server import run
from service.settings import Settings


def serve_command(bundles: Sequence[Path] | None, options: Mapping[str, Any]) -> None:
    """Serve until stopped; options that were not given come from the environment or their defaults.

    Raises:
        ConfigError: a setting is out of bounds; every fault is named.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if bundles:
        given["bundles"] = tuple(bundles)
    run(read_settings(given))


def read_settings(given: Mapping[str, Any]) -> Settings:
    """The settings given, and the others from the environment or their defaults.

    Raises:
        ConfigError: a setting is out of bounds; every fault is named.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}, but is {e['input']!r}" for e in error.errors())
        raise ConfigError("; ".join(faults)) from None
