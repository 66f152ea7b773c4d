"""Plain numbers about a device's work, for metrics and benchmarks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class DeviceCounters:
    """Totals since the start; written by the threads that decode, one device each.

    Attributes:
        captures, capture_failures, evictions: graphs that were captured, attempts that failed, and graphs given up for
            want of memory or of places.
        replays, eager_steps: steps that replayed a graph, and steps that launched their kernels one by one.
        step_seconds: of the device in those steps.
        sentences: that joined a batch on the device.
        routed: sentences that went through the general search instead, by the option that the device does not have.
        unlisted: sentences, of either search, whose shortlist was not used.
        out_of_memory: times that the device's memory did not suffice.
    """

    captures: int = 0
    capture_failures: int = 0
    evictions: int = 0
    replays: int = 0
    eager_steps: int = 0
    step_seconds: float = 0.0
    sentences: int = 0
    routed: Counter[str] = field(default_factory=Counter)
    unlisted: int = 0
    out_of_memory: int = 0
