"""Memory that a step frees is kept for the next one.

A step makes and frees some thousand tensors. glibc's malloc maps each of the larger ones from the system and gives it
back, though the next step asks for the same again: every page is then cleared and mapped anew.
"""

from __future__ import annotations

import ctypes
from typing import Any

# glibc's malloc.h: what is kept at the end of the heap, what is added to it at once, and from what size on a piece is
# mapped by itself; the last is the most that it allows.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 64 * 2**20, _MMAP_THRESHOLD: 32 * 2**20}


def keep_freed_memory(library: Any = None) -> bool:
    """Have this process keep what it frees, up to its end; whether its C library could be told.

    Other allocators keep it by themselves: musl's and macOS's have no ``mallopt``, and one that is preloaded has one of
    its own without effect, or is not asked.

    Args:
        library: the process's C library.
    """
    try:
        mallopt = (library or ctypes.CDLL(None)).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: on Windows a library must have a name
        return False
    return all(mallopt(parameter, value) for parameter, value in _SETTINGS.items())
