"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def is_vacant(out: Path) -> bool:
    """Whether nothing is at the path, or an empty folder, so that nothing can be lost there."""
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of ``out`` when the block ends and vanishes if it raises."""
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        _replace(out, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _replace(out: Path, partial: Path) -> None:
    """Put ``partial`` in the place of ``out``; at no moment is ``out`` half written."""
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    if out.exists():
        out.rename(old)
    partial.rename(out)
    shutil.rmtree(old, ignore_errors=True)
