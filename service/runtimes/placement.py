"""Where a runtime computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a runtime computes; but for the device this is for torch.

    Attributes:
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        sentences: that a batch shall have room for on a GPU.
        memory: share of a GPU's memory that this process may take.
    """

    device: str = "cpu"
    sentences: int = 256
    memory: float = 0.9
