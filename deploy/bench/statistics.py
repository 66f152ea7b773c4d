"""Medians and spread over passes, and what machine and versions a figure was measured with."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from deploy.machine import find_processor

_PACKAGES = (
    "tandem",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "sentencepiece",
    "ctranslate2",
    "transformers",
    "torch",
    "sacrebleu",
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A figure over several passes.

    Attributes:
        median: of the passes.
        spread: their interquartile range, in the unit of the figure; 0 for one pass.
    """

    median: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Raises ValueError where there is no value."""
        if not values:
            raise ValueError("a median needs at least one value")
        low, median, high = np.percentile(np.asarray(values, np.float64), (25, 50, 75))
        return cls(float(median), float(high - low))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of 100 are at most (linear between neighbours)."""
    return float(np.percentile(np.asarray(values, np.float64), percent))


def environment(threads: int) -> dict[str, Any]:
    """What a figure depends on besides the code.

    Args:
        threads: that the measured system may use.
    """
    processor = find_processor()
    return {
        "processor": processor.name,
        "features": [name for name, present in processor.features.items() if present],
        "cores": processor.cores,
        "usable_cores": processor.usable_cores,
        "threads": threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
