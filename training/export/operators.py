"""How the operators that the models' layers define for export are written in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import torch
from onnxscript import opset18

import models.layers.recurrent  # noqa: F401  (defines tandem::gru)

op: Any = opset18  # its annotations tell the types of tensors apart, which no constant here has


def _gru(
    x_BSC: Any, lengths_B: Any, weight_GC: Any, recurrent_GD: Any, bias_G: Any, reverse: bool, reset_after: bool
) -> tuple[Any, Any]:
    """ONNX's GRU has our order of gates; sequences come first there, and each runs within its own length."""
    first = op.Constant(value_ints=[0])
    zeros_G = op.Mul(bias_G, op.Constant(value_float=0.0))
    h_SNBD, last_NBD = op.GRU(
        op.Transpose(x_BSC, perm=[1, 0, 2]),
        op.Unsqueeze(weight_GC, first),
        op.Unsqueeze(recurrent_GD, first),
        op.Unsqueeze(op.Concat(bias_G, zeros_G, axis=0), first),
        op.Cast(lengths_B, to=onnx.TensorProto.INT32),
        hidden_size=int(recurrent_GD.shape[1]),
        direction="reverse" if reverse else "forward",
        linear_before_reset=int(reset_after),
    )
    h_SBD = op.Squeeze(h_SNBD, op.Constant(value_ints=[1]))
    return op.Transpose(h_SBD, perm=[1, 0, 2]), op.Squeeze(last_NBD, first)


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {torch.ops.tandem.gru.default: _gru}
