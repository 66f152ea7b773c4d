"""Weights as safetensors: written in half precision, read back as float32, without any framework."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
from safetensors.numpy import save

from tandem.models.search.graphs import Array

_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
_HALF_MAX = float(np.finfo(np.float16).max)


def half_precision(weights: Mapping[str, Array], faults: list[str]) -> dict[str, Array]:
    """Floating-point tensors as fp16, others as they are; adds a fault for what fp16 cannot hold."""
    halves: dict[str, Array] = {}
    for name, array in weights.items():
        if not np.issubdtype(array.dtype, np.floating):
            halves[name] = np.ascontiguousarray(array)
            continue
        largest = float(np.abs(array).max(initial=0.0))
        if not largest <= _HALF_MAX:  # NaN too
            faults.append(f"weight {name!r} must be finite and at most {_HALF_MAX:g} for fp16, but reaches {largest:g}")
            continue
        halves[name] = np.ascontiguousarray(array.astype(np.float16))
    return halves


def write_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Write tensors as they are, in a fixed order, so that the same weights give the same bytes."""
    path.write_bytes(save({name: weights[name] for name in sorted(weights)}, metadata={"format": "np"}))


def read_weights(path: Path) -> dict[str, Array]:
    """Every tensor; fp16 and bf16 become float32.

    Raises:
        ValueError: the file is truncated, malformed or holds another dtype.
    """
    try:
        tensors = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise ValueError(f"not a safetensors file: {error}") from error
    return {name: _array(tensor["dtype"], tensor["shape"], tensor["data"]) for name, tensor in tensors}


def check_weights(path: Path) -> None:
    """Read the header only. Raises ValueError where the file is truncated or malformed."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            file.keys()
    except safetensors.SafetensorError as error:
        raise ValueError(f"not a safetensors file: {error}") from error


def _array(dtype: str, shape: list[int], data: bytes | bytearray) -> Array:
    if dtype == "BF16":  # the upper half of a float32
        widened: Array = np.frombuffer(data, "<u2").astype("<u4") << np.uint32(16)
        return widened.view("<f4").reshape(shape)
    if dtype not in _STORED:
        raise ValueError(f"dtype must be one of {(*_STORED, 'BF16')}, but is {dtype}")
    array: Array = np.frombuffer(data, _STORED[dtype])
    return array.astype(np.float32 if dtype.startswith("F") else array.dtype).reshape(shape)
