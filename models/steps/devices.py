"""Devices that torch computes on: which are here, waiting for one, and telling a lost one from a step gone wrong."""

from __future__ import annotations

import threading

import torch

from tandem.models.errors import ConfigError, DeviceLost

CAPTURING = threading.RLock()
"""Held while a graph is captured: there may be one at a time in a process, and none while a device is waited for."""
_NO_ROOM = ("_STATUS_ALLOC_FAILED", "CUDA error: out of memory", "can't allocate memory")
"""What libraries say that ask the driver for memory themselves, and torch on a CPU; on a GPU it has its own error."""


def check_device(name: str) -> torch.device:
    """The device of a name: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``, the first GPU where there is one, else the CPU.

    Raises:
        ConfigError: no such device here.
    """
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda:0" if there else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device must be cpu, cuda, cuda:N or auto, but is {name!r}") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise ConfigError(f"device must be cpu, cuda, cuda:N or auto, but is {name!r}")
    number = device.index or 0
    if number >= there:
        why = "this PyTorch is built without CUDA" if torch.version.cuda is None else f"PyTorch finds {there} here"
        raise ConfigError(f"device {name!r} is no GPU of this machine: {why}; look at nvidia-smi, or set device to cpu")
    return torch.device("cuda", number)


def wait_for(device: torch.device) -> None:
    """Wait until a device has done all that any thread asked for; a CPU has."""
    if device.type == "cuda":
        with CAPTURING:  # it would end the capture of another thread, and be refused
            torch.cuda.synchronize(device)


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
