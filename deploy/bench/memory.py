"""Resident memory of one system, measured in a process of its own: in a shared one nobody could tell whose it is."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from deploy.bench.systems import Opening, Task

_STATUS = Path("/proc/self/status")
_KEYS = {"VmRSS": "loaded", "VmHWM": "peak"}  # resident now, and at most since the process began


def measure_memory(opening: Opening, texts: Sequence[Sequence[str]], targets: Sequence[int | None]) -> dict[str, float]:
    """Megabytes (10^6 bytes) resident after loading, and the largest after decoding some batches on all workers.

    Args:
        opening: how to load the system.
        texts: of every batch.
        targets: tokens that each batch decodes, as :class:`deploy.bench.systems.Task` has them.

    Returns:
        ``loaded`` and ``peak``; empty where the system does not tell (anything but Linux).
    """
    if not _STATUS.exists():
        return {}
    # Spawned, not forked: a fork would begin with everything that this process holds.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_measure, opening, texts, targets).result()


def resident_megabytes() -> dict[str, float]:
    """This process: ``loaded`` now, ``peak`` since it began."""
    fields = (line.partition(":") for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines())
    values = {key: value.split() for key, _, value in fields}
    return {name: round(int(values[key][0]) * 1024 / 1e6, 1) for key, name in _KEYS.items()}


def _measure(opening: Opening, texts: Sequence[Sequence[str]], targets: Sequence[int | None]) -> dict[str, float]:
    system = opening.open()
    loaded = resident_megabytes()["loaded"]
    tasks = [Task(tuple(system.tokenise(batch)), target) for batch, target in zip(texts, targets, strict=True)]
    system.decode(tasks)
    system.close()
    return {"loaded": loaded, "peak": resident_megabytes()["peak"]}
