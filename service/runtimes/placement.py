"""Where a runtime computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and with what a runtime computes.

    Attributes:
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        sentences: that a batch of torch shall have room for on a GPU.
        memory: share of a GPU's memory that this process may take with torch.
        native: whether ONNX Runtime may use our own operators, where they are built.
    """

    device: str = "cpu"
    sentences: int = 256
    memory: float = 0.9
    native: bool = True


CPU = Placement()
