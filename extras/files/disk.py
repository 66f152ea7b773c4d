"""The folder of the jobs, and the uploads that are kept there."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog

from tandem.models.errors import ConfigError
from tandem.models.folders import sync_folder

_log = structlog.get_logger("tandem.files")


def require_rows(database: Path, folder: Path) -> None:
    """Raises ConfigError where the database was emptied: a start deletes the files of jobs that it does not know."""
    emptied = database.exists() and not database.stat().st_size
    if emptied and any(path.is_dir() for path in folder.iterdir()):
        raise ConfigError(
            f"{database}: is empty, although {folder} holds files of jobs; restore it from a backup, or move it away "
            "to start without them, which deletes these files"
        )


def remove(path: Path) -> None:
    """Delete a file, or a folder with everything in it; what stays nevertheless is logged."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
    if os.path.lexists(path):
        _log.error("not_deleted", path=str(path))


def whole(path: Path, size: int) -> os.stat_result | None:
    """What the system says of a file that has its size in bytes; None where it is missing or damaged.

    Raises:
        OSError: it cannot be read now.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return found if found.st_size == size else None


@dataclass(frozen=True, slots=True)
class Upload:
    """A request to translate a file.

    Attributes:
        name: of the file, without folders and control characters.
        format: see ``FORMATS``.
        source, target: language codes, or ``auto`` for the first.
        model: bundle to use; None = any.
        file: its content, from the beginning on.
        glossaries: stored ones of the caller, by id; of a term in several, the first one's counts.
        likeliest: whether a text in a language that is not served is taken to be in the likeliest that is.
        differ: whether a text that is detected to be in the target language already is a failed job.
    """

    name: str
    format: str
    source: str
    target: str
    model: str | None
    file: IO[bytes]
    glossaries: tuple[str, ...] = ()
    likeliest: bool = False
    differ: bool = False

    async def save(self, path: Path) -> int:
        """Write the file and put it on disk. Returns its bytes.

        Raises:
            OSError: it cannot be written.
        """
        return await asyncio.to_thread(_save, self.file, path)


def _save(file: IO[bytes], path: Path) -> int:
    with path.open("xb") as kept:
        shutil.copyfileobj(file, kept, 1 << 18)
        kept.flush()
        os.fsync(kept.fileno())
        size = kept.tell()
    sync_folder(path.parent)
    return size
