"""What tests on a GPU share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def no_waiting() -> Iterator[None]:
    """Within, whatever waits for the GPU is an error."""
    torch.cuda.synchronize()
    _debug("error")
    try:
        yield
    finally:
        _debug("default")


def _debug(mode: str) -> None:
    with warnings.catch_warnings():  # torch says every time that this is a prototype
        warnings.filterwarnings("ignore", "Synchronization debug mode", UserWarning)
        torch.cuda.set_sync_debug_mode(mode)
