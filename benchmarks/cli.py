"""The `tandem bench` commands: a module for each, imported when it runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from benchmarks import options
from deploy.report import run_measurement
from models.command import with_options

bench = typer.Typer(
    help="Measure speed, beside other programs in the same run; docs/performance.md says what the figures mean.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
# Name of the command -> what it is asked, and the module that measures and shows.
COMMANDS: dict[str, tuple[type[Any], str]] = {
    "decode": (options.DecodeOptions, "decoding.command"),
    "serve": (options.ServeOptions, "service.serve"),
    "reliability": (options.ReliabilityOptions, "abuse.command"),
    "training": (options.TrainingOptions, "training.speed"),
    "claims": (options.ClaimsOptions, "training.claims"),
    "imports": (options.ImportsOptions, "imports.command"),
    "trace": (options.TraceOptions, "trace"),
    "gpu": (options.GpuOptions, "gpu.command"),
}


def _command(record: type[Any], module: str) -> Callable[..., None]:
    """A command whose options, and help, are a record's."""

    def command(options: Any) -> None:
        measurement = import_module(f"benchmarks.{module}")
        run_measurement(options, measurement.measure, measurement.show)

    command.__annotations__ = {"options": record}
    command.__doc__ = record.__doc__
    return with_options(command)


for _name, (_record, _module) in COMMANDS.items():
    bench.command(_name)(_command(_record, _module))
