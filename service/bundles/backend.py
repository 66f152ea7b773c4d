"""Which runtime and which of its graphs a bundle is served with, by a fixed rule: nothing is measured."""

from __future__ import annotations

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.engine import Backend

_NARROW = ("float16", "bf16")


def backend_of(bundle: Bundle, runtime: str, precision: str, device: str = "cpu") -> Backend:
    """What a bundle runs on.

    Whether the bundle has these graphs, and the runtime's package is installed, is for opening to say.

    Args:
        bundle: a loaded bundle.
        runtime: ``onnx``, ``torchscript`` or ``torch``; on the CPU the torch runtimes compute in float32.
        precision: of ONNX graphs, ``int8``, ``float32`` or ``auto``: int8 where the bundle holds such graphs and its
            proof says that they answer as they should, else float32; what there is where it holds one alone. On a GPU
            ``float16``, ``float32``, with torch ``bf16``, or ``auto``, which is float16.
        device: ``cpu``, or a GPU such as ``cuda:0``.

    Raises:
        ConfigError: a precision that the runtime does not have there.
    """
    if device != "cpu":
        if precision == "int8":
            raise ConfigError(
                "precision must be float16, float32, bf16 or auto on a GPU: int8 graphs run on the CPU, for CUDA has no"
                " kernel for their products"
            )
        if (runtime, precision) == ("onnx", "bf16"):
            raise ConfigError("precision must be float16, float32 or auto with runtime onnx on a GPU: bf16 needs torch")
        return Backend(runtime, "float16" if precision == "auto" else precision, device)
    if precision in _NARROW:
        raise ConfigError(f"precision {precision} needs runtime torch and a GPU as device: on the CPU it is slower")
    if runtime != "onnx":
        return Backend(runtime, "float32")
    if precision != "auto":
        return Backend(runtime, precision)
    trusted = "int8" in bundle.precisions and proven(bundle, "int8")
    return Backend(runtime, "float32" if "float32" in bundle.precisions and not trusted else "int8")


def proven(bundle: Bundle, precision: str) -> bool:
    """Whether the bundle's proof shows that ONNX graphs of a precision answer as they should."""
    return any(
        isinstance(verdict, dict) and verdict.get("runtime") == f"onnx {precision}" and verdict.get("passed") is True
        for verdicts in (bundle.manifest.proof.get(part) for part in ("exact", "quantised"))
        if isinstance(verdicts, list)  # a manifest may hold anything there
        for verdict in verdicts
    )
