"""A search that lies where the model does: what an extra brings (``Extra.searches``), and what its owner counts on.

Without one the general search (:mod:`models.search`) decodes, whatever the device: the same hypotheses, but memory and
state go to the device and back at every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch

from tandem.models.search.start import SearchingGraphs
from tandem.models.steps.torch_graphs import AnyModel


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


class DeviceSearch(SearchingGraphs):
    """Graphs of a model and its search, both on the model's device.

    Attributes:
        device: where they lie.
        counters: of the device's work.
    """

    device: torch.device
    counters: DeviceCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRoom:
    """How much a search shall have room for; what is longer, or has more, goes through the general search.

    Attributes:
        sentences: of a batch, where the device's memory suffices.
        source: tokens of the longest source, EOS included.
        target: tokens of the longest hypothesis, EOS included.
        suppressed: tokens that every sentence suppresses.
        memory: share of the device's memory that this process may take.
    """

    sentences: int
    source: int
    target: int
    suppressed: int = 0
    memory: float = 1.0


OpenSearch: TypeAlias = Callable[[AnyModel, SearchRoom], DeviceSearch]
"""Opens a search over a model that is prepared for inference and lies where it shall run; it is not to be moved."""
