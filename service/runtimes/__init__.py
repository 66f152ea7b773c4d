"""What runs a bundle's graphs, behind one interface (``models.search.Graphs``). Each is imported when chosen."""

from __future__ import annotations

from models.bundle import Bundle
from models.errors import ConfigError
from models.search import Graphs

RUNTIMES = ("onnx", "torchscript", "torch")


def open_graphs(bundle: Bundle, runtime: str = "onnx", precision: str = "int8", threads: int = 1) -> Graphs:
    """Load a bundle's graphs.

    Args:
        bundle: a loaded bundle.
        runtime: ``onnx``, ``torchscript`` or ``torch``.
        precision: which of the bundle's ONNX graphs, ``int8`` or ``float32``; the torch runtimes compute in float32.
        threads: of one call. With one, an answer does not depend on its batch-mates.

    Raises:
        ConfigError: unknown runtime, or its package is not installed.
        BundleError: the bundle lacks these graphs.
    """
    try:
        if runtime == "onnx":
            from service.runtimes.onnx import OnnxGraphs

            return OnnxGraphs(bundle, precision, threads)
        if runtime == "torchscript":
            from service.runtimes.torchscript import TorchScriptGraphs

            return TorchScriptGraphs(bundle, threads)
        if runtime == "torch":
            from service.runtimes.torch import open_torch_graphs

            return open_torch_graphs(bundle, threads)
    except ModuleNotFoundError as error:
        message = f"the runtime {runtime!r} needs the package {error.name!r}, which is not installed"
        raise ConfigError(message) from error
    raise ConfigError(f"runtime must be one of {', '.join(RUNTIMES)}, but is {runtime!r}")


__all__ = ["RUNTIMES", "open_graphs"]
