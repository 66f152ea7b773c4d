"""A data folder for each replica of a node: the first one below the configured folder that no other replica holds.

Not named after the replica, whose name is new each time: what takes the place of one that has died finds its file jobs
and limits again. Not after Serve's rank either, for two replicas may have the same for a moment.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from models.errors import ConfigError
from service.files.disk import DataInUse, hold

_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that this process holds until ``close``, or until it ends however it may.

    Attributes:
        path: of the folder, which exists.
        lock: the open file that says so.
    """

    path: Path
    lock: BufferedWriter

    def close(self) -> None:
        """Let go of it."""
        self.lock.close()


def take_folder(root: Path) -> Folder:
    """The first of ``replica-0``, ``replica-1``, … in a folder that is free.

    Raises:
        ConfigError: the folder cannot be used, or there are too many replicas.
    """
    for number in itertools.count():
        path = root / f"replica-{number}"
        if number == _MANY:
            break
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Folder(path, hold(path / "replica.lock"))
        except DataInUse:
            continue
        except OSError as error:
            raise ConfigError(f"{path}: a replica's data cannot be kept here ({error.strerror})") from error
    raise ConfigError(f"{root}: all of {_MANY} folders for replicas are in use; give each node a folder of its own")
