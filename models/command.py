"""What the commands of `tandem` have in common: options that several of them take, and how they print.

A command's function stands beside its work, in training, service or deploy. What they share stands here, since models
is the one package that all three may import; nothing in models itself needs it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

LARGEST_BEAM = 100
"""The largest beam size that a command takes."""
_WIDTH = 180  # columns of a table that is not shown on a terminal


class Runtime(StrEnum):
    """What runs a bundle's graphs."""

    onnx = "onnx"
    torchscript = "torchscript"
    torch = "torch"


RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe file (TOML), see training/recipes/.")]
RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Folder of the run: prepared data, checkpoints, logs. [runs/NAME]")
]
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle folder, such as bundles/de-en.")]
CorporaFolder = Annotated[Path, typer.Option("--corpora", help="Folder that the recipe's corpus files lie in.")]
ReplaceBundle = Annotated[bool, typer.Option(help="Replace a bundle that is already there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

UsedRuntime = Annotated[Runtime, typer.Option("--runtime", help="What runs the model.")]
Precision = Annotated[str, typer.Option(help="Which of the bundle's graphs: int8 or float32.")]
BeamSize = Annotated[int | None, typer.Option(min=1, max=LARGEST_BEAM, help="Beam size. [the bundle's]")]
RuntimeThreads = Annotated[int, typer.Option("--threads", min=1, help="Threads of the runtime, in each process.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")]
ReadLanguage = Annotated[str, typer.Option("--language", help="Language of the text, where the bundle reads several.")]
WrittenLanguage = Annotated[
    str, typer.Option("--target", help="Language to translate into, where the bundle writes several. [its first]")
]
Workers = Annotated[int, typer.Option(min=0, help="Processes that translate; 0 = one per core.")]


def console(*, error: bool = False) -> Console:
    """Standard output or error, wide enough for a table where it is not a terminal."""
    made = Console(stderr=error, markup=False)  # names and labels may have brackets
    return made if made.is_terminal else Console(stderr=error, markup=False, width=_WIDTH)


def report(line: str) -> None:
    """A line on how far the work is, on standard error: standard output is for results."""
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)
