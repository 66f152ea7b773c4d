"""Processes that do not find packages which are installed, or an extra of ours."""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {absent!r} else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if one is PathFinder else one for one in sys.meta_path]
"""


def link_package(folder: Path, *extras: str) -> None:
    """The package in a folder, as links, without some of its extras."""
    (folder / "tandem" / "extras").mkdir(parents=True)
    for package, left in (("tandem", ("extras",)), ("tandem/extras", extras)):
        for path in (ROOT / package).iterdir():
            if path.name not in (*left, "__pycache__"):
                (folder / package / path.name).symlink_to(path)


def hiding(absent: Set[str], folder: Path) -> dict[str, str]:
    """The environment of such a process, with this repository; ``folder`` is written to."""
    (folder / "sitecustomize.py").write_text(_WITHOUT.format(absent=set(absent)), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
