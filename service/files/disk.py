"""The folder of the jobs: held by one process, and what is read from and written to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path

from models.errors import TandemError
from service.files.slices import Slice

_SAMPLE = 4_000  # characters by which a file's language is told


def read_slices(path: Path) -> Iterator[Slice]:
    """The slices that reading a file wrote."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            yield Slice(tuple(one["segments"]), tuple(one["texts"]), one["markup"])


class DataInUse(TandemError):
    """Another server works on the folder. No fault of the settings: one that is just ending lets go of it."""


def sample_of(path: Path) -> str:
    """The beginning of a file's text."""
    texts: list[str] = []
    for one in read_slices(path):
        texts += one.texts
        if sum(map(len, texts)) > _SAMPLE:
            break
    return "\n".join(texts)[:_SAMPLE]


def hold(path: Path) -> BufferedWriter:
    """A file that this process has locked for itself: two that worked on the same jobs would translate them twice.

    Raises:
        DataInUse: another process holds it.
    """
    lock = path.open("ab")
    try:
        import fcntl
    except ImportError:  # not on every system
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise DataInUse(f"{path.parent}: another server works on the files here; give each its own data") from error
    return lock


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
