"""`tandem import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.importing.folders import import_folder
from tandem.extras.importing.model import Asked, Labels
from tandem.models.command import ReplaceBundle, report
from tandem.models.errors import ConfigError


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
    bundle = import_folder(folder, out, asked, Labels(licence, source_url, overwrite=force), report, calibration)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB")


def _pair(text: str) -> tuple[str, str]:
    code, separator, tag = text.partition("=")
    if not (separator and code and tag):
        raise ConfigError(f"--tag must look like zh=cmn_Hans, but is {text!r}")
    return code, tag
