"""A module of tensors as an ONNX graph, and how the operators that models define are written there."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx
import torch
from onnxscript import opset18
from torch import Tensor, nn
from torch._dynamo import config as tracing
from torch.fx.experimental import _config as symbolic_shapes

import tandem.models.architectures.layers.recurrent  # noqa: F401  (defines tandem::gru)

Translations = Mapping[Callable[..., Any], Callable[..., Any]]
Given = Mapping[str, tuple[Tensor, Mapping[int, Any]]]
"""Inputs by name: one to trace with, and its free axes, each with its ``torch.export.Dim``."""
OPSET = 18
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


TRANSLATIONS: Translations = {torch.ops.tandem.gru.default: _gru}


def traced(module: nn.Module, inputs: Given, outputs: Sequence[str]) -> onnx.ModelProto:
    """The graph of a module whose ``forward`` takes ``*tensors``; ``outputs`` are their names."""
    # Size-oblivious tracing does not single out the sizes 0 and 1, and is several times faster on these graphs.
    oblivious = symbolic_shapes.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    # A cache of results by shape: proving that two symbolic shapes are one costs more than computing the result again.
    uncached = tracing.patch(fake_tensor_cache_enabled=False)
    with _quiet(), torch.no_grad(), oblivious, uncached:
        program = torch.export.export(
            module,
            tuple(tensor for tensor, _ in inputs.values()),
            dynamic_shapes=(tuple(axes for _, axes in inputs.values()),),
            prefer_deferred_runtime_asserts_over_guards=True,  # rows % sentences == 0 is the caller's duty
        )
        exported = torch.onnx.export(
            program,
            input_names=list(inputs),
            output_names=outputs,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
            custom_translation_table=dict(TRANSLATIONS),
        )
    assert exported is not None  # None only where a file is written
    return exported.model_proto


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress lines, no notes on optional packages, no deprecations inside the exporter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)
