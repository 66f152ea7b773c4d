"""Graphs that share one file of weights.

Tensors of equal bytes are stored once, whichever graphs name them and however; the runtime maps the file into memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import external_data_helper

WEIGHTS_FILE = "weights.bin"
INLINE_BYTES = 1024  # smaller tensors stay inside the graph
ALIGNMENT, PAGE = 64, 4096  # of every tensor, and of those of at least a page


def pack(graphs: Mapping[str, onnx.ModelProto]) -> dict[str, bytes]:
    """The files of one precision: ``<graph>.onnx`` each, and the weights they share.

    The models are emptied of their larger weights. The same graphs give the same bytes.
    """
    weights = bytearray()
    places: dict[bytes, int] = {}
    for model in graphs.values():
        for tensor in model.graph.initializer:
            if not tensor.HasField("raw_data") or len(tensor.raw_data) < INLINE_BYTES:
                continue
            content = tensor.raw_data
            if content not in places:
                weights += bytes(-len(weights) % (PAGE if len(content) >= PAGE else ALIGNMENT))
                places[content] = len(weights)
                weights += content
            external_data_helper.set_external_data(tensor, WEIGHTS_FILE, places[content], len(content))
            tensor.ClearField("raw_data")
    files = {f"{name}.onnx": model.SerializeToString(deterministic=True) for name, model in graphs.items()}
    return {**files, WEIGHTS_FILE: bytes(weights)}
