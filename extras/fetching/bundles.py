"""`tandem bundles`: which bundles there are, the service says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tandem.models.bundle import MANIFEST, Bundle
from tandem.models.command import AsJson, console
from tandem.models.errors import BundleError, ConfigError
from tandem.service.bundles.loading import BundleFolder, list_bundles
from tandem.service.configuration import read_configuration

BundlesFolder = Annotated[
    Path | None, typer.Option("--bundles", help="Folder that bundles lie in. [TANDEM_BUNDLES, or bundles]")
]
Registry = Annotated[
    str,
    typer.Option(
        "--registry",
        metavar="PLACE",
        help="Mirror of the registry of public models, by its URL, or a folder with a copy. [the publisher's]",
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of bundles. [all]")]

bundles = typer.Typer(help="Bundles of a server: list, check and remove them.", no_args_is_help=True)


def bundles_folders(given: Path | None) -> tuple[Path, ...]:
    """Where the server's bundles lie. Raises ConfigError as ``read_configuration``."""
    return read_configuration({} if given is None else {"bundles": (given,)}).settings.bundles


@bundles.command("list")
def list_them(folder: BundlesFolder = None, as_json: AsJson = False) -> None:
    """List the bundles of a server, read from their manifests: `tandem bundles verify` reads them whole.

    The digest is the SHA-256 of the manifest, which has the hash of every file: equal digests are equal bundles.

    Example: tandem bundles list
    """
    described = [described_bundle(one) for one in list_bundles(bundles_folders(folder))]
    if as_json:
        typer.echo(json.dumps(described, indent=1, ensure_ascii=False))
        return
    table = Table("name", "task", "languages", "MB", "scores", "digest", "folder")
    for one in described:
        scores = ", ".join(f"{score['metric']} {score['value']:.2f}" for score in one["scores"])
        cells = (one["name"], one["task"] or "", " ".join(one["directions"]), f"{one['bytes'] / 1e6:.1f}", scores)
        table.add_row(*cells, one["digest"][:12], one["fault"] or one["folder"])
    console().print(table)


@bundles.command()
def verify(names: Names = None, folder: BundlesFolder = None) -> None:
    """Check that bundles are whole: every file's SHA-256, every weight and vocabulary. The exit status is 1 otherwise.

    It needs no more than a server does. `tandem verify` also proves that a bundle answers as its PyTorch model does.

    Example: tandem bundles verify de-en
    """
    failed = False
    for one in _chosen(list_bundles(bundles_folders(folder)), names):
        try:
            if one.fault:
                raise BundleError(one.path, [one.fault])
            Bundle.load(one.path, weights=True)
            typer.echo(f"{one.name}: whole, {one.digest}")
        except BundleError as error:
            failed = True
            typer.echo(f"{one.name}: {error}", err=True)
    if failed:
        raise typer.Exit(1)


@bundles.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A bundle's name, with its version where it has one.")],
    folder: BundlesFolder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a bundle; of a link to one, the link. A server that has it loaded goes on with it until it is unloaded.

    Example: tandem bundles remove de-en@1
    """
    (one,) = _chosen(list_bundles(bundles_folders(folder)), [name])
    if not yes:
        typer.confirm(f"Delete {one.path} ({folder_size(one.path) / 1e6:.1f} MB)?", abort=True, err=True)
    if one.path.is_symlink():
        one.path.unlink()
    else:
        (one.path / MANIFEST).unlink()  # first: without it what is left is no bundle any more
        shutil.rmtree(one.path)
    typer.echo(f"removed {one.path}")


def _chosen(there: Sequence[BundleFolder], names: Sequence[str] | None) -> list[BundleFolder]:
    """The bundles of those names. Raises ConfigError where one is not there, or several are named so."""
    if not names:
        return list(there)
    found = []
    for name in names:
        named = [one for one in there if one.name == name]
        if not named:
            known = ", ".join(one.name for one in there)
            raise ConfigError(f"there is no bundle named {name!r}; there are {known}")
        if len(named) > 1:
            paths = ", ".join(str(one.path) for one in named)
            raise ConfigError(f"several bundles are named {name!r}: {paths}; rename a folder, or name one by --bundles")
        found += named
    return found


def described_bundle(one: BundleFolder) -> dict[str, Any]:
    """A bundle as lists of them show it."""
    manifest = one.manifest
    pairs: Sequence[tuple[str, str]] = ()
    if manifest is not None:
        pairs = manifest.pairs or [(source, manifest.target_language) for source in manifest.source_languages]
    scores = manifest.scores if manifest is not None else ()
    return {
        "name": one.name,
        "task": manifest and manifest.task,
        "directions": [f"{source}-{target}" for source, target in pairs],
        "bytes": folder_size(one.path),
        "licence": (manifest and manifest.licence) or "",
        "origin": manifest.origin.url if manifest is not None and manifest.origin is not None else "",
        "scores": [{"metric": score.metric, "value": score.value, "test_set": score.test_set} for score in scores],
        "digest": one.digest,
        "folder": str(one.path),
        "fault": one.fault or ("" if manifest is not None else "its manifest cannot be read"),
    }


def folder_size(folder: Path) -> int:
    """Bytes of its files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
