"""What runs a bundle where nobody waits: the options that commands which decode have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from models.bundle import Bundle
from models.command import (
    GpuCompile,
    GpuTriton,
    MaxBatchSentences,
    Precision,
    RuntimeThreads,
    UsedDevice,
    UsedRuntime,
)
from models.errors import ConfigError
from models.search import Graphs
from service.runtimes import Placement, open_graphs, resolve_device
from service.telemetry.cgroups import usable_cores

Opener = Callable[[Bundle, str, str, int, Placement], Graphs]
"""Opens graphs as :func:`service.runtimes.open_graphs` does."""
OF_A_GPU = ("max_batch_sentences", "gpu_compile", "gpu_triton")
"""Options that mean nothing elsewhere, and little for what is written: kernels round as they like."""


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What runs a bundle, and where. ``int8``, the default, means ``float16`` on a GPU.

    The last three are for torch on a GPU, named as the service's settings; where ``auto`` finds none they are dropped.
    """

    runtime: UsedRuntime = "onnx"
    precision: Precision = "int8"
    threads: RuntimeThreads = 1
    device: UsedDevice = "cpu"
    max_batch_sentences: MaxBatchSentences = 256
    gpu_compile: GpuCompile = "off"
    gpu_triton: GpuTriton = False

    def placed(self) -> Self:
        """The same with what device and precision stand for on this machine.

        Raises:
            ConfigError: no such device here, the runtime cannot use it, or an option is for a GPU.
        """
        plain: dict[str, Any] = {field.name: field.default for field in fields(self) if field.name in OF_A_GPU}
        wanted = any(getattr(self, name) != default for name, default in plain.items())
        if wanted and (self.runtime != "torch" or self.device == "cpu"):
            raise ConfigError(
                "--max-batch-sentences, --gpu-compile and --gpu-triton are for --runtime torch with a GPU as --device,"
                f" but these are {self.runtime} and {self.device}"
            )
        device = resolve_device(self.runtime, self.device)
        if device == "cpu":
            return replace(self, device=device, **plain)
        narrow = self.precision == "int8"
        return replace(self, device=device, precision="float16" if narrow else self.precision)

    def open_graphs(self, bundle: Bundle, opener: Opener = open_graphs) -> Graphs:
        """A bundle's graphs. Raises as ``placed`` and :func:`service.runtimes.open_graphs`."""
        own = self.placed()
        placement = Placement(own.device, own.max_batch_sentences, compiled=own.gpu_compile, triton=own.gpu_triton)
        return opener(bundle, own.runtime, own.precision, own.threads, placement)

    def processes(self, wanted: int) -> int:
        """How many processes decode where so many are wanted, 0 for one on each core; a GPU has enough of one."""
        return wanted or (usable_cores() if self.placed().device == "cpu" else 1)

    def __str__(self) -> str:
        own = self.placed()
        precision = own.precision if own.runtime == "onnx" or own.device != "cpu" else "float32"
        return f"{own.runtime} {precision}" + (f" on {own.device}" if own.device != "cpu" else "")
