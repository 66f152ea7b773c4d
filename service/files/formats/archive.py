"""Office documents are zip archives. What the directory of an archive claims is checked before anything is read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from service.files.bounds import Bounds, FileRefused
from service.files.formats.encoding import other_type

_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_RATIO_FROM = 1 << 20  # small members may be as repetitive as they like
_CHUNK = 1 << 16
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error)
_REMEDY = "save the document again with its own program, or split it"


@contextmanager
def open_archive(path: Path, name: str, bounds: Bounds) -> Iterator[zipfile.ZipFile]:
    """An archive that keeps the bounds.

    Raises:
        FileRefused: no archive, broken, encrypted, with names that lead elsewhere, or over a bound.
    """
    with path.open("rb") as file:
        head = file.read(16)
    if not head.startswith(b"PK\x03\x04"):
        raise FileRefused.wrong_type(name, other_type(head) or "no office document")
    with _opened(path) as archive:
        _check(archive.infolist(), path.stat().st_size, bounds)
        try:
            yield archive
        except _DAMAGE as error:
            raise _damaged() from error


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (*_DAMAGE, OSError, ValueError, OverflowError, struct.error) as error:
        raise _damaged() from error


def _damaged() -> FileRefused:
    return FileRefused.broken(f"the document is damaged and cannot be read; {_REMEDY}")


def parse_xml(raw: bytes) -> Any:
    """The root of a member. Entities are not resolved, nothing is loaded, and depth and node size are bounded.

    Raises:
        FileRefused: no XML, or with a document type declaration, which no office document has.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        raise FileRefused.broken(f"the document's XML cannot be read, or is nested too deeply; {_REMEDY}") from error
    if root.getroottree().docinfo.doctype:
        raise FileRefused.broken("the document declares a document type, which could pull in other files; remove it")
    return root


def rewrite(archive: zipfile.ZipFile, changed: Mapping[str, bytes], result: Path) -> None:
    """The archive again with some members changed; the others keep content, order and time."""
    with zipfile.ZipFile(result, "w") as written:
        for member in archive.infolist():
            if member.filename in changed:
                written.writestr(member, changed[member.filename])
                continue
            with archive.open(member) as source, written.open(member, "w") as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)


def _check(members: list[zipfile.ZipInfo], packed: int, bounds: Bounds) -> None:
    if len(members) > bounds.members:
        raise FileRefused.too_large("members in its archive", bounds.members, len(members), _REMEDY)
    unpacked = sum(member.file_size for member in members)
    if unpacked > bounds.unpacked_bytes:
        raise FileRefused.too_large("bytes when unpacked", bounds.unpacked_bytes, unpacked, _REMEDY)
    _check_ratio(unpacked, packed, bounds)
    seen = set()
    for member in members:
        _check_ratio(member.file_size, member.compress_size, bounds)
        if member.flag_bits & _ENCRYPTED:
            raise FileRefused.broken("the document is encrypted; remove its password and send it again")
        if member.compress_type not in _METHODS:
            raise FileRefused.broken(f"the document is packed with method {member.compress_type}; {_REMEDY}")
        if _leads_elsewhere(member.orig_filename) or member.filename.lower() in seen:
            raise FileRefused.broken(f"the document's archive has a name that is not allowed or there twice; {_REMEDY}")
        seen.add(member.filename.lower())


def _check_ratio(unpacked: int, packed: int, bounds: Bounds) -> None:
    if unpacked > _RATIO_FROM and unpacked > bounds.ratio * packed:
        ratio = unpacked // max(packed, 1)
        raise FileRefused.too_large("unpacked bytes per packed one", bounds.ratio, ratio, _REMEDY)


def _leads_elsewhere(name: str) -> bool:
    parts = name.split("/")
    return name.startswith("/") or "\\" in name or "\0" in name or ":" in parts[0] or ".." in parts or "" in parts[:-1]
