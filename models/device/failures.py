"""Telling a device that does not work any more from a step that went wrong."""

from __future__ import annotations

import torch

from models.device.transfer import wait_for
from models.errors import DeviceLost


def lost(device: torch.device, error: BaseException) -> DeviceLost | None:
    """What to raise where, after an error, the device answers no more; None where it does, and on the CPU.

    Some errors of CUDA (an illegal address, a bus error, a GPU that fell off the bus) are returned by every later call
    in the process, and only another process can use the device again.
    """
    if device.type != "cuda" or isinstance(error, torch.OutOfMemoryError) or not isinstance(error, RuntimeError):
        return None
    try:
        wait_for(device)
    except RuntimeError as lasting:
        return DeviceLost(f"{device} does not work any more: {str(lasting).splitlines()[0]}")
    return None
