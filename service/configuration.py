"""Settings from flags, environment, file and defaults, in this order, with the origin of each and clear refusals.

Commands whose options are the service's settings have one flag for each, made from ``Settings``. (pydantic-settings can
make a command line too, with argparse: secrets would be flags there, and help and refusals would read differently from
those of all other commands.)
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import ValidationError

from tandem.models.errors import ConfigError
from tandem.service.api.wording import bound_of
from tandem.service.settings import PREFIX, RETIRED, Settings, file_content

# What Kubernetes puts into the environment of every container where a service is called "tandem".
_FOREIGN = re.compile(r"TANDEM_(SERVICE_.*|PORT_\d+_.*)")

Flags = Mapping[str, Any]
DataFolder = Annotated[Path | None, typer.Option("--data", help="The server's data folder. [TANDEM_DATA]")]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings, and where each comes from: ``--port``, ``TANDEM_PORT``, the file's path, or ``default``.

    Attributes:
        retired: names of settings that were given in a variable or the file, and are none any more.
    """

    settings: Settings
    origins: Mapping[str, str]
    retired: tuple[str, ...] = ()


def read_configuration(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Configuration:
    """The effective settings.

    Args:
        flags: settings by name that were given on the command line; they go before all others.
        environment: the process's, for unknown names and origins; None = ``os.environ``.

    Raises:
        ConfigError: a setting is unknown or out of bounds, or the file cannot be read; every fault is named.
    """
    variables = {name.upper(): value for name, value in (os.environ if environment is None else environment).items()}
    path = flags.get("config") or variables.get(f"{PREFIX}CONFIG")
    content = file_content(path) if path else {}
    origins = _origins(flags, variables, content, str(path))
    faults = [*_unknown_variables(variables), *_unknown_keys(content, str(path))]
    try:
        settings = Settings(**flags)
    except ValidationError as error:
        faults += [fault for item in error.errors(include_url=False) if (fault := _describe(item, origins))]
    if faults:
        raise ConfigError("; ".join(faults))
    retired = sorted(name for name in RETIRED if variables.get(variable_of(name)) or name in content)
    return Configuration(settings, origins, tuple(retired))


def is_secret(name: str) -> bool:
    """Whether a setting must never be printed, or stand on a command line, which every user of a machine can read."""
    return "SecretStr" in str(Settings.model_fields[name].annotation)


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    return PREFIX + name.upper()


def _origins(
    flags: Mapping[str, Any], variables: Mapping[str, str], content: Mapping[str, Any], path: str
) -> dict[str, str]:
    origins = {}
    for name in Settings.model_fields:
        if name in flags:
            origins[name] = flag_of(name)
        elif variables.get(variable_of(name)):  # an empty one is none
            origins[name] = variable_of(name)
        else:
            origins[name] = path if name in content else "default"
    return origins


def _unknown_variables(variables: Mapping[str, str]) -> list[str]:
    known = {variable_of(name) for name in Settings.model_fields}
    passed = known | {variable_of(name) for name in RETIRED}
    unknown = (name for name in variables if name.startswith(PREFIX) and not _FOREIGN.fullmatch(name))
    return [f"there is no setting {name}{_near(name, known)}" for name in sorted(unknown) if name not in passed]


def _unknown_keys(content: Mapping[str, Any], path: str) -> list[str]:
    known = set(Settings.model_fields) - {"config"}
    unknown = (key for key in content if key not in known | RETIRED)
    return [f"{path}: there is no setting {key!r}{_near(key, known)}" for key in unknown]


def _near(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=3)
    return f": did you mean {' or '.join(near)}?" if near else "; docs/configuration.md lists all of them"


def _describe(item: Any, origins: Mapping[str, str]) -> str:
    """One finding of pydantic, without the value of a secret; nothing for what is named as unknown already."""
    name = str(item["loc"][0]) if item["loc"] else ""
    if item["type"] == "extra_forbidden":
        return "" if name not in origins or name == "config" else f"there is no setting {name}"
    message = bound_of(item)
    origin = origins.get(name, "default")
    where = f"{name} ({origin})" if origin != "default" else name
    value = "" if not name or is_secret(name) else f", but is {item['input']!r}"
    return f"{where}: {message[:1].lower()}{message[1:]}{value}"


def data_flag(data: Path | None) -> Flags:
    """The settings that ``--data`` gives to commands which take no other one."""
    return {"data": data} if data else {}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting but secrets, which must not stand on a command line.

    The command's first parameter, ``flags``, gets the settings that were given, by name. Typer builds options from a
    function's signature, so what is returned has one that names them all.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(field))
        for name, field in Settings.model_fields.items()
        if not is_secret(name)
    ]

    def called(**given: Any) -> None:
        arguments = {parameter.name: given.pop(parameter.name) for parameter in own}
        command({name: value for name, value in given.items() if value is not None}, **arguments)

    functools.update_wrapper(called, command)
    parameters = [*own, *settings]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _annotation(field: Any) -> Any:
    """Bounds are the settings' own business: a flag takes a string, so that there is one place that refuses."""
    if field.annotation is bool:
        return Annotated[bool | None, typer.Option(help=_help(field), show_default=False)]
    return Annotated[str | None, typer.Option(help=_help(field), metavar=_metavar(field.annotation))]


def _help(field: Any) -> str:
    default = plain_default(field.default)
    return f"{field.description} [{default}]" if default else field.description


def plain_default(value: Any) -> str:
    """A default as it is written in a variable or flag; empty for none."""
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _metavar(annotation: Any) -> str:
    if typing.get_origin(annotation) is Literal:
        return "|".join(typing.get_args(annotation))
    kinds = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
    named = [kinds[part] for part in (annotation, *typing.get_args(annotation)) if part in kinds]
    return named[0] if named else "TEXT"
