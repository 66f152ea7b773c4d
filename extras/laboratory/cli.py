"""The `tandem bench` commands: a module for each, imported when it runs. Other extras bring more of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from tandem.extras.laboratory import options
from tandem.extras.shared.report import run_measurement
from tandem.models.command import with_options
from tandem.service.ports import load, of_all

bench = typer.Typer(
    help="Measure speed, beside other programs in the same run; docs/performance.md says what the figures mean.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
_OWN: dict[str, tuple[type[Any], str]] = {
    "decode": (options.DecodeOptions, "tandem.extras.laboratory.decoding.decode"),
    "serve": (options.ServeOptions, "tandem.extras.laboratory.service.serve"),
    "reliability": (options.ReliabilityOptions, "tandem.extras.laboratory.abuse.reliability"),
    "training": (options.TrainingOptions, "tandem.extras.laboratory.training.speed"),
    "trace": (options.TraceOptions, "tandem.extras.laboratory.trace"),
    "gpu": (options.GpuOptions, "tandem.extras.laboratory.gpu.loan"),
}
COMMANDS = _OWN | {name: (load(record), module) for name, (record, module) in of_all("measurements").items()}
"""Name of the command -> what it is asked, and the module that measures and shows."""


def _command(record: type[Any], module: str) -> Callable[..., None]:
    """A command whose options, and help, are a record's."""

    def command(options: Any) -> None:
        measurement = import_module(module)
        run_measurement(options, measurement.measure, measurement.show)

    command.__annotations__ = {"options": record}
    command.__doc__ = record.__doc__
    return with_options(command)


for _name, (_record, _module) in COMMANDS.items():
    bench.command(_name)(_command(_record, _module))
