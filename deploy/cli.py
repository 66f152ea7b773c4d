"""The `tandem` command: which commands there are, and how failures are told. Their functions stand beside their work.

Extras bring commands of their own. A command's module is imported when the command is called, or its help: `tandem
--help` needs no package of an extra, and `tandem serve` never loads torch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from tandem.models.command import installed_version, with_options
from tandem.models.errors import FULL, ConfigError, OptionError, TandemError
from tandem.service.ports import extras, load, of_all

# Each command's function or group, as module:name, and its line in the list; the function says the rest.
_OWN: dict[str, tuple[str, str]] = {
    "prepare": ("tandem.deploy.training:prepare", "Turn corpora into batches' raw material"),
    "train": ("tandem.deploy.training:train", "Train what `tandem prepare` has prepared"),
    "export": ("tandem.training.export.exporting:export", "Make a bundle of a run"),
    "serve": ("tandem.service.commands:serve", "Serve bundles over HTTP"),
}

_PACKAGES: dict[str, tuple[str, ...]] = {  # those that another extra than [serve] brings
    "[train] (make install)": (
        *("jinja2", "matplotlib", "onnx", "onnxscript", "rjieba", "rouge_score", "sacrebleu"),
        *("sacremoses", "tensorboard", "tomlkit", "torch", "yaml"),
    ),
}


@cache
def commands() -> Mapping[str, tuple[str, str]]:
    """All commands, those of extras behind the core's own."""
    return _OWN | of_all("commands")


class Commands(TyperGroup):
    """The commands of the table: with their lines where they are listed, as they are where one is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=line + ".") for name, (_, line) in commands().items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called. Raises ModuleNotFoundError where it needs an extra that is not installed."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(command.name or ""), rest


def load_command(name: str) -> Any:
    """The command or group of that name, with all of its options; its module is imported."""
    command = load(commands()[name][0])
    group = typer.Typer(rich_markup_mode="markdown")  # brackets are text, and paragraphs flow
    if isinstance(command, typer.Typer):
        group.add_typer(command, name=name)
    else:
        group.command(name)(with_options(command))
    return get_group(group).commands[name]


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tandem {installed_version()}")
        raise typer.Exit


@app.callback()
def tandem(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train, prove, ship and serve translation and summarization models."""


def main() -> None:
    """Entry point: errors that were raised on purpose are one line, not a traceback.

    The exit status is 0 where all went well, 1 where the command failed, 2 where it was called or configured wrongly,
    so that doing it again is of no use, and 130 where it was interrupted.
    """
    try:
        app()
    except TandemError as error:
        _fail(str(error), 2 if isinstance(error, ConfigError | OptionError) else 1)
    except ModuleNotFoundError as error:
        _fail(f"this command needs {_missing(error.name or '')}", 1)
    except OSError as error:
        if error.filename is None and error.errno not in FULL:  # of the network or the system, not of a path
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        remedy = "; make room on its disk, and run the command again" if error.errno in FULL else ""
        _fail(f"{where}{error.strerror}{remedy}", 1)
    except (MemoryError, RuntimeError) as error:
        torch = "torch" in sys.modules  # which `tandem serve` never loads
        if not (isinstance(error, MemoryError) or (torch and load("tandem.models.steps.devices:out_of_memory")(error))):
            raise
        said = str(error).partition("\n")[0]
        _fail(f"the memory does not suffice ({said}): take smaller batches or a smaller model, or more memory", 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _missing(module: str) -> str:
    """What there is to do where a module is not found: an extra's folder was deleted, or a package is not installed."""
    package, *within = module.split(".")
    if package == "tandem" and within[:1] == ["extras"] and len(within) > 1:
        return f"the extra {within[1]!r}: its folder, extras/{within[1]}, is not there; bring it back"
    return f"the package {package!r}: install tandem with its extra {extra_of(package)}"


def extra_of(package: str) -> str:
    """The extra of this distribution that brings a package, in the words that a user is told."""
    tables = [_PACKAGES, *(extra.packages for extra in extras())]
    known = (name for table in tables for name, packages in table.items() if package in packages)
    return next(known, "[serve]")


def _fail(message: str, status: int) -> NoReturn:
    typer.secho(f"tandem: {message}", err=True, fg="red" if sys.stderr.isatty() else None)
    sys.exit(status)
