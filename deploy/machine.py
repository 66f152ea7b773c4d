"""The processor of this machine, for those who read measurements."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.telemetry.cgroups import ROOT, usable_cores

FEATURES = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_int8",
    "amx_bf16",
    "asimddp",
    "i8mm",
    "bf16",
)
"""What matters to matrix products, by the Linux kernel's names; on x86 those of x86, on ARM those of ARM."""


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor: its name, cores of the machine, those that this process may use, and whether it has features."""

    name: str
    cores: int
    usable_cores: int
    features: Mapping[str, bool]


def find_processor(root: Path = ROOT) -> Processor:
    """The processor of this machine. ``root`` is where ``proc`` and ``sys`` are mounted."""
    file = root / "proc" / "cpuinfo"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    values = dict(reversed(re.findall(r"^([^:\n]*?)\s*: *(.*)$", text, re.MULTILINE)))  # the first processor counts
    flags = (values.get("flags") or values.get("Features") or "").split()
    return Processor(
        name=values.get("model name") or platform.processor() or platform.machine() or "unknown",
        cores=os.cpu_count() or 1,
        usable_cores=usable_cores(root),
        features={name: name in flags for name in FEATURES} if flags else {},
    )
