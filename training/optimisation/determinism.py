"""The same numbers from the same run, also on a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


@contextmanager
def determinism(wanted: bool) -> Iterator[None]:
    """Have torch choose only algorithms that give the same result every time; put back what it did before.

    On one kind of GPU, with the same versions and the same number of processes, two runs then give the same weights. A
    CPU with one thread does so anyway. An operation without such an algorithm raises an error that names it.

    cuBLAS reads its workspace's layout when it is first used in the process; a value that the environment has already
    is left as it is.
    """
    if not wanted:
        yield
        return
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
        os.environ.get(_WORKSPACE),
    )
    os.environ.setdefault(_WORKSPACE, ":4096:8")
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.backends.cudnn.benchmark = before[2]
        if before[3] is None:
            del os.environ[_WORKSPACE]


def seed_of(*numbers: int) -> int:
    """One seed made of several numbers, such as a run's seed, a rank and an update."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
