"""`tandem serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tandem.service.configuration import Configuration, Flags, read_configuration, with_settings

ServedBundles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="BUNDLE", help="Bundle folders, or folders of bundles; as --bundles."),
]


@with_settings
def serve(flags: Flags, paths: ServedBundles = None) -> None:
    """Serve bundles over HTTP. Flags go before TANDEM_* variables, these before the file of --config.

    docs/configuration.md has a table of all settings, and says what the exit status means.

    Example: tandem serve bundles --port 8000
    """
    from tandem.service.server import run  # which loads what answers requests: help needs none of it

    configuration = served_configuration(flags, paths)
    run(configuration.settings, configuration.retired)


def served_configuration(flags: Flags, paths: list[Path] | None) -> Configuration:
    """The settings that a command has of its flags and of bundles behind them. Raises ConfigError."""
    return read_configuration({**flags, **({"bundles": tuple(paths)} if paths else {})})
