"""What this machine offers: processor, memory, GPU, package versions, clock.

The processor's features come from Linux's ``/proc/cpuinfo``, which names them all, those among them that need the
kernel's consent (AMX) only where they have it. Elsewhere NumPy's own detection says what it knows. Libraries were
looked at: archspec is well kept, but reads the same file on Linux, and reports a processor that it has no name for, as
most virtual machines' are, by the nearest generic one, without its int8 instructions; py-cpuinfo sleeps for a second.
psutil knows nothing of a container's limits, which are what counts here (:mod:`service.telemetry.cgroups`).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

from service.telemetry.cgroups import ROOT, affine_cores, cpu_quota, machine_memory, memory_limit, usable_cores

X86_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
ARM_FEATURES = {"dotprod": "asimddp", "i8mm": "i8mm", "bf16": "bf16"}  # ours -> the kernel's name
_NUMPY_NAMES = {
    "AVX2": "avx2",
    "AVX512F": "avx512f",
    "AVX512VNNI": "avx512_vnni",
    "AVX512BF16": "avx512_bf16",
    "ASIMDDP": "dotprod",
}
ONNX_RUNTIMES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-qnn")
_PACKAGES = ("tandem", "onnxruntime", "onnxruntime-gpu", "torch", "numpy", "sentencepiece")
_SMI = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
_SMI_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor, and how much of it this process may use.

    Attributes:
        name: as the system calls it.
        architecture: ``x86_64``, ``aarch64``, ...
        cores: of the machine.
        affine_cores: that this process may run on.
        quota: processor seconds a second that its control groups allow; None = no limit.
        usable_cores: what remains, in whole cores.
        features: that matter to matrix products; those of which nothing is known are left out.
    """

    name: str
    architecture: str
    cores: int
    affine_cores: int
    quota: float | None
    usable_cores: int
    features: Mapping[str, bool]

    @property
    def is_x86(self) -> bool:
        return self.architecture.lower() in ("x86_64", "amd64", "i386", "i686", "x86")

    @property
    def has_vnni(self) -> bool | None:
        """Whether x86's products of 8-bit numbers are summed without saturation; None = not known."""
        known = [self.features[name] for name in ("avx512_vnni", "avx_vnni", "amx_int8") if name in self.features]
        return any(known) if known else None


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Bytes: of the machine, free for new work now, and the limit of the control groups; None = not known, no limit."""

    total: int | None
    available: int | None
    limit: int | None

    @property
    def bound(self) -> int | None:
        """What a process can have at most."""
        return min((size for size in (self.total, self.limit) if size is not None), default=None)


@dataclass(frozen=True, slots=True)
class Gpu:
    """What knows of a GPU.

    Attributes:
        nvidia_smi: per device its name, memory and driver; empty where there is none.
        onnxruntime_providers: what the installed ONNX Runtime was built with, which says nothing of devices.
        torch_devices: the CUDA devices that PyTorch sees; None where it is not installed.
    """

    nvidia_smi: tuple[str, ...]
    onnxruntime_providers: tuple[str, ...]
    torch_devices: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The clock behind deadlines and measurements: the kernel's source ("" = not known) and the resolution."""

    source: str
    resolution: float


def find_processor(root: Path = ROOT) -> Processor:
    """The processor of this machine. ``root`` is where ``proc`` and ``sys`` are mounted."""
    name, flags = parse_cpuinfo(_read(root / "proc" / "cpuinfo"))
    return Processor(
        name=name or platform.processor() or platform.machine() or "unknown",
        architecture=platform.machine(),
        cores=os.cpu_count() or 1,
        affine_cores=affine_cores(),
        quota=cpu_quota(root),
        usable_cores=usable_cores(root),
        features=named_features(flags, platform.machine()) if flags else _numpy_features(),
    )


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Name and flags of the first processor in the content of ``/proc/cpuinfo``; empty where it does not say."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    name = values.get("model name", "")
    if not name and "CPU part" in values:  # ARM gives numbers instead
        name = f"ARM implementer {values.get('CPU implementer', '?')} part {values['CPU part']}"
    return name, frozenset((values.get("flags") or values.get("Features") or "").split())


def named_features(flags: Collection[str], architecture: str) -> dict[str, bool]:
    """The features that matter on an architecture, from the kernel's flags."""
    if architecture.lower() in ("aarch64", "arm64"):
        return {name: flag in flags for name, flag in ARM_FEATURES.items()}
    return {name: name in flags for name in X86_FEATURES}


def _numpy_features() -> dict[str, bool]:
    try:
        found: Mapping[str, bool] = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # not part of NumPy's promises
        return {}
    of_arm = platform.machine().lower() in ("aarch64", "arm64")
    names = {name: ours for name, ours in _NUMPY_NAMES.items() if (ours in ARM_FEATURES) == of_arm}
    return {ours: bool(found[name]) for name, ours in names.items() if name in found}


def find_memory(root: Path = ROOT) -> MemoryFacts:
    """The memory of this machine and its limit. ``root`` as for :func:`find_processor`."""
    total, available = parse_meminfo(_read(root / "proc" / "meminfo"))
    if total is None:
        total = machine_memory()
    return MemoryFacts(total, available, memory_limit(root))


def parse_meminfo(text: str) -> tuple[int | None, int | None]:
    """Bytes in total and available from the content of ``/proc/meminfo``; None where it does not say."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            found[key.strip()] = int(words[0]) * 1024
    return found.get("MemTotal"), found.get("MemAvailable")


def find_gpu() -> Gpu:
    """What knows of a GPU here. Imports ONNX Runtime and PyTorch where they are installed."""
    return Gpu(_nvidia_smi(), _onnxruntime_providers(), _torch_devices())


def _nvidia_smi() -> tuple[str, ...]:
    if shutil.which(_SMI[0]) is None:
        return ()
    try:
        done = subprocess.run(_SMI, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip()) if done.returncode == 0 else ()


def _onnxruntime_providers() -> tuple[str, ...]:
    try:
        import_module("service.runtimes.onnx")  # turns telemetry off before it loads the library
        return tuple(import_module("onnxruntime").get_available_providers())
    except (ImportError, AttributeError):  # two distributions that overwrote each other may leave a hollow package
        return ()


def _torch_devices() -> tuple[str, ...] | None:
    try:
        import torch
    except ImportError:
        return None
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def find_versions() -> dict[str, str]:
    """Versions by package, those installed only; Python's own first."""
    return {"python": platform.python_version(), **_installed(_PACKAGES)}


def installed_onnx_runtimes() -> tuple[str, ...]:
    """The installed distributions that all bring the package ``onnxruntime``."""
    return tuple(_installed(ONNX_RUNTIMES))


def _installed(packages: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def find_clock(root: Path = ROOT) -> ClockFacts:
    """The clock. ``root`` as for :func:`find_processor`."""
    folder = root / "sys" / "devices" / "system" / "clocksource" / "clocksource0"
    source = _read(folder / "current_clocksource").strip()
    return ClockFacts(source, time.get_clock_info("monotonic").resolution)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
