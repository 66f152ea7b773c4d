"""The options of `tandem doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models.command import AsJson


def doctor(
    bundles: Annotated[
        list[Path] | None,
        typer.Option("--bundle", metavar="BUNDLE", help="Bundle folder, or folder of bundles. [those of the settings]"),
    ] = None,
    measure: Annotated[bool, typer.Option(help="Time every runtime and precision of each bundle.")] = True,
    as_json: AsJson = False,
) -> None:
    """Look at this machine as `tandem serve` would find it: processor, memory, packages, settings, bundles, speed.

    Every check ends in ok, warning or fault and says what to do. The exit status is 0 where the service can serve, 1
    where there is a fault. Settings come from the same TANDEM_* variables as those of `tandem serve`.

    Example: tandem doctor --bundle bundles/de-en
    """
    from deploy.commands.doctor import doctor_command

    raise typer.Exit(doctor_command(bundles, measure=measure, as_json=as_json))
