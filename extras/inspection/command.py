"""`tandem config`: the settings in effect and where each comes from.

TOML is written with ``tomli-w``, the counterpart of the standard library's reader, and not by hand: strings need more
escapes than one thinks. (``tomlkit`` would keep comments of a file that is edited, which nobody does here.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import tomli_w
import typer
from pydantic import SecretStr
from rich.table import Table

from tandem.models.command import AsJson, console
from tandem.service.commands import ServedBundles, served_configuration
from tandem.service.configuration import Configuration, Flags, is_secret, with_settings

MASK = "***"


@with_settings
def config(
    flags: Flags,
    paths: ServedBundles = None,
    as_json: AsJson = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a file for --config.")] = False,
) -> None:
    """Show the settings as `tandem serve` would have them with the same flags, and where each comes from.

    Secrets are masked. The exit status is 2 where a setting is unknown or out of bounds.

    Example: tandem config --json
    """
    configuration = served_configuration(flags, paths)
    if as_json:
        print(json.dumps(dict(_entries(configuration)), indent=1))
    elif as_toml:
        print("\n".join(_toml_lines(configuration)))
    else:
        console().print(_table(configuration))


def shown(name: str, value: Any) -> Any:
    """A setting's value as it may be printed: in plain types, secrets and passwords in addresses masked."""
    if isinstance(value, SecretStr) or (value is not None and is_secret(name)):
        return MASK
    if isinstance(value, tuple | list):
        return [shown(name, item) for item in value]
    if isinstance(value, str) and "://" in value:
        return _without_password(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    if parts.password is None:
        return address
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:{MASK}@{host}"))


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
