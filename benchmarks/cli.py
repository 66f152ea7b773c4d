"""The `tandem bench` commands: a module for each, imported when it runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from benchmarks import options
from deploy.records import record_command
from deploy.report import ResultOutput

bench = typer.Typer(
    help="Measure speed, beside other programs in the same run; docs/performance.md says what the figures mean.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
# Name of the command -> what it is asked, and the module that measures and shows.
COMMANDS: dict[str, tuple[type[Any], str]] = {
    "decode": (options.DecodeOptions, "decoding.command"),
    "profile": (options.ProfileOptions, "decoding.profile"),
    "serve": (options.ServeOptions, "service.serve"),
    "soak": (options.SoakOptions, "service.soak"),
    "footprint": (options.FootprintOptions, "service.footprint"),
    "reliability": (options.ReliabilityOptions, "abuse.command"),
    "training": (options.TrainingOptions, "training.speed"),
    "imports": (options.ImportsOptions, "imports"),
    "trace": (options.TraceOptions, "trace"),
}


def run(given: Any, module: str) -> bool:
    """Measure, and show it or write JSON.

    Returns:
        ``met`` of the result, where it has one: False ends the command with exit status 1.
    """
    output = ResultOutput.of(given)
    measurement = import_module(f"benchmarks.{module}")
    result = measurement.measure(given)
    output.write(result)
    if not output.as_json:
        measurement.show(result)
    return bool(result.get("met", True))


def _runner(module: str) -> Callable[[Any], bool]:
    return lambda given: run(given, module)


for _name, (_options, _module) in COMMANDS.items():
    bench.command(_name)(record_command(_name, _options, _runner(_module)))
