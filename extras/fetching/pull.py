"""`tandem pull`: bundles from a server or a folder, and public models that extras make bundles of.

    URL ──► .pull-DIGEST.part ──► checked against the SHA-256 ──► unpacked ──► checked as a bundle ──► NAME
    folder, or archive on a disk ─────────────────────────────────────┘

A partial file lies beside the bundles, and the next call goes on with it (``downloads``). Nothing is under its
name before it is whole. What is named by a scheme, ``firefox:en-de``, is another's to bring (``sources``).
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import tarfile
import zlib
from gzip import BadGzipFile
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from tandem.extras.fetching.bundles import BundlesFolder, Registry, bundles_folders, folder_size
from tandem.extras.fetching.downloads import PullError, check_room, download, forget, shown_url
from tandem.extras.fetching.sources import FetchOptions, fetch_bundle, find_source
from tandem.models.bundle import MANIFEST, Bundle, sha256
from tandem.models.bundle.manifest import NAME
from tandem.models.command import ReplaceBundle, report
from tandem.models.errors import BundleError, ConfigError
from tandem.models.folders import is_vacant, replace_folder, scratch_folder
from tandem.service.bundles.loading import list_bundles
from tandem.service.engine import alias_of

_REMEDY = "--max-gb allows more"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEMBERS = 10_000  # files of an archive; a bundle has some thirty
_BROKEN = (tarfile.TarError, lzma.LZMAError, zlib.error, BadGzipFile, EOFError)


def pull(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="Archive of a bundle (.tar, .tar.gz, .tar.xz) by https or on a disk, a bundle's folder, or a public"
            " model: firefox:en-de, hf:Helsinki-NLP/opus-mt-de-en.",
        ),
    ],
    digest: Annotated[
        str, typer.Option("--sha256", help="Of the archive, or of a folder's manifest.json. Needed for a URL.")
    ] = "",
    folder: BundlesFolder = None,
    name: Annotated[str, typer.Option(help="That it is served under, such as de-en@2. [its own]")] = "",
    replace: ReplaceBundle = False,
    max_gigabytes: Annotated[
        float, typer.Option("--max-gb", min=0.001, help="Of the archive, and of what it holds, in 10^9 bytes.")
    ] = 20.0,
    registry: Registry = "",
) -> None:
    """Fetch a bundle from a server or a folder, pinned by its SHA-256, check it, and put it beside the others.

    A public model is fetched from where it is published, and becomes a bundle: `tandem models` lists what there is.
    What breaks off goes on where it stopped when the same command is given again. A running server takes the bundle
    with `POST /models/NAME`, or when it starts; it fetches none by itself but those of the setting `models`.

    Example: tandem pull firefox:en-es
    """
    if find_source(source) is not None:
        if digest:
            raise ConfigError("--sha256 is for archives and folders of bundles: public models have hashes of their own")
        options = FetchOptions(registry=registry, overwrite=replace, bound=int(max_gigabytes * 1e9), report=report)
        made = fetch_bundle(source, _into(folder), options, name)
        print(f"{made.path}: {folder_size(made.path) / 1e6:.1f} MB, digest {sha256(made.path / MANIFEST)}")
        return
    remote, wanted, bound = source.lower().startswith(("http://", "https://")), digest.lower(), int(max_gigabytes * 1e9)
    if wanted and not _DIGEST.fullmatch(wanted):
        raise ConfigError(f"--sha256 must be 64 hexadecimal digits, but is {digest!r}")
    if remote and not wanted:
        raise ConfigError("what comes over a network needs --sha256, from whoever made the archive")
    if remote and "@" in _netloc(source):
        raise ConfigError("a URL with a name or a password is not read: fetch the archive with another program")
    into = _into(folder)
    # On the same file system, two levels above what could be taken for a bundle.
    with scratch_folder(into / f".pull-{wanted[:16] or os.getpid()}") as scratch:
        given = _download(source, wanted, into, bound) if remote else Path(source)
        content = scratch / "content"
        _bring(given, content, "" if remote else wanted, bound)
        path = _place(content, into, scratch, name or _version_of(content, given), replace, shown_url(source))
        if remote:
            forget(given)
    print(f"{path}: {folder_size(path) / 1e6:.1f} MB, digest {sha256(path / MANIFEST)}")


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError as error:
        raise ConfigError(f"{url!r} is no URL: {error}") from error


def _into(folder: Path | None) -> Path:
    """The folder that the bundle comes to. Raises ConfigError where that is a bundle itself."""
    into = bundles_folders(folder)[0]
    if (into / MANIFEST).is_file():
        raise ConfigError(f"{into} is a bundle: give the folder that the new one is to lie in by --bundles")
    into.mkdir(parents=True, exist_ok=True)
    return into


def _download(url: str, wanted: str, into: Path, bound: int) -> Path:
    """The archive at a URL, whole and checked."""
    part = into / f".pull-{wanted[:16]}.part"
    if part.is_file() and sha256(part) == wanted:
        return part
    download(url, part, bound, _REMEDY)
    if (found := sha256(part)) != wanted:
        forget(part)
        raise PullError(f"{shown_url(url)}: its SHA-256 is {found}, but --sha256 says {wanted}; nothing was kept")
    return part


def _bring(given: Path, content: Path, wanted: str, bound: int) -> None:
    """Unpack an archive, or copy a folder, to ``content``.

    Raises:
        ConfigError: there is nothing.
        PullError: another digest than is wanted, too much, or what is no archive.
    """
    whole = given / MANIFEST if given.is_dir() else given
    if not whole.is_file():
        raise ConfigError(
            f"{given}: " + (f"there is no {MANIFEST} in it" if given.is_dir() else "there is no such file")
        )
    if wanted and (found := sha256(whole)) != wanted:
        raise PullError(f"{whole}: its SHA-256 is {found}, but --sha256 says {wanted}")
    if given.is_dir():
        size = folder_size(given)
        check_room(size, size, content.parent, bound, _REMEDY, str(given))
        shutil.copytree(given, content, symlinks=True)  # links stay links, which no bundle may have
        return
    try:
        with tarfile.open(given) as archive:
            _unpack(archive, content, bound)
    except _BROKEN as error:
        why = str(error).partition(":\n")[0]  # without what each way to unpack has to say
        message = f"{given}: not an archive that can be unpacked (.tar, .tar.gz, .tar.bz2, .tar.xz): {why}"
        raise PullError(message) from error


def _unpack(archive: tarfile.TarFile, content: Path, bound: int) -> None:
    """Plain files and folders only; nothing may lead outside, or be more than is allowed."""
    size = 0
    for number, member in enumerate(archive, 1):
        size += member.size
        if number > _MEMBERS:
            raise PullError(f"the archive holds more than {_MEMBERS} files, which no bundle has")
        if not (member.isreg() or member.isdir()):
            raise PullError(f"the archive's {member.name!r} is a link or a device, which no bundle has")
        check_room(member.size, size, content.parent, bound, _REMEDY, "the archive")
        archive.extract(member, content, filter="data")


def _version_of(content: Path, given: Path) -> str:
    """The name of the folder that was packed, where that says a version; empty else."""
    name = given.name if given.is_dir() else _root(content).name
    return name if "@" in name else ""


def _root(content: Path) -> Path:
    """The bundle in what was unpacked: all of it, or its only folder."""
    inside = [] if (content / MANIFEST).is_file() else list(content.glob("*"))
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else content


def _place(content: Path, into: Path, scratch: Path, name: str, replace: bool, shown: str) -> Path:
    """Check what was brought as a bundle, and put it in its place.

    Raises:
        BundleError: it is none, or not whole.
        ConfigError: it may not have that name, or its place is taken.
    """
    root = _root(content)
    try:
        own = Bundle.load(root, weights=True).manifest.name
    except BundleError as error:
        raise BundleError(shown, error.faults) from error
    name = name or own
    if name != own and (alias_of(name) != own or not NAME.fullmatch(name)):
        raise ConfigError(f"{shown}: its manifest names it {own!r}: it can be {own} or {own}@VERSION, but not {name}")
    there = [one.path for one in list_bundles([into]) if one.name == name] if any(into.glob(f"*/{MANIFEST}")) else []
    path = there[0] if there else into / name
    if there and not replace:
        raise ConfigError(f"{path} is there already: give --replace, or a version by --name {alias_of(own)}@VERSION")
    if not there and not is_vacant(path):
        raise ConfigError(f"{path} is there already, and is no bundle: move it away")
    replace_folder(path, root, scratch / "old")
    return path
