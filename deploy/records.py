"""Commands whose options are the fields of a record: each is declared once, with its help, bounds and default."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from models.command import with_options
from models.errors import ConfigError

Out = Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")]
Plot = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw curves into this folder, as PNG.")]


def record_command(name: str, record: type[Any], run: Callable[[Any], bool | None]) -> Callable[..., None]:
    """A function for ``app.command()``.

    Args:
        name: of the command.
        record: a dataclass whose fields are annotated with Typer's options; its docstring is the command's help.
        run: is given the record; where it returns False the exit status is 1.
    """

    def command(options: Any) -> None:
        if run(options) is False:
            raise typer.Exit(1)

    command.__annotations__ = {"options": record}
    command.__name__, command.__doc__ = name, record.__doc__
    return with_options(command)


def loaded_when_run(path: str) -> Callable[[Any], bool | None]:
    """The function ``package.module:function``, whose module is imported when it is called."""
    module, _, function = path.partition(":")

    def run(options: Any) -> bool | None:
        result: bool | None = getattr(import_module(module), function)(options)
        return result

    return run


def numbers(text: str, option: str, largest: int = 10**9) -> tuple[int, ...]:
    """Whole numbers from ``1,32,64``, each once. Raises ConfigError for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= largest for part in parts):
        raise ConfigError(f"{option} must be whole numbers from 1 to {largest}, such as 1,32,64, but is {text!r}")
    return tuple(dict.fromkeys(map(int, parts)))


def names(text: str, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names from ``a,b``, each once, all of them known; none is allowed. Raises ConfigError otherwise."""
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [name for name in given if name not in known]:
        raise ConfigError(f"{option} must be of {', '.join(known)}, but has {', '.join(unknown)}")
    return given
