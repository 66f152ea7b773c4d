"""`tandem models`: what is here, and what public models there are."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from tandem.extras.fetching.bundles import BundlesFolder, Registry, bundles_folders, described_bundle
from tandem.extras.fetching.sources import Offer, find_sources
from tandem.models.command import AsJson, console, report
from tandem.models.errors import ConfigError, TandemError
from tandem.service.bundles.loading import list_bundles
from tandem.service.ports import load


def models(
    pair: Annotated[
        str, typer.Argument(metavar="LANGUAGES", help="Only those of a language, en, or of a pair, en-de. [all]")
    ] = "",
    folder: BundlesFolder = None,
    registry: Registry = "",
    as_json: AsJson = False,
) -> None:
    """List the models that are here, and the public ones that `tandem pull` can bring.

    The registries are asked over the network; where one cannot be reached, that is said, and the rest is listed.

    Example: tandem models en-de
    """
    installed = [one for one in _installed(folder) if _matches(pair, one["directions"])]
    offers: list[Offer] = []
    faults = []
    for scheme, place in find_sources().items():
        try:
            offers += load(place).offers(registry)
        except TandemError as error:
            faults.append(f"{scheme}: {error}")
    offers = [one for one in offers if _matches(pair, [f"{one.source}-{one.target}"])]
    for fault in faults:
        report(fault)
    if as_json:
        listed = {"installed": installed, "offered": [asdict(one) for one in offers], "faults": faults}
        typer.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    here = Table("here", "task", "languages", "MB", "licence", "from")
    for one in installed:
        size = f"{one['bytes'] / 1e6:.1f}"
        here.add_row(one["name"], one["task"], " ".join(one["directions"]), size, one["licence"], one["origin"])
    there = Table("tandem pull", "architecture", "MB", "licence", "scores of its publisher")
    for offer in offers:
        scores = ", ".join(f"{name} {value:.1f}" for name, value in offer.scores.items())
        there.add_row(offer.name, offer.architecture, f"{offer.size / 1e6:.1f}", offer.licence, scores)
    console().print(here, there)


def _installed(folder: Any) -> list[dict[str, Any]]:
    """The bundles that are here; none where the folder is empty, or not there yet."""
    try:
        found = list_bundles(bundles_folders(folder))
    except ConfigError:
        return []
    return [described_bundle(one) for one in found]


def _matches(pair: str, directions: list[str]) -> bool:
    return not pair or any(pair == one or (pair in one.split("-")) for one in directions)
