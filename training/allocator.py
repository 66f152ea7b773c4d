"""Which allocator this process has: glibc's costs a training step on a CPU a fifth of its time.

A step makes and frees some thousand tensors of up to 30 MB whose sizes change with every batch. glibc searches its free
lists for each, and gives memory back to the system that comes again page by page, cleared. tcmalloc and jemalloc keep
what they get, sorted by size. An allocator can only be chosen when a process starts (``LD_PRELOAD``), so it is advised
and not set.
"""

from __future__ import annotations

import re
from pathlib import Path

_OTHERS = re.compile(r"/lib(tcmalloc|jemalloc|mimalloc)[^/]*$", re.MULTILINE)
_GLIBC = "/libc.so.6"
_MAPPED = Path("/proc/self/maps")  # of Linux

ADVICE = "tcmalloc makes training on a CPU about a fifth faster: docs/training.md (Prepare and train) says how"


def advice(mapped: Path = _MAPPED) -> str | None:
    """What to say to someone who trains on this CPU; None with another allocator, or where glibc is not used."""
    if not mapped.exists():
        return None
    files = mapped.read_text(encoding="utf-8")
    return ADVICE if _GLIBC in files and not _OTHERS.search(files) else None
