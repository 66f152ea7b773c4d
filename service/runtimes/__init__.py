"""What runs a bundle's graphs, behind one interface (``models.search.Graphs``). Each is imported when chosen."""

from __future__ import annotations

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import Graphs
from tandem.service.runtimes.placement import CPU, Placement

RUNTIMES = ("onnx", "torchscript", "torch")
_MISSING = "the runtime {!r} needs the package {!r}, which is not installed"


def resolve_device(runtime: str, device: str) -> str:
    """Where a runtime computes: ``cpu``, or a GPU of this machine such as ``cuda:0``.

    Args:
        runtime: one of ``RUNTIMES``.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``, the first GPU where there is one, for torch.

    Raises:
        ConfigError: no such device here, or the runtime cannot use it.
    """
    if device == "cpu" or (device == "auto" and runtime != "torch"):
        return "cpu"
    if runtime == "torchscript":
        raise ConfigError(f"runtime must be torch or onnx where device is {device!r}, but is {runtime!r}")
    try:
        if runtime == "onnx":
            from tandem.service.runtimes.onnx import device_name
        else:
            from tandem.service.runtimes.torch import device_name
    except ModuleNotFoundError as error:
        raise ConfigError(_MISSING.format(runtime, error.name)) from error
    return device_name(device)


def memory_of(runtime: str, device: str) -> int | None:
    """Bytes of memory that a GPU has, used or not; None of a CPU, and where the GPU's driver does not say.

    Args:
        runtime: that computes there.
        device: as ``resolve_device`` returns it.
    """
    if device == "cpu":
        return None
    if runtime == "onnx":
        from tandem.service.runtimes.onnx import total_memory
    else:
        from tandem.service.runtimes.torch import total_memory
    return total_memory(device)


def open_graphs(
    bundle: Bundle,
    runtime: str = "onnx",
    precision: str = "int8",
    threads: int = 1,
    placement: Placement = CPU,
) -> Graphs:
    """Load a bundle's graphs.

    Args:
        bundle: a loaded bundle.
        runtime: ``onnx``, ``torchscript`` or ``torch``.
        precision: which of the bundle's ONNX graphs, ``int8``, ``float32`` or ``float16``; of torch on a GPU
            ``float32``, ``float16`` or ``bf16``. On the CPU the torch runtimes compute in float32.
        threads: of one call on the CPU. With one, an answer does not depend on its batch-mates.
        placement: where and with what.

    Raises:
        ConfigError: unknown runtime, or its package is not installed.
        BundleError: the bundle lacks these graphs.
    """
    try:
        if runtime == "onnx":
            from tandem.service.runtimes.onnx import OnnxGraphs

            return OnnxGraphs(bundle, precision, threads, placement)
        if runtime == "torchscript":
            from tandem.service.runtimes.torchscript import TorchScriptGraphs

            return TorchScriptGraphs(bundle, threads)
        if runtime == "torch":
            from tandem.service.runtimes.torch import open_torch_graphs

            return open_torch_graphs(bundle, threads, precision, placement)
    except ModuleNotFoundError as error:
        raise ConfigError(_MISSING.format(runtime, error.name)) from error
    raise ConfigError(f"runtime must be one of {', '.join(RUNTIMES)}, but is {runtime!r}")


__all__ = ["RUNTIMES", "Placement", "memory_of", "open_graphs", "resolve_device"]
