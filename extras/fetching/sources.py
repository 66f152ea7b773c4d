"""Public models by name, ``firefox:en-de``: extras know where they are published, and make bundles of them.

SCHEME:NAME ──► the source of that scheme ──► its files, in a folder of their own ──► a bundle beside the others
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tandem.extras.fetching.downloads import PullError
from tandem.models.bundle import Bundle
from tandem.models.bundle.manifest import NAME
from tandem.models.errors import ConfigError, DataInUse
from tandem.models.folders import hold, is_vacant, scratch_folder
from tandem.service.ports import extras, load

_NAMED = re.compile(r"(?P<scheme>[a-z][a-z0-9]+):(?!//)(?P<name>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A public model that a source can bring.

    Attributes:
        name: that it is asked for by, such as ``firefox:en-de``.
        source, target: language codes.
        architecture: as its publisher calls it.
        size: bytes of its weights, unpacked; 0 = not said.
        licence: of the weights.
        scores: those of its publisher, by their names.
    """

    name: str
    source: str
    target: str
    architecture: str
    size: int
    licence: str
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How a model is fetched.

    Attributes:
        registry: a mirror's URL, or a folder with a copy; empty = the setting, else where the publisher has it.
        overwrite: replace a bundle of that name.
        bound: bytes that any file may have.
        report: told what is being done.
    """

    registry: str = ""
    overwrite: bool = False
    bound: int = 20_000_000_000
    report: Callable[[str], None] = lambda line: None


class ModelSource(Protocol):
    """Brings the public models of one scheme; names are without it."""

    def bundle_name(self, name: str) -> str:
        """What the bundle is called where nobody says otherwise. Raises ConfigError for what can be no name."""
        ...

    def offers(self, registry: str) -> Sequence[Offer]:
        """What can be brought, as far as the source knows. Raises PullError where it cannot be asked."""
        ...

    def fetch(self, name: str, out: Path, scratch: Path, options: FetchOptions) -> Bundle:
        """Fetch a model and write its bundle.

        Args:
            name: the model's.
            out: the bundle's folder; its name is the bundle's.
            scratch: an empty folder on the same file system.
            options: see there.

        Raises:
            ConfigError: there is no such model.
            PullError: it cannot be fetched, or is not what it should be.
            ForeignModelError, BundleError: no bundle can be made of it.
        """
        ...


def find_sources() -> dict[str, str]:
    """Where the sources are, by their schemes."""
    return {scheme: place for extra in extras() for scheme, place in extra.sources.items()}


def find_source(text: str) -> tuple[ModelSource, str] | None:
    """The source of what is named so, and the name without the scheme; None where it names no public model."""
    match = _NAMED.fullmatch(text)
    place = find_sources().get(match["scheme"]) if match else None
    return None if match is None or place is None else (load(place), match["name"])


def named_source(text: str) -> tuple[ModelSource, str]:
    """The same, of what must be the name of a public model. Raises ConfigError where it is not."""
    found = find_source(text)
    if found is None:
        known = ", ".join(f"{scheme}:" for scheme in find_sources()) or "none, as no extra brings any"
        raise ConfigError(f"the name of a public model must begin with one of {known}, but is {text!r}")
    return found


def fetch_bundle(text: str, into: Path, options: FetchOptions, name: str = "") -> Bundle:
    """Fetch a public model, and put its bundle beside the others; nothing has its name before it is whole.

    Args:
        text: with the scheme, ``firefox:en-de``.
        into: the folder that bundles lie in.
        options: see there.
        name: the bundle's; the source's choice where it is empty.

    Raises:
        ConfigError: there is no such model, or the bundle's place is taken.
        PullError: it cannot be fetched, is not what it should be, or another process just fetches it.
        ForeignModelError, BundleError: no bundle can be made of it.
    """
    source, wanted = named_source(text)
    name = name or source.bundle_name(wanted)
    if not NAME.fullmatch(name):
        raise ConfigError(f"a bundle's name must be such as en-de or en-de@2, but is {name!r}")
    out = into / name
    into.mkdir(parents=True, exist_ok=True)
    with _held(into / f".pull-{name}.lock", text), scratch_folder(into / f".pull-{name}") as scratch:
        if not is_vacant(out) and not options.overwrite:
            raise ConfigError(f"{out} is there already: give --replace, or another name by --name, such as {name}@2")
        return source.fetch(wanted, out, scratch, options)


@contextmanager
def _held(lock: Path, text: str) -> Iterator[None]:
    try:
        file = hold(lock)
    except DataInUse as error:
        raise PullError(
            f"{text}: another process is fetching it into {lock.parent}; wait until it has ended"
        ) from error
    with file:
        yield
