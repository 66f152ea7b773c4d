"""`tandem backup`: a copy of what a server keeps, while it runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from deploy.commands.serving import read_settings
from models.errors import ConfigError
from service.storage.database import copy_database

_OF_DATABASES = ("*.db-wal", "*.db-shm", "*.db-journal", ".*.part")


def backup_command(target: Path, data: Path | None) -> None:
    """Copy the data folder: first each database, as of one moment and checked, then the files that they speak of.

    Raises:
        ConfigError: there is no data folder, or something in the target's place.
        StorageError: a database cannot be copied.
    """
    settings = read_settings({"data": data} if data else {})
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
    others = [one for one in source.iterdir() if one not in databases and not any(map(one.match, _OF_DATABASES))]
    for one in others:
        if one.is_dir():
            shutil.copytree(one, target / one.name, symlinks=True, copy_function=_copy_if_there)
        else:
            _copy_if_there(str(one), str(target / one.name))
    print(f"{len(databases)} databases and {len(others)} other entries of {settings.data} copied to {target}")


def _copy_if_there(source: str, target: str) -> None:
    """A file that a job has deleted meanwhile is no longer needed."""
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except FileNotFoundError:
        if not Path(target).parent.is_dir():
            raise
