"""Commands whose options are the service's settings: one flag for each, made from ``Settings``.

pydantic-settings can make a command line too, with argparse: secrets would be flags there, and help and refusals would
read differently from those of all other commands.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from service.configuration import is_secret
from service.settings import Settings

Flags = Mapping[str, Any]
DataFolder = Annotated[Path | None, typer.Option("--data", help="The server's data folder. [TANDEM_DATA]")]


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
