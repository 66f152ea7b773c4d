"""`tandem serve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.commands.configuration import with_bundles
from service.configuration import read_configuration
from service.server import run
from service.settings import Settings


def serve_command(paths: Sequence[Path] | None, flags: Mapping[str, Any]) -> None:
    """Serve until stopped; settings that were not given come from environment, file or their defaults.

    Raises:
        ConfigError: a setting is unknown or out of bounds, every fault is named; or it cannot listen there.
        BundleError: a bundle cannot be served.
        AddressTaken: another program listens there.
    """
    run(read_settings(with_bundles(paths, flags)))


def read_settings(given: Mapping[str, Any]) -> Settings:
    """The settings given, and the others from the environment, the file or their defaults.

    Raises:
        ConfigError: a setting is unknown or out of bounds; every fault is named.
    """
    return read_configuration(given).settings
