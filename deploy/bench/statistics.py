"""Medians and spread over passes, and what machine and versions a figure was measured with."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

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
_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp", "i8mm")


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
    return {
        "processor": _processor(),
        "features": _features(),
        "cores": os.cpu_count() or 1,
        "usable_cores": usable_cores(),
        "threads": threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or "unknown"


def _features() -> list[str]:
    """The instructions that speed up matrix products, as far as the system tells."""
    known = set((_cpuinfo("flags") or _cpuinfo("Features")).split())
    return [feature for feature in _FEATURES if feature in known]


def _cpuinfo(key: str) -> str:
    """The first value of a key of Linux's /proc/cpuinfo; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), "")
