"""One training at a time in a run's folder, and nothing left there of one that was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tandem.models.errors import CheckpointError

LOCK = "training.lock"
# Checkpoints that were being written: ours, and those that safetensors fills first.
_UNFINISHED = ("*.partial", ".tmp*")


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold a run's folder while training: two that write checkpoints there would take turns at overwriting them.

    The system lets go of it when the process ends, however it does. Where it has no such locks, or the folder is not
    there, nothing is held.

    Raises:
        CheckpointError: another process holds it; the message names it.
    """
    if not folder.is_dir():
        yield
        return
    handle = _held(folder / LOCK)
    try:
        yield
    finally:
        if handle is not None:
            (folder / LOCK).unlink(missing_ok=True)  # before it is let go of, so that nobody else's is removed
            os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes had begun to write into a folder of checkpoints; to be called while it is held."""
    for pattern in _UNFINISHED:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def _held(path: Path) -> int | None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return None
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise CheckpointError(
                f"{path.parent} is being trained in by another process (pid {holder}): wait for it or stop it, or"
                " choose another folder with --run"
            ) from error
        except OSError:  # a file system without locks
            os.close(handle)
            path.unlink(missing_ok=True)
            return None
        if _is_at(handle, path):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            return handle
        os.close(handle)  # who held it has removed it since it was opened


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
