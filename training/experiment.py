"""What a run does otherwise than its recipe: fields set on the command line, and prepared data that lies elsewhere.

``--set optimiser.learning_rate=5e-4`` sets any field of a recipe. It is checked as the file is: an unknown field is
refused with the ones that are known, a value by its type and bounds. ``experiment.json`` in a run's folder keeps what
was set, so that ``--resume`` and `tandem export` need not be told again.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import CheckpointError, ConfigError
from tandem.models.folders import write_text

FILE = "experiment.json"
_SEED = "training.seed"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a run does otherwise than its recipe.

    Attributes:
        settings: ``KEY=VALUE`` each, in order; of one key the last counts.
        data: the prepared folder that it shares with other runs; empty = the run's own.
    """

    settings: tuple[str, ...] = ()
    data: str = ""

    @classmethod
    def load(cls, run: Path) -> Experiment:
        """What :meth:`save` wrote into a run's folder; nothing, where it wrote nothing.

        Raises:
            CheckpointError: the file is damaged.
        """
        path = run / FILE
        try:
            return load_dataclass(cls, json.loads(path.read_text(encoding="utf-8")), str(path))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, ConfigError) as error:
            raise CheckpointError(f"{path}: not readable ({error}): it says what was set when the run began") from error

    def save(self, run: Path) -> None:
        """Keep it in a run's folder; a run that only follows its recipe has no such file."""
        path = run / FILE
        if self == Experiment():
            path.unlink(missing_ok=True)
        else:
            run.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(to_mapping(self), indent=1) + "\n")

    def then(self, later: Experiment) -> Experiment:
        """With what was asked for later on top of it."""
        return Experiment((*self.settings, *later.settings), later.data or self.data)

    def data_of(self, run: Path) -> Path:
        """The prepared folder of a run."""
        return Path(self.data) if self.data else run / "data"


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """The same as options of a command."""

    set_fields: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a field of the recipe: optimiser.learning_rate=5e-4."),
    ] = None
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="Set training.seed. [the recipe's]", show_default=False)
    ] = None
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", help="Prepared data, for many runs. [data in the run's]")
    ] = None

    def experiment(self) -> Experiment:
        """What they ask for."""
        seed = () if self.seed is None else (f"{_SEED}={self.seed}",)
        return Experiment((*(self.set_fields or ()), *seed), "" if self.data is None else str(self.data.resolve()))


def with_settings(mapping: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A recipe's parsed form with fields set, not yet checked.

    As with a recipe that has a base, ``published`` stays behind, and so does ``model`` where another architecture is
    set. A corpus is named by its number or its name: ``data.corpora.news.repeat=3``.

    Raises:
        ConfigError: a setting is no ``KEY=VALUE``, or what it is to be set in is no table.
    """
    changed = copy.deepcopy(dict(mapping))
    if settings:
        changed.pop("published", None)
    for setting in settings:
        key, value = parsed(setting)
        if key == "architecture" and value != changed.get("architecture"):
            changed.pop("model", None)
        _set(changed, key.split("."), value, setting)
    return changed


def parsed(setting: str) -> tuple[str, Any]:
    """Key and value of ``KEY=VALUE``; the value as TOML has it, or text where it is none.

    Raises:
        ConfigError: it is not of that form.
    """
    key, equals, text = (part.strip() for part in setting.partition("="))
    if not equals or not all(key.split(".")):
        raise ConfigError(f"--set must be KEY=VALUE, such as optimiser.learning_rate=5e-4, but is {setting!r}")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def _set(table: Any, keys: Sequence[str], value: Any, setting: str) -> None:
    for depth, key in enumerate(keys, start=1):
        if isinstance(table, list):
            place = _place(table, key, setting)
            if depth == len(keys):
                table[place] = value
            table = table[place]
        elif isinstance(table, dict):
            if depth == len(keys):
                table[key] = value
            table = table.setdefault(key, {})
        else:
            raise ConfigError(f"--set {setting}: {'.'.join(keys[: depth - 1])} is {table!r}, which has no fields")


def _place(items: Sequence[Any], key: str, setting: str) -> int:
    """Of an item in a list: by its number from 0, or by its name where it is a table."""
    names = [str(item.get("name")) if isinstance(item, dict) else str(number) for number, item in enumerate(items)]
    if key in names:
        return names.index(key)
    if key.isdecimal() and int(key) < len(items):
        return int(key)
    raise ConfigError(f"--set {setting}: {key!r} must be one of {', '.join(names)}, or a number below {len(items)}")
