"""Files and folders that appear whole or not at all, and folders that one process works on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path

from tandem.models.errors import DataInUse


def is_vacant(out: Path) -> bool:
    """Whether nothing is at the path, or an empty folder, so that nothing can be lost there."""
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An error of the disk names the file or folder, as that of a write does not by itself."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8; an error of the disk names it."""
    with named(path):
        path.write_text(text, encoding="utf-8", newline="\n")


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def complete_file(unfinished: Path, path: Path) -> None:
    """Put a written file in the place of ``path``: after a power cut what was there is, or the new one as a whole."""
    with named(unfinished), unfinished.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    sync_folder(path.parent)


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """An empty folder, which is gone when the block ends; what a killed process left of it goes first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def whole_folder(out: Path, beside: Path | None = None) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of ``out`` when the block ends and vanishes if it raises.

    Args:
        out: the folder.
        beside: what it is filled next to, on the same file system; ``out`` itself if absent.
    """
    place = beside or out
    partial, old = (place.with_name(f".{place.name}.{kind}-{os.getpid()}") for kind in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with named(out):
            yield partial
            replace_folder(out, partial, old)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_folder(out: Path, filled: Path, old: Path) -> None:
    """Put a folder in the place of ``out``; at no moment is ``out`` half written.

    Args:
        out: what may be there goes.
        filled: on the same file system.
        old: where what was there stands until then.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    existed = out.exists()
    if existed:
        out.rename(old)
    try:
        filled.rename(out)
    except OSError:
        if existed:
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


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
