"""`tandem config`: the settings in effect, and where each comes from.

TOML is written with ``tomli-w``, the counterpart of the standard library's reader, and not by hand: strings need more
escapes than one thinks. (``tomlkit`` would keep comments of a file that is edited, which nobody does here.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w
from rich.table import Table

from deploy.bench.report import console
from service.configuration import Configuration, is_secret, read_configuration, shown


def config_command(paths: Sequence[Path] | None, flags: Mapping[str, Any], *, as_json: bool, as_toml: bool) -> None:
    """Print the settings.

    Args:
        paths: bundles, as they are given to `tandem serve`.
        flags: further settings by name.
        as_json: print names, values and origins as JSON.
        as_toml: print a file that ``--config`` takes; secrets stand in it as comments.

    Raises:
        ConfigError: a setting is unknown or out of bounds.
    """
    configuration = read_configuration(with_bundles(paths, flags))
    if as_json:
        print(json.dumps(dict(_entries(configuration)), indent=1))
    elif as_toml:
        print("\n".join(_toml_lines(configuration)))
    else:
        console().print(_table(configuration))


def with_bundles(paths: Sequence[Path] | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that were given as flags, and bundles as arguments."""
    return {**flags, **({"bundles": tuple(paths)} if paths else {})}


def _entries(configuration: Configuration) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, origin in configuration.origins.items():
        yield name, {"value": shown(name, getattr(configuration.settings, name)), "origin": origin}


def _table(configuration: Configuration) -> Table:
    table = Table("setting", "value", "origin", title="Settings, secrets masked", title_justify="left")
    for name, entry in _entries(configuration):
        style = "dim" if entry["origin"] == "default" else "bold"
        table.add_row(name, _as_words(entry["value"]), entry["origin"], style=style)
    return table


def _as_words(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml_lines(configuration: Configuration) -> Iterator[str]:
    """The settings that are not defaults by origin, so that the file says what was decided; defaults as comments."""
    for name, entry in _entries(configuration):
        value, origin = entry["value"], entry["origin"]
        if name == "config":
            continue
        if is_secret(name):
            if value is not None:
                yield f"# {name}: a secret, from {origin}; give it as a variable"
        elif value is not None:
            line = tomli_w.dumps({name: _portable(name, value)}).strip()
            yield line if origin != "default" else "# " + line.replace("\n", "\n# ")


def _portable(name: str, value: Any) -> Any:
    """Paths as they are found from anywhere."""
    if name == "bundles":
        return [os.path.abspath(path) for path in value]
    return os.path.abspath(value) if name == "data" else value
