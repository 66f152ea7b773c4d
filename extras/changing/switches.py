"""Which version each alias was switched to while serving, kept over a restart in ``models.json`` of the data folder.

A file of a few lines and no database: one process writes it, seldom, and who repairs a service at night can read it, or
delete it to start with what the settings say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError
from tandem.models.folders import complete_file

_FILE = "models.json"


@dataclass(frozen=True, slots=True)
class Switch:
    """What an alias was switched to.

    Attributes:
        current: the version that it stands for.
        previous: what it stood for before; empty where there was nothing.
        configured: what the settings named at that time. Where they name another one by now, they win.
    """

    current: str
    previous: str = ""
    configured: str = ""


class Switches:
    """The switches by alias. Not thread-safe."""

    def __init__(self, folder: Path | None) -> None:
        """Read what was kept.

        Args:
            folder: the data folder; None = nothing is kept.

        Raises:
            ConfigError: the file is damaged.
        """
        self._path = None if folder is None else folder / _FILE
        self._switches: dict[str, Switch] = self._read()

    def current(self, alias: str, configured: str) -> str:
        """What an alias was switched to; empty where it never was, or the settings have changed since."""
        switch = self._switches.get(alias)
        return switch.current if switch is not None and switch.configured == configured else ""

    def previous(self, alias: str) -> str:
        """What an alias stood for before it was switched; empty where that is unknown."""
        switch = self._switches.get(alias)
        return switch.previous if switch is not None else ""

    def note(self, alias: str, switch: Switch) -> None:
        """Keep a switch. Blocks. Raises OSError where it cannot be written."""
        self._switches[alias] = switch
        self._write()

    def forget(self, alias: str) -> None:
        """An alias stands for nothing any more. Blocks. Raises OSError where that cannot be written."""
        if self._switches.pop(alias, None) is not None:
            self._write()

    def _read(self) -> dict[str, Switch]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(alias): load_dataclass(Switch, switch, str(alias)) for alias, switch in kept.items()}
        except (OSError, ValueError, AttributeError, ConfigError) as error:
            message = f"{self._path} cannot be read ({error}); delete it to serve the versions that the settings name"
            raise ConfigError(message) from error

    def _write(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = self._path.with_name(f".{_FILE}.part")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump({alias: to_mapping(switch) for alias, switch in self._switches.items()}, file, indent=1)
        complete_file(unfinished, self._path)


def kept_switches(folder: Path | None) -> Callable[[str, str], str]:
    """What aliases were switched to, as :meth:`Switches.current`. Raises ConfigError where the record is damaged."""
    return Switches(folder).current
