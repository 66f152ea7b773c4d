"""`tandem backup`: a copy of what a server keeps, while it runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from models.errors import ConfigError
from service.configuration import DataFolder, data_flag, read_configuration
from service.storage.database import copy_database

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
    if settings.data is None or not settings.data.is_dir():
        raise ConfigError("there is no data folder to copy: set TANDEM_DATA, or give --data")
    source = settings.data.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} must be a new or an empty folder")
    if target.resolve().is_relative_to(source):
        raise ConfigError(f"{target} must lie outside of the data folder, which is copied")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    databases = sorted(source.glob("*.db"))
    for database in databases:
        copy_database(database, target / database.name)
    others = [path for path in source.iterdir() if path not in databases and not any(map(path.match, _OF_DATABASES))]
    for path in others:
        if path.is_dir():
            shutil.copytree(path, target / path.name, symlinks=True, copy_function=_copy_if_there)
        else:
            _copy_if_there(str(path), str(target / path.name))
    print(f"{len(databases)} databases and {len(others)} other entries of {settings.data} copied to {target}")


def _copy_if_there(source: str, target: str) -> None:
    """A file that a job has deleted meanwhile is no longer needed."""
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except FileNotFoundError:
        if not Path(target).parent.is_dir():
            raise
