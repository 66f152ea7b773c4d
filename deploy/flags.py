"""Commands whose options are the service's settings, one flag for each, made from ``Settings`` when they are needed.

Typer builds options from a function's signature, so this module makes a signature. It is made late: only `tandem serve`
and its like need pydantic, and `tandem train` runs where it is not installed.
"""

from __future__ import annotations

import functools
import inspect
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.main import get_command

_GIVEN = "tandem.settings"


class SettingsCommand(TyperCommand):
    """A command with a flag for each setting; ``given_settings`` tells which of them were given."""

    _own: list[Any]
    _all: list[Any] | None

    @property
    def params(self) -> list[Any]:
        """Its own parameters, then the settings'. One list, since the command itself adds to it and takes away."""
        if self._all is None:
            self._all = [*self._own, *setting_options()]
        return self._all

    @params.setter
    def params(self, own: list[Any]) -> None:
        self._own, self._all = own, None

    def invoke(self, ctx: Any) -> Any:
        """Run it; the callback gets its own parameters."""
        own = {parameter.name for parameter in self._own}
        ctx.meta[_GIVEN] = {name: value for name, value in ctx.params.items() if name not in own and value is not None}
        ctx.params = {name: value for name, value in ctx.params.items() if name in own}
        return super().invoke(ctx)


def given_settings(context: typer.Context) -> dict[str, Any]:
    """The settings that were given as flags, by name."""
    given: dict[str, Any] = context.meta[_GIVEN]
    return given


@functools.cache
def setting_options() -> tuple[Any, ...]:
    """An option for each setting but secrets, which must not stand on a command line."""
    from service.configuration import is_secret
    from service.settings import Settings

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(field))
        for name, field in Settings.model_fields.items()
        if not is_secret(name)
    ]

    def command(**_: Any) -> None: ...

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return tuple(get_command(app).params)


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
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    kinds = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
    named = [kinds[one] for one in (annotation, *typing.get_args(annotation)) if one in kinds]
    return named[0] if named else "TEXT"
