"""What runs a bundle where nobody waits: the options that commands which decode have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from models.bundle import Bundle
from models.command import MaxBatchSentences, Precision, RuntimeThreads, UsedDevice, UsedRuntime
from models.errors import ConfigError
from models.search import Graphs
from service.runtimes import Placement, open_graphs, resolve_device
from service.telemetry.cgroups import usable_cores

Opener = Callable[[Bundle, str, str, int, Placement], Graphs]
"""Opens graphs as :func:`service.runtimes.open_graphs` does."""
_SENTENCES = 256  # of a batch on a GPU, unless it is told


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What runs a bundle, and where. ``int8``, the default, means ``float16`` on a GPU.

    The last is for torch on a GPU, named as the service's setting; where ``auto`` finds none it is dropped.
    """

    runtime: UsedRuntime = "onnx"
    precision: Precision = "int8"
    threads: RuntimeThreads = 1
    device: UsedDevice = "cpu"
    max_batch_sentences: MaxBatchSentences = _SENTENCES

    def placed(self) -> Self:
        """The same with what device and precision stand for on this machine.

        Raises:
            ConfigError: no such device here, the runtime cannot use it, or ``max_batch_sentences`` is for a GPU.
        """
        if self.max_batch_sentences != _SENTENCES and (self.runtime != "torch" or self.device == "cpu"):
            raise ConfigError(
                "--max-batch-sentences is for --runtime torch with a GPU as --device,"
                f" but these are {self.runtime} and {self.device}"
            )
        device = resolve_device(self.runtime, self.device)
        if device == "cpu":
            return replace(self, device=device, max_batch_sentences=_SENTENCES)
        narrow = self.precision == "int8"
        return replace(self, device=device, precision="float16" if narrow else self.precision)

    def open_graphs(self, bundle: Bundle, opener: Opener = open_graphs) -> Graphs:
        """A bundle's graphs. Raises as ``placed`` and :func:`service.runtimes.open_graphs`."""
        own = self.placed()
        placement = Placement(own.device, own.max_batch_sentences)
        return opener(bundle, own.runtime, own.precision, own.threads, placement)

    def processes(self, wanted: int) -> int:
        """How many processes decode where so many are wanted, 0 for one on each core; a GPU has enough of one."""
        return wanted or (usable_cores() if self.placed().device == "cpu" else 1)

    def __str__(self) -> str:
        own = self.placed()
        precision = own.precision if own.runtime == "onnx" or own.device != "cpu" else "float32"
        return f"{own.runtime} {precision}" + (f" on {own.device}" if own.device != "cpu" else "")
