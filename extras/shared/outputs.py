"""Where a command writes, looked at before it works: nothing is lost to a path that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

from tandem.models.errors import ConfigError


def check_file(path: Path | None, option: str) -> None:
    """Refuse a file that cannot be written; its folder is made where it is missing.

    Raises:
        ConfigError: the path is a folder, or its folder cannot be made or written to.
    """
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        raise ConfigError(f"{option} must be a file, but {path} is a folder")
    check_folder(path.parent, option)
    if path.exists() and not os.access(path, os.W_OK):
        raise ConfigError(f"{option}: no permission to write {path}")


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a folder that cannot be written to; it is made where it is missing.

    Raises:
        ConfigError: there is something else at the path, or it cannot be made or written to.
    """
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{option}: cannot make the folder {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise ConfigError(f"{option}: no permission to write into {path}")
