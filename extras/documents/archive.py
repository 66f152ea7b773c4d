"""Office documents are zip archives. What the directory of an archive claims is checked before anything is read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from tandem.extras.files.bounds import Bounds, FileRefused, Segment, SourceFile
from tandem.extras.files.formats.encoding import Text, other_type
from tandem.extras.files.formats.passages import Parts, Reading, Writing, rendered, segments_of

_ENCRYPTED = 0x1
_COMPOUND = b"\xd0\xcf\x11\xe0"  # an office document of the old kind, or what an encrypted one is wrapped in
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_RATIO_FROM = 1 << 20  # small members may be as repetitive as they like
_CHUNK = 1 << 16
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error)
_REMEDY = "save the document again with its own program, or split it"


@dataclass(slots=True)
class Package:
    """An office document's archive.

    Attributes:
        source: the file.
        archive: opened, and within the bounds.
        left: bytes of XML that may still be parsed.
    """

    source: SourceFile
    archive: zipfile.ZipFile
    left: int

    def has(self, name: str) -> bool:
        """Whether there is a member of that name."""
        return name in self.archive.NameToInfo

    def read(self, name: str) -> bytes:
        """A member to parse. Raises FileRefused where it is missing, or all of them are too much."""
        if not self.has(name):
            raise FileRefused.broken("the document lacks a part that it lists; save it again")
        self.left -= self.archive.getinfo(name).file_size
        if self.left < 0:
            bound = self.source.bounds.markup_bytes
            raise FileRefused.too_large("bytes of XML", bound, bound - self.left, "split the document")
        return self.archive.read(name)


Members: TypeAlias = Callable[[Package], Iterator[tuple[str, Text, Parts]]]
"""Divides those members of a package that have texts: name, text, and parts."""


def package_format(members: Members) -> tuple[Reading, Writing]:
    """The two functions of a format whose files are packages: ``read`` and ``write`` (see ``Format``)."""

    def read(source: SourceFile) -> Iterator[Segment]:
        with open_package(source) as package:
            for _, _, parts in members(package):
                yield from segments_of(parts, source.bounds.markup_characters)

    def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
        remaining = iter(translations)
        with open_package(source) as package:
            changed = {}
            for name, text, parts in members(package):
                new = rendered(parts, lambda: next(remaining), source.bounds.markup_characters)
                if new != text.characters:
                    changed[name] = text.bytes_of(new, "xmlcharrefreplace")
            rewrite(package.archive, changed, result)

    return read, write


@contextmanager
def open_package(source: SourceFile) -> Iterator[Package]:
    """An archive that keeps the bounds.

    Raises:
        FileRefused: no archive, broken, encrypted, with names that lead elsewhere, or over a bound.
    """
    path, bounds = source.path, source.bounds
    head = path.read_bytes()
    if head.startswith(_COMPOUND) and _ENCRYPTED_PACKAGE in head:
        raise encrypted()
    if not head.startswith(b"PK\x03\x04"):
        raise FileRefused.wrong_type(source.ending, other_type(head[:16]) or "no office document")
    with _opened(path) as archive:
        _check(archive.infolist(), path.stat().st_size, bounds)
        try:
            yield Package(source, archive, bounds.markup_bytes)
        except _DAMAGE as error:
            raise _damaged() from error


def encrypted() -> FileRefused:
    """A document with a password."""
    return FileRefused.broken("the document is encrypted; remove its password and send it again")


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
            raise encrypted()
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
