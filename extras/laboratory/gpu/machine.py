"""The device: what it is, and what it moves and multiplies at most."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tandem.extras.laboratory.gpu.lines import Found
from tandem.extras.laboratory.gpu.search import synchronise

_DRIVER = Path("/proc/driver/nvidia/version")
_PASSES = 5


def described(device: str) -> dict[str, Any]:
    """The device in words and numbers."""
    found: dict[str, Any] = {"torch": torch.__version__, "python": platform.python_version(), "name": "CPU"}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        found |= {
            "name": properties.name,
            "count": torch.cuda.device_count(),
            "driver": driver_version(_DRIVER),
            "cuda": torch.version.cuda,
            "memory_gib": round(properties.total_memory / 2**30, 1),
            "multiprocessors": properties.multi_processor_count,
            "capability": f"{properties.major}.{properties.minor}",
        }
    return found


def driver_version(file: Path) -> str:
    """The kernel driver's version; empty where it does not say."""
    try:
        found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", file.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[0] if found else ""


def device(*, device: str, small: bool) -> Found:
    """What it is, and its two ceilings: bytes copied within its memory, and products of 16-bit matrices."""
    found = described(device)
    size = 2**20 if small else 2**30
    source = torch.rand(size, device=device)
    into = torch.empty_like(source)
    copied = _best(lambda: into.copy_(source), device)
    width = 256 if small else 8192
    left, right = (torch.randn(width, width, device=device).to(torch.bfloat16) for _ in range(2))
    multiplied = _best(lambda: left @ right, device)
    found["copy_gb_per_s"] = 2 * source.numel() * source.element_size() / copied / 1e9  # read and written
    found["bf16_tflop_per_s"] = 2 * width**3 / multiplied / 1e12
    rates = f"{found['copy_gb_per_s'] / 1e3:.2f} TB/s, bf16 {found['bf16_tflop_per_s']:.0f} TFLOP/s"
    if device != "cuda":
        return Found(f"CPU, torch {found['torch']}, {rates}", found)
    head = f"{found['name']}, driver {found['driver']}, torch {found['torch']}, {found['memory_gib']} GiB"
    return Found(f"{head}, {rates}", found)


def _best(run: Callable[[], Any], device: str) -> float:
    """Seconds of the quickest of some runs, after one that is not counted."""
    run()
    seconds = []
    for _ in range(_PASSES):
        synchronise(device)
        started = time.perf_counter()
        run()
        synchronise(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds)
