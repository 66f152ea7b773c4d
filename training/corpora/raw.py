"""The folder of fetched files: finds what a corpus expects, wherever it lies, and reads it line by line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from models.errors import CorpusError

ARCHIVES = (".tgz", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
PACKED = (".gz", ".xz", ".bz2")
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that was found.

    Attributes:
        path: the file itself, or the archive that it is in.
        member: its name in the archive; ``""`` for a file of its own.
    """

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}, {self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """Its path with forward slashes, without what says how it is packed."""
        name = self.member or self.path.as_posix()
        return next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The unpacked content. Nothing is extracted to disk.

        Raises:
            CorpusError: it cannot be read, or is damaged (also while it is being read inside the ``with``).
        """
        with ExitStack() as stack:
            try:
                stream = self._stored(stack)
                if self.is_packed:
                    stream = stack.enter_context(_unpack(self.member or self.path.name, stream))
                yield stream
            except _DAMAGED as error:
                raise CorpusError(f"{self}: cannot be read, damaged or cut short ({error})") from error

    @property
    def is_packed(self) -> bool:
        """Whether the file itself is compressed."""
        return (self.member or self.path.name).endswith(PACKED)

    def _stored(self, stack: ExitStack) -> IO[bytes]:
        if not self.member:
            return stack.enter_context(self.path.open("rb"))
        if self.path.suffix == ".zip":
            return stack.enter_context(stack.enter_context(zipfile.ZipFile(self.path)).open(self.member))
        # Walked to the member, not looked up: a look-up reads the archive to its end first.
        archive = tarfile.open(self.path)  # noqa: SIM115 (closed by the stack, as all else here)
        stack.callback(archive.close)
        for entry in archive:
            if entry.name == self.member:
                return stack.enter_context(cast(IO[bytes], archive.extractfile(entry)))
        raise tarfile.TarError("the member is gone")

    def lines(self) -> Iterator[str]:
        """The lines without their ends; only ``\\n`` ends a line, as in `training.data.corpus`.

        Raises:
            CorpusError: as `open`, or a line is not UTF-8.
        """
        with self.open() as stream:
            for number, line in enumerate(stream, 1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise CorpusError(f"{self}, line {number}: not UTF-8 ({error.reason}); convert it first") from error
                yield text.removesuffix("\n").removesuffix("\r")

    def content(self) -> bytes:
        """All of it, for files that are small.

        Raises:
            CorpusError: as `open`.
        """
        with self.open() as stream:
            return stream.read()


def _unpack(name: str, stream: IO[bytes]) -> IO[bytes]:
    if name.endswith(".gz"):
        return cast(IO[bytes], gzip.open(stream))
    return cast(IO[bytes], lzma.open(stream) if name.endswith(".xz") else bz2.open(stream))


@dataclass(slots=True)
class RawFolder:
    """Every file below a folder, and in the archives there (which are listed only when something is missing)."""

    path: Path
    _files: dict[str, list[RawFile]] = field(default_factory=dict)
    _archives: list[Path] = field(default_factory=list)
    _listed: bool = False

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise CorpusError(f"{self.path} is not a folder: --raw names the one that the fetched files lie in")
        for path in sorted(self.path.rglob("*")):
            if path.is_file():
                if path.name.endswith(ARCHIVES):
                    self._archives.append(path)
                else:
                    self._add(RawFile(path))

    def find(self, names: tuple[str, ...]) -> RawFile | None:
        """The file that goes under one of the names: earlier names first, and files before members of archives.

        Raises:
            CorpusError: several files fit one name equally well, or an archive is damaged.
        """
        file = self._lookup(names)
        if file is None and not self._listed:
            self._list_archives()
            file = self._lookup(names)
        return file

    def _list_archives(self) -> None:
        self._listed = True
        faults = []
        for archive in self._archives:
            try:
                for member in _members(archive):
                    self._add(RawFile(archive, member))
            except CorpusError as error:
                faults.append(str(error))
        if faults:
            raise CorpusError("; ".join(faults))

    def _add(self, file: RawFile) -> None:
        self._files.setdefault(PurePosixPath(file.name).name, []).append(file)

    def _lookup(self, names: tuple[str, ...]) -> RawFile | None:
        for name in names:
            named = self._files.get(PurePosixPath(name).name, [])
            ranked: dict[tuple[bool, bool], list[RawFile]] = {}
            for file in named:
                if f"/{file.name}".endswith(f"/{name}"):
                    ranked.setdefault((bool(file.member), file.is_packed), []).append(file)
            if ranked:
                best = ranked[min(ranked)]
                if len(best) > 1:
                    raise CorpusError(f"{name} is there {len(best)} times, keep one: {'; '.join(map(str, best))}")
                return best[0]
        return None


def _members(archive: Path) -> list[str]:
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                return [entry.filename for entry in packed.infolist() if not entry.is_dir()]
        with tarfile.open(archive) as packed_tar:
            return [entry.name for entry in packed_tar if entry.isfile()]
    except _DAMAGED as error:
        raise CorpusError(f"{archive}: not a whole archive ({error})") from error
