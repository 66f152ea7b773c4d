"""Where a runtime computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a runtime computes; but for the device this is for torch.

    Attributes:
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        sentences: that a batch shall have room for on a GPU.
        memory: share of a GPU's memory that this process may take.
        compiled: whether steps are compiled before they are captured on a GPU; ``auto`` = where that is faster.
        triton: whether a step on a GPU ends in one Triton kernel.
    """

    device: str = "cpu"
    sentences: int = 256
    memory: float = 0.9
    compiled: Literal["on", "off", "auto"] = "off"
    triton: bool = False
