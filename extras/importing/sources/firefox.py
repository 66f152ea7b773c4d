"""``firefox:en-de``: Mozilla's models, from their registry to a bundle."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tandem.extras.fetching.downloads import PullError, check_room, download, forget, shown_url
from tandem.extras.fetching.settings import FetchingSettings
from tandem.extras.fetching.sources import FetchOptions, Offer
from tandem.extras.importing.folders import import_folder
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.sources.registry import PublishedFile, PublishedModel, is_address, read_registry
from tandem.models.bundle import MANIFEST, Bundle
from tandem.models.bundle.manifest import read_manifest
from tandem.models.errors import ConfigError
from tandem.service.configuration import read_configuration

LICENCE = "MPL-2.0"
"""Of all of Mozilla's models."""
_PAIR = re.compile(r"\w+(-\w+)+", re.ASCII)
_BLOCK = 1 << 18
_MOST = 256 << 20  # bytes of a file whose size the registry does not say; shortlists have up to 10 million
_REMEDY = "it is not what the registry says, or --max-gb must allow more"


class Firefox:
    """Brings Mozilla's models; a name is a pair, ``en-de``, or one with an architecture, ``en-de/tiny``."""

    def bundle_name(self, name: str) -> str:
        pair = name.partition("/")[0]
        if not _PAIR.fullmatch(pair):
            raise ConfigError(f"firefox: takes a pair of languages, such as firefox:en-de, but not {name!r}")
        return pair

    def offers(self, registry: str) -> Sequence[Offer]:
        return [
            Offer(
                name=f"firefox:{pair}" + ("" if one is best else f"/{one.architecture}"),
                source=one.source,
                target=one.target,
                architecture=f"{one.architecture}, {one.status or 'no status'}",
                size=one.files[-1].size,
                licence=LICENCE,
                scores=one.scores,
            )
            for pair, there in sorted(read_registry(_place(registry)).models.items())
            for best in [max((one for one in there if one.released), key=lambda one: one.rank, default=None)]
            for one in there
        ]

    def fetch(self, name: str, out: Path, scratch: Path, options: FetchOptions) -> Bundle:
        registry = read_registry(_place(options.registry))
        model = registry.choose(name)
        options.report(f"firefox:{model.pair}, {model.architecture}, {model.status or 'no status'}, {LICENCE}")
        folder = scratch / "model"
        folder.mkdir()
        digests = {file.name: _bring(registry.place, file, folder / file.name, options) for file in model.files}
        _compare_pins(model, digests, out, options)
        asked = Asked((model.source,), (model.target,))
        origin = shown_url(f"{registry.place}/{model.files[-1].path}")
        labels = Labels(LICENCE, origin, overwrite=options.overwrite)
        return import_folder(folder, out, asked, labels, options.report)


FIREFOX = Firefox()


def _place(registry: str) -> str:
    """Where the registry is: what was said, else the setting."""
    return registry or read_configuration({}).settings.part(FetchingSettings).models_registry


def _bring(place: str, file: PublishedFile, out: Path, options: FetchOptions) -> str:
    """Fetch and unpack one file. Returns its SHA-256.

    Raises:
        PullError: it cannot be had, or is not what the registry says.
    """
    bound = min(options.bound, file.size or _MOST)
    where = f"{place}/{file.path}"
    if not is_address(place):
        return _unpack(Path(place) / file.path, out, file, bound, where)
    part = out.parent.parent.parent / f".pull-{hashlib.sha256(where.encode()).hexdigest()[:16]}.part"
    download(where, part, bound + (1 << 20), _REMEDY)  # what cannot be packed any more gets a little larger by it
    try:
        return _unpack(part, out, file, bound, shown_url(where))
    finally:
        forget(part)


def _unpack(packed: Path, out: Path, file: PublishedFile, bound: int, shown: str) -> str:
    """Unpack a file; no more is written than it may have. Returns its SHA-256.

    Raises:
        PullError: it is not what the registry says.
    """
    check_room(file.size, file.size, out.parent, bound, _REMEDY, shown)
    digest, size = hashlib.sha256(), 0
    try:
        with packed.open("rb") as there:
            is_packed = there.read(2) == b"\x1f\x8b"
        with gzip.open(packed) if is_packed else packed.open("rb") as content, out.open("wb") as written:
            while block := content.read(_BLOCK):
                size += len(block)
                check_room(len(block), size, out.parent, bound, _REMEDY, shown)
                digest.update(block)
                written.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise PullError(f"{shown}: it cannot be unpacked: {error}; give the command again") from error
    except FileNotFoundError as error:
        raise PullError(f"{shown}: there is no such file; copy it from the registry as it is there") from error
    if file.size and size != file.size:
        raise PullError(f"{shown}: it has {size} bytes, but the registry says {file.size}; nothing was kept")
    found = digest.hexdigest()
    if file.digest and found != file.digest:
        raise PullError(f"{shown}: its SHA-256 is {found}, but the registry says {file.digest}; nothing was kept")
    return found


def _compare_pins(model: PublishedModel, digests: Mapping[str, str], out: Path, options: FetchOptions) -> None:
    """Hold files whose hashes the registry does not say against those of the bundle that is there, of the same model.

    Raises:
        PullError: one of them has changed since.
    """
    pins = _pins(out)
    weights = model.files[-1].name
    same = pins.get(weights) == digests[weights]
    for file in model.files:
        if file.digest:
            continue
        found = digests[file.name]
        if same and pins.get(file.name, found) != found:
            raise PullError(
                f"{file.name}: its SHA-256 is {found}, but was {pins[file.name]} when this model was first fetched;"
                f" ask its publisher why, and move {out} away to take it nevertheless"
            )
        options.report(f"{file.name}: the registry says no hash; pinned as {found}")


def _pins(out: Path) -> Mapping[str, str]:
    """SHA-256 of the files that the bundle at ``out`` was made of, by their names; empty where there is none."""
    if not (out / MANIFEST).is_file():
        return {}
    manifest = read_manifest((out / MANIFEST).read_bytes(), [])
    return manifest.origin.files if manifest is not None and manifest.origin is not None else {}
