"""Telling a device that does not work any more, or has no memory left, from a step that went wrong."""

from __future__ import annotations

import torch

from models.device.transfer import wait_for
from models.errors import DeviceLost

_NO_ROOM = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory")
"""What libraries say that ask the driver for memory themselves, where torch's allocator raises an error of its own."""


def out_of_memory(error: BaseException) -> bool:
    """Whether a call failed as the device has no memory left."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_ROOM)
    )


def lost(device: torch.device, error: BaseException) -> DeviceLost | None:
    """What to raise where, after an error, the device answers no more; None where it does, and on the CPU.

    Some errors of CUDA (an illegal address, a bus error, a GPU that fell off the bus) are returned by every later call
    in the process, and only another process can use the device again.
    """
    if device.type != "cuda" or out_of_memory(error) or not isinstance(error, RuntimeError):
        return None
    try:
        wait_for(device)
    except RuntimeError as lasting:
        return DeviceLost(f"{device} does not work any more: {str(lasting).splitlines()[0]}")
    return None
