"""Numbers of a step's search that PyTorch's functions share with the graphs that are written operator by operator."""

from __future__ import annotations

SPARE = 64
"""Candidates that can always be asked for, however small the vocabulary."""

BLOCKS = (100, 80, 128, 64, 96, 50, 40, 32)
"""Widths of the blocks that a large vocabulary is cut into, best first."""

LEAST_BLOCKED = 2_000
"""Smaller vocabularies are searched whole."""

SPREAD = 0.3
"""By how much the log of the mean of exp(logit) exceeds the mean logit: half the variance of logits that are normally
distributed, and 0.15 to 0.9 in trained models. Known only from all logits, and not worth their product."""

GRID = 2.0**24
"""Sums of up to 2^20 logits below 2^8, rounded to multiples of 1/GRID, are exact in float64."""


def block_width(size: int) -> int:
    """The width of the blocks that a vocabulary is cut into; 0 where it is searched whole."""
    return next((width for width in BLOCKS if size % width == 0), 0) if size >= LEAST_BLOCKED else 0
