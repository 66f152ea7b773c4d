"""Plain numbers about the engine's work; the metrics layer reads them, and so can a benchmark on a bare machine."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

# Upper bounds in seconds, 1 ms to 10 s.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


@dataclass(slots=True)
class Histogram:
    """Counts per upper bound (the last one unbounded), not cumulated, and the sum of all values."""

    bounds: tuple[float, ...] = SECONDS
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class EngineCounters:
    """Totals since the start. Written under the engine's lock.

    Attributes:
        steps: decoder steps of running batches (a sentence's first step, taken while it joins, is not one of them).
        sentence_steps: sum over steps of the sentences in the batch; divided by ``steps``, sentences per step.
        rows, dead_rows: rows decoded, and those of them that held no hypothesis.
        source_cells, source_padding: source positions read by steps, and the padded ones.
        slot_cells, slot_padding: pool slots read by steps, and those that no row of the sentence sees.
        source_tokens, target_tokens: of the sentences that joined, and of the best hypotheses that finished.
        joined, finished, cancelled, expired, failed: sentences by what became of them.
        cache_hits, cache_misses: look-ups in the result cache.
        rejected: requests refused before they waited, by reason.
        wait: seconds from admission until a sentence joined a batch.
        batch_rows: rows (sentences x hypotheses) of a step.
        step_seconds: seconds of a call by phase, ``encode`` or ``decode``.
    """

    steps: int = 0
    sentence_steps: int = 0
    rows: int = 0
    dead_rows: int = 0
    source_cells: int = 0
    source_padding: int = 0
    slot_cells: int = 0
    slot_padding: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    joined: int = 0
    finished: int = 0
    cancelled: int = 0
    expired: int = 0
    failed: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    wait: Histogram = field(default_factory=Histogram)
    batch_rows: Histogram = field(default_factory=lambda: Histogram(ROWS))
    step_seconds: dict[str, Histogram] = field(default_factory=lambda: {"encode": Histogram(), "decode": Histogram()})
