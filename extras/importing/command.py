"""`tandem import`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from extras.importing.model import Asked, Labels
from extras.importing.students import import_student, open_student
from models.bundle import Bundle
from models.command import ReplaceBundle, report
from models.errors import ConfigError
from service.telemetry.cgroups import machine_memory, memory_limit


def import_model(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The model's files, as they were published.")],
    out: Annotated[Path, typer.Option(help="Bundle folder to write, such as bundles/en-fr; its name is the bundle's.")],
    source: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Language that it reads; again for others. [the files']")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Language that it writes; again for others. [the files']")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE=TAG", help="The tag of a language where it is not clear, such as zh=cmn_Hans."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Some hundred source sentences, one a line. [built-in English or German]"),
    ] = None,
    licence: Annotated[str, typer.Option(help="Of the weights, such as CC-BY-4.0; the model's page says it.")] = "",
    source_url: Annotated[str, typer.Option(metavar="URL", help="Where the files come from.")] = "",
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="A field of the configuration of which you know that it does not matter."),
    ] = None,
    force: ReplaceBundle = False,
) -> None:
    """Make a bundle of a public model that you have downloaded: OPUS-MT, Firefox's, M2M100, NLLB and more.

    Nothing is downloaded. docs/import.md says which models there are and how to get one.

    Example: tandem import opus-mt-en-fr --out bundles/en-fr --licence Apache-2.0
    """
    tags = dict(_pair(one) for one in tag or ())
    asked = Asked(tuple(source or ()), tuple(target or ()), tags, tuple(ignore or ()))
    if (weights := open_student(folder)) is not None:
        report("a student in 8 bits, which is not calibrated anew")
        bundle = import_student(folder, weights, out, asked, Labels(licence, source_url, overwrite=force))
    else:
        bundle = _import_larger(folder, out, asked, Labels(licence, source_url, overwrite=force), calibration)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB")


def _import_larger(folder: Path, out: Path, asked: Asked, labels: Labels, calibration: Path | None) -> Bundle:
    """Those that are calibrated, which takes PyTorch."""
    from extras.importing.bundle import import_bundle
    from training.data.corpus import read_lines

    lines = [line for line in read_lines(calibration) if line.strip()] if calibration is not None else []
    if calibration is not None and not lines:
        raise ConfigError(f"{calibration} has no text: give some hundred sentences, or leave --calibration out")
    memory = min((one for one in (machine_memory(), memory_limit()) if one is not None), default=None)
    return import_bundle(folder, out, asked, replace(labels, calibration=lines, memory=memory), report)


def _pair(text: str) -> tuple[str, str]:
    code, separator, tag = text.partition("=")
    if not (separator and code and tag):
        raise ConfigError(f"--tag must look like zh=cmn_Hans, but is {text!r}")
    return code, tag
