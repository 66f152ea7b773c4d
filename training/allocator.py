"""Which allocator this process has: glibc's costs a training step on a CPU a fifth of its time.

A step makes and frees some thousand tensors of up to 30 MB whose sizes change with every batch, and oneDNN keeps small
things of its kernels between them. glibc searches ever longer lists of free pieces for each, and its heap grows with
the number of updates. tcmalloc keeps small and large apart. An allocator can only be chosen when a process starts
(``LD_PRELOAD``), so the `tandem` command starts itself once more to train, where it finds it; it is advised where it is
not there. jemalloc was no faster than glibc (docs/performance.md).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

PRELOAD = "LD_PRELOAD"
LIBRARIES = ("tcmalloc_minimal", "tcmalloc")  # in the order of preference

_OTHERS = re.compile(r"/lib(tcmalloc|jemalloc|mimalloc)[^/]*$", re.MULTILINE)
_GLIBC = re.compile(r"/libc(\.so\.6|-2\.\d+\.so)$", re.MULTILINE)  # its name since 2.34, and before
_COMMAND = (("tandem",), ("deploy", "__main__.py"))  # how the programs end that are the command and nothing else
_MAPPED = Path("/proc/self/maps")  # of Linux

ADVICE = (
    "tcmalloc makes training of most models on a CPU about a fifth faster, and is used where it is installed: "
    "docs/training.md (Prepare and train)"
)


def has_glibc_alone(mapped: Path = _MAPPED) -> bool:
    """Whether this process allocates with glibc; False with another allocator, another C library or another system."""
    if not mapped.exists():
        return False
    files = mapped.read_text(encoding="utf-8", errors="replace")
    return bool(_GLIBC.search(files)) and not _OTHERS.search(files)


def faster_allocator(find: Callable[[str], str | None] = find_library) -> str | None:
    """The name under which the loader of this system finds a faster allocator; None where none is installed."""
    return next((found for name in LIBRARIES if (found := find(name))), None)


def restart_with_faster_allocator() -> None:
    """Replace this process by the same command with a faster allocator, where one is installed; else return.

    Who has set ``LD_PRELOAD`` has chosen, with an empty one for glibc; and a process that was started again has it.
    A program that calls the command is not the command and stays as it is, with whatever it has done before.
    """
    if PRELOAD in os.environ or not _is_command() or not has_glibc_alone():
        return
    library = faster_allocator()
    if library is not None:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, PRELOAD: library})


def _is_command() -> bool:
    """Whether this process is the command, as it was called: nothing but arguments has to be given to it again."""
    parts = Path(sys.argv[0]).parts
    started_with = sys.orig_argv[len(sys.orig_argv) - len(sys.argv) + 1 :]
    return any(parts[-len(end) :] == end for end in _COMMAND) and sys.argv[1:] == started_with
