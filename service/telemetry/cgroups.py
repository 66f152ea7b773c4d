"""What Linux's control groups leave this process of the machine's cores and memory, in a container above all.

The limits of every group from the process's own up to the mount's root hold at once, so the smallest one counts. Both
versions are read, and the mixture of the two. Files that are missing or hold something else count as no limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path("/")
_NO_LIMIT = 1 << 60  # version 1 writes the largest page-aligned number where there is none


def usable_cores(root: Path = ROOT) -> int:
    """Cores that this process may use, at least 1: those it may run on, or the whole cores of a smaller quota."""
    quota = cpu_quota(root)
    cores = affine_cores()
    return cores if quota is None else max(1, min(cores, int(quota)))


def affine_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_quota(root: Path = ROOT) -> float | None:
    """Seconds of processor time a second that the groups allow, such as 1.5; None = no limit.

    Args:
        root: where ``proc`` and ``sys`` are mounted.
    """
    quotas = []
    for group in _groups(root, "cpu"):
        both = _words(group / "cpu.max") or _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")
        quota, period = (_number(word) for word in both) if len(both) == 2 else (None, None)
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that the groups allow; None = no limit. ``root`` as for :func:`cpu_quota`."""
    limits = []
    for group in _groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            words = _words(group / name)
            limit = _number(words[0]) if len(words) == 1 else None
            if limit is not None and limit < _NO_LIMIT:
                limits.append(limit)
    return min(limits, default=None)


def machine_memory() -> int | None:
    """Bytes of the machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the groups that hold this process for a controller, each up to its mount's root."""
    mounts = root / "sys" / "fs" / "cgroup"
    for line in _text(root / "proc" / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "" and number == "0":
            mount = mounts if (mounts / "cgroup.controllers").is_file() else mounts / "unified"
        elif controller in controllers.split(","):
            mount = next((mounts / name for name in (controllers, controller) if (mounts / name).is_dir()), mounts)
        else:
            continue
        inner = PurePosixPath(path.strip().lstrip("/"))
        # A path that leads upwards, or that this mount does not show, is of another namespace: the root is ours then.
        yield from (mount / folder for folder in (inner, *inner.parents) if ".." not in folder.parts)


def _words(file: Path) -> list[str]:
    return _text(file).split()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(word: str) -> int | None:
    """A whole number, at least 0; None for "max", for -1 and for anything else."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) < 20 else None
