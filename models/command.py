"""What the commands of `tandem` have in common: options that several of them take, and how they print.

A command's function stands beside its work, in training, service or deploy. What they share stands here, since models
is the one package that all three may import; nothing in models itself needs it.
"""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import typer
from rich.console import Console

LARGEST_BEAM = 100
"""The largest beam size that a command takes."""
_WIDTH = 180  # columns of a table that is not shown on a terminal


Runtime: TypeAlias = Literal["onnx", "torchscript", "torch"]
"""What runs a bundle's graphs."""

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe file (TOML), see training/recipes/.")]
RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Folder of the run: prepared data, checkpoints, logs. [runs/NAME]")
]
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle folder, such as bundles/de-fr-en.")]
CorporaFolder = Annotated[Path, typer.Option("--corpora", help="Folder that the recipe's corpus files lie in.")]
ReplaceBundle = Annotated[bool, typer.Option(help="Replace a bundle that is already there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

UsedRuntime = Annotated[Runtime, typer.Option("--runtime", help="What runs the model.")]
UsedDevice = Annotated[str, typer.Option("--device", help="Where it runs: cpu, cuda, cuda:N, or (torch) auto.")]
MaxBatchSentences = Annotated[int, typer.Option(min=1, max=4096, help="Sentences of one batch on a GPU.")]
Precision = Annotated[str, typer.Option(help="Which of the bundle's graphs: int8, float32; on a GPU float16, bf16.")]
BeamSize = Annotated[int | None, typer.Option(min=1, max=LARGEST_BEAM, help="Beam size. [the bundle's]")]
RuntimeThreads = Annotated[int, typer.Option("--threads", min=1, help="Threads of the runtime, in each process.")]
KeepUnknown = Annotated[
    bool | None,
    typer.Option(
        "--keep-unknown/--replace-unknown",
        help="Words that a vocabulary of words has not: as <unk>, or as what the model attends to. [the bundle's]",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")]
ReadLanguage = Annotated[str, typer.Option("--language", help="Language of the text, where the bundle reads several.")]
WrittenLanguage = Annotated[
    str, typer.Option("--target", help="Language to translate into, where the bundle writes several. [its first]")
]
Workers = Annotated[int, typer.Option(min=0, help="Processes that translate; 0 = one per core, or one on a GPU.")]


class Without(frozenset[str]):
    """Beside a record that a command takes: fields of it that are no options of this command."""


@cache
def installed_version() -> str:
    """Of this program, as it is installed; ``0`` where it runs from a checkout that is not."""
    try:
        return metadata.version("tandem")
    except metadata.PackageNotFoundError:
        return "0"


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command as Typer reads it: in the place of each record that it takes stand the record's own options.

    A record is a dataclass; those of its fields that are annotated with Typer's options are options of every command
    that takes it, with their defaults, and the others keep theirs.
    """
    records: dict[str, tuple[type[Any], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        record, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if not (isinstance(record, type) and is_dataclass(record)):
            parameters.append(parameter.replace(annotation=hint))
            continue
        options = _options_of(record, frozenset().union(*(note for note in notes if isinstance(note, Without))))
        records[parameter.name] = (record, [option.name for option in options])
        parameters += options
    if not records:
        return command

    @wraps(command)
    def flat(**given: Any) -> Any:
        made = {name: record(**{key: given.pop(key) for key in keys}) for name, (record, keys) in records.items()}
        return command(**given, **made)

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    flat.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only}
    del flat.__wrapped__  # else the annotations would be looked for there
    return flat


def _options_of(record: type[Any], without: frozenset[str]) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(record)
        if get_origin(hints[field.name]) is Annotated and field.name not in without
    ]


def command_line() -> str:
    """How this process was called, for those who want a figure again."""
    return shlex.join(["tandem", *sys.argv[1:]])


def console(*, error: bool = False) -> Console:
    """Standard output or error, wide enough for a table where it is not a terminal."""
    made = Console(stderr=error, markup=False)  # names and labels may have brackets
    return made if made.is_terminal else Console(stderr=error, markup=False, width=_WIDTH)


def say(*lines: str, error: bool = False) -> None:
    """Lines as they are, neither coloured nor broken."""
    screen = console(error=error)
    for line in lines:
        screen.print(line, highlight=False, soft_wrap=True)


def report(line: str) -> None:
    """A line on how far the work is, on standard error: standard output is for results."""
    say(line, error=True)
