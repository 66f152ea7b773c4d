"""A file of lines in blocks that machines translate apart from each other, and their parts put together again.

Files are opened by ``pyarrow.fs``, which Ray Data brings along: a folder that all machines share, or an object store
by its address, ``s3://…`` or ``gs://…``. ``fsspec`` would do as well, and be one more package for each kind of store.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs  # type: ignore[import-untyped]

from deploy.bulk import BulkOptions, BulkTranslator, LineResult
from models.errors import ConfigError

LINES, BYTES = 1_000, 1 << 20  # of a block: enough to sort by length in, little enough to be done again
_PLAN, _CHUNK = "plan.json", 1 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file.

    Attributes:
        number: from 0.
        start: its first byte.
        size: in bytes.
        line: the number of its first line, from 1.
    """

    number: int
    start: int
    size: int
    line: int


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file of which each machine can open its own part.

    Attributes:
        address: a path or an address, as it was given.
    """

    address: str

    def open(self) -> tuple[Any, str]:
        """The file system, and the path in it. Raises ConfigError where there is no such system."""
        try:
            if "://" in self.address:
                found, path = fs.FileSystem.from_uri(self.address)
                return found, path
            return fs.LocalFileSystem(), str(Path(self.address).absolute())
        except (ValueError, OSError) as error:
            raise ConfigError(f"{self.address}: {error}") from error

    def __truediv__(self, name: str) -> SharedFile:
        return SharedFile(f"{self.address}/{name}")

    def is_same(self, other: SharedFile) -> bool:
        """Whether both are one file, by whatever names."""
        (system, path), (others, other_path) = self.open(), other.open()
        if not system.equals(others):
            return False
        if isinstance(system, fs.LocalFileSystem):
            return os.path.realpath(path) == os.path.realpath(other_path)
        return bool(path == other_path)

    @property
    def exists(self) -> bool:
        """Whether there is such a file."""
        system, path = self.open()
        return bool(system.get_file_info(path).type == fs.FileType.File)

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of it."""
        system, path = self.open()
        with system.open_input_file(path) as file:
            file.seek(start)
            return bytes(file.read(size))

    def write(self, data: bytes) -> None:
        """Make it, all at once: what stops in between leaves no half of it under its name."""
        system, path = self.open()
        if not isinstance(system, fs.LocalFileSystem):  # stores show an object when it is complete
            with system.open_output_stream(path) as file:
                file.write(data)
            return
        unfinished = f"{path}.unfinished"
        with system.open_output_stream(unfinished) as file:
            file.write(data)
        system.move(unfinished, path)


def cut(source: SharedFile) -> Iterator[Block]:
    """The blocks of a file, found by reading it once."""
    system, path = source.open()
    number, start, line, lines, size = 0, 0, 1, 0, 0
    with system.open_input_stream(path) as file:
        for one in _lines(file):
            lines, size = lines + 1, size + one
            if lines == LINES or size >= BYTES:
                yield Block(number, start, size, line)
                number, start, line, lines, size = number + 1, start + size, line + lines, 0, 0
    if size:
        yield Block(number, start, size, line)


def _lines(file: Any) -> Iterator[int]:
    """The sizes of lines with their ends; never more than a piece of the file is held."""
    begun = 0
    while piece := file.read(_CHUNK):
        *ended, rest = piece.split(b"\n")
        for part in ended:
            yield begun + len(part) + 1
            begun = 0
        begun += len(rest)
    if begun:
        yield begun


@dataclass(frozen=True, slots=True)
class FileTranslation:
    """The translation of one file, of which each block becomes a part in a folder beside the result.

    Attributes:
        source, target: the files.
        bundle: its folder, on every machine.
        options: how to translate.
    """

    source: SharedFile
    target: SharedFile
    bundle: str
    options: BulkOptions = BulkOptions()

    @property
    def parts(self) -> SharedFile:
        """The folder of the parts."""
        return SharedFile(f"{self.target.address}.parts")

    @property
    def report(self) -> SharedFile:
        """Where findings are listed, one JSON object a line."""
        return SharedFile(f"{self.target.address}.report.jsonl")

    def begin(self) -> None:
        """Make the folder of the parts, or find the one of an earlier run that did not end.

        Raises:
            ConfigError: there is no such source, or the earlier run translated something else, or otherwise.
        """
        system, path = self.source.open()
        info = system.get_file_info(path)
        if info.type != fs.FileType.File:
            raise ConfigError(f"{self.source.address}: there is no such file")
        manifest = hashlib.sha256((Path(self.bundle) / "manifest.json").read_bytes()).hexdigest()
        cuts = {"lines": LINES, "bytes": BYTES, "size": info.size, "changed": info.mtime_ns}
        plan = {"source": self.source.address, **cuts, "bundle": manifest, "options": asdict(self.options)}
        kept = self.parts / _PLAN
        if not kept.exists:
            system, path = self.parts.open()
            system.create_dir(path, recursive=True)
            kept.write(json.dumps(plan).encode())
            return
        before = json.loads(kept.read())
        differing = [name for name in plan if before.get(name) != json.loads(json.dumps(plan[name]))]
        if differing:
            raise ConfigError(
                f"{self.parts.address} was begun with another {' and '.join(differing)}; remove it to begin anew"
            )

    def pending(self) -> list[Block]:
        """The blocks that no earlier run has translated."""
        system, path = self.parts.open()
        done = {Path(info.path).name for info in system.get_file_info(fs.FileSelector(path))}
        return [block for block in cut(self.source) if _name(block) not in done]

    def translate(self, block: Block, translator: BulkTranslator) -> int:
        """Translate a block into its part. Returns how many of its lines are bad.

        Doing it twice is harmless: both write the same.
        """
        content = self.source.read(block.start, block.size)
        lines = content.removesuffix(b"\n").split(b"\n")
        records = translator.translate_block(lines)
        if findings := list(_findings(records, block.line)):
            (self.parts / f"{_name(block)}.report").write(b"".join(findings))
        # The part comes last: where there is one, the block is done.
        (self.parts / _name(block)).write(b"".join(record.data + b"\n" for record in records))
        return sum(record.bad for record in records)

    def join(self) -> None:
        """Put the parts together in their order, and remove them."""
        blocks = list(cut(self.source))
        _concatenate([self.parts / _name(block) for block in blocks], self.target)
        reports = [self.parts / f"{_name(block)}.report" for block in blocks]
        _concatenate([one for one in reports if one.exists], self.report)
        system, path = self.parts.open()
        system.delete_dir(path)


def _name(block: Block) -> str:
    return f"{block.number:09}"


def _findings(records: Sequence[LineResult], first: int) -> Iterator[bytes]:
    for line, record in enumerate(records, first):
        for finding in record.findings:
            entry = {"line": line, "reason": finding.reason, "detail": finding.detail, "bad": finding.bad}
            yield json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _concatenate(parts: Sequence[SharedFile], target: SharedFile) -> None:
    system, path = target.open()
    local = isinstance(system, fs.LocalFileSystem)
    if local:
        system.create_dir(str(Path(path).parent), recursive=True)
    with system.open_output_stream(f"{path}.unfinished" if local else path) as file:
        for part in parts:
            file.write(part.read())
    if local:
        system.move(f"{path}.unfinished", path)
