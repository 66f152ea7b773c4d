"""`tandem backup`: a copy of what a server keeps, while it runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.shared.database import copy_database
from tandem.models.errors import ConfigError
from tandem.service.configuration import DataFolder, data_flag, read_configuration
from tandem.service.errors import StorageError

_OF_DATABASES = ("*.db-wal", "*.db-shm", "*.db-journal", ".*.part")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to, a new folder.")],
    data: DataFolder = None,
) -> None:
    """Copy what a server keeps (keys, quotas, glossaries, translation memories, file jobs), also while it runs.

    First each database is copied, as of one moment and checked, then the files that they speak of.

    Example: tandem backup backups/2030-12-31
    """
    settings = read_configuration(data_flag(data)).settings
    if settings.data is None:
        raise ConfigError("there is no data folder to copy: set TANDEM_DATA, or give --data")
    if not settings.data.is_dir():
        raise ConfigError(f"{settings.data} is no folder; set TANDEM_DATA, or give --data, the server's data folder")
    source = settings.data.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} must be a new or an empty folder")
    if target.resolve().is_relative_to(source):
        raise ConfigError(f"{target} must lie outside of the data folder, which is copied")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        databases, others = _copy_all(source, target)
    except BaseException:
        _empty(target)  # half a backup looks like one
        raise
    print(f"{databases} databases and {others} other entries of {settings.data} copied to {target}")


def _copy_all(source: Path, target: Path) -> tuple[int, int]:
    """Returns how many databases and other entries were copied. Raises StorageError."""
    databases = sorted(source.glob("*.db"))
    for database in databases:
        copy_database(database, target / database.name)
    others = [path for path in source.iterdir() if path not in databases and not any(map(path.match, _OF_DATABASES))]
    for path in others:
        if path.is_dir():
            _copy_folder(path, target / path.name)
        else:
            _copy_if_there(path, target / path.name)
    return len(databases), len(others)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _copy_folder(source: Path, target: Path) -> None:
    """As ``shutil.copytree``, which fails where a job's folder is deleted meanwhile."""
    for folder, _, names in os.walk(source, onerror=lambda error: _refuse(Path(error.filename), error)):
        there = target / Path(folder).relative_to(source)
        there.mkdir(mode=0o700)
        for name in names:
            _copy_if_there(Path(folder, name), there / name)


def _copy_if_there(source: Path, target: Path) -> None:
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except OSError as error:
        _refuse(source, error)


def _refuse(source: Path, error: OSError) -> None:
    """What a job has deleted meanwhile is no longer needed."""
    if os.path.lexists(source):
        raise StorageError.of(f"{source} cannot be backed up", error) from error
