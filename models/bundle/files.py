"""Names, hashes and safe paths of the files in a bundle."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MANIFEST, WEIGHTS, CARD, BUILT = "manifest.json", "weights.safetensors", "MODEL_CARD.md", "built.json"
GRAPHS, SHORTLIST = "graphs.json", "shortlist.safetensors"
MANIFEST_BYTES = 16 * 2**20  # far above any real one
# Formats that run code when they are opened; a bundle's weights come as safetensors.
PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz")


def sha256(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unsafe(relative: str) -> str | None:
    """Why a relative path is not one of a plain file below the folder, or None."""
    path = PurePosixPath(relative)
    if not relative or "\\" in relative or "\x00" in relative or ":" in relative:
        return f"{relative!r} is not a plain relative path"
    if path.is_absolute() or ".." in path.parts:
        return f"{relative!r} leads outside the bundle"
    if str(path) != relative:
        return f"{relative!r} is not a plain relative path"
    return None


def walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every file and link below a folder: its relative path, and whether it is a plain file. Follows no link."""
    for root, folders, names in os.walk(folder, followlinks=False):
        here = Path(root)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted((*names, *links)):
            path = here / name
            yield path.relative_to(folder).as_posix(), path.is_file() and not path.is_symlink()
