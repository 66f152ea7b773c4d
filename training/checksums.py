"""CRC-32 of what a disk or a copy may damage without a word: checkpoints' tensors and prepared files.

It finds flipped bits, and cut or swapped blocks; it is no proof against somebody who means harm. A core counts about a
gigabyte a second: little beside writing it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # processes that read prepared files and no tensors need no torch
    from torch import Tensor

_BLOCK = 2**22


def text_checksum(*texts: str) -> int:
    """Of texts one after another."""
    return zlib.crc32("\0".join(texts).encode())


def tensor_checksum(tensor: Tensor) -> int:
    """Of a tensor's bytes, on the CPU and without gaps."""
    import torch

    return zlib.crc32(tensor.detach().reshape(-1).view(torch.uint8).numpy().data)


def file_checksum(path: Path) -> int:
    """Of a file's bytes."""
    found = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def folder_checksums(folder: Path) -> dict[str, int]:
    """Of every file below a folder, by its path there."""
    return {path.relative_to(folder).as_posix(): file_checksum(path) for path in sorted(_files(folder))}


def changed_files(folder: Path, checksums: Mapping[str, int]) -> list[str]:
    """The files that are missing, or no longer what they were."""
    return [
        name
        for name, checksum in checksums.items()
        if not (folder / name).is_file() or file_checksum(folder / name) != checksum
    ]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
