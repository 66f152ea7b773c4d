"""A module of tensors as an ONNX graph, and how the operators that models and search define are written there."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx
import torch
from onnxscript import opset18
from torch import Tensor, nn
from torch._dynamo import config as tracing
from torch.fx.experimental import _config as symbolic_shapes

import models.architectures.layers.recurrent  # noqa: F401  (defines tandem::gru)
from models.steps.continuations import BLOCKS, LEAST_BLOCKED, SPARE

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


def _best_allowed(scores_RV: Any, banned_RJ: Any, count: Any) -> tuple[Any, Any]:
    """J bans take away at most J of the best C + J: to look for them there spares a copy of all scores."""
    size = int(scores_RV.shape[1])
    count = op.Reshape(count, _ints(-1))
    banned_RJ = op.Pad(banned_RJ, _ints(0, 0, 0, 1), op.Constant(value_int=size))  # the runtime cannot sum up nothing
    more = op.Add(count, op.Shape(banned_RJ, start=1, end=2))
    best_RM, token_RM = _largest(scores_RV, op.Min(more, _ints(max(size, SPARE))), size)
    same_RMJ = op.Equal(op.Unsqueeze(token_RM, _ints(-1)), op.Unsqueeze(banned_RJ, _ints(1)))
    penalty_RMJ = op.Where(same_RMJ, op.Constant(value_float=-math.inf), op.Constant(value_float=0.0))
    allowed_RM = op.Add(best_RM, op.ReduceSum(penalty_RMJ, _ints(-1), keepdims=0))
    best_RC, place_RC = op.TopK(allowed_RM, count)
    return best_RC, op.GatherElements(token_RM, place_RC, axis=1)


def _largest(scores_RV: Any, count: Any, size: int) -> tuple[Any, Any]:
    """:func:`models.steps.continuations.largest`."""
    width = next((width for width in BLOCKS if size % width == 0), 0)
    if not width or size < LEAST_BLOCKED:
        if size < SPARE:
            scores_RV = op.Pad(scores_RV, _ints(0, 0, 0, SPARE - size), op.Constant(value_float=-math.inf))
        best_RC, token_RC = op.TopK(scores_RV, count)
        return best_RC, op.Min(token_RC, op.Constant(value_int=size - 1)) if size < SPARE else token_RC
    blocks_RNW = op.Reshape(scores_RV, _ints(-1, size // width, width))
    chosen = op.Min(count, _ints(size // width))
    _, found_RM = op.TopK(op.ReduceMax(blocks_RNW, _ints(-1), keepdims=0), chosen)
    block_RM, _ = op.TopK(found_RM, chosen, largest=0)
    held_RMW = op.GatherND(blocks_RNW, op.Unsqueeze(block_RM, _ints(-1)), batch_dims=1)
    best_RC, at_RC = op.TopK(op.Flatten(held_RMW, axis=1), count)
    wide = op.Constant(value_int=width)
    rank_RC = op.Div(at_RC, wide)
    before_RC = op.Sub(op.GatherElements(block_RM, rank_RC, axis=1), rank_RC)
    return best_RC, op.Add(op.Mul(before_RC, wide), at_RC)


def _ints(*values: int) -> Any:
    return op.Constant(value_ints=list(values))


def _log(x_R1: Any) -> Any:
    """``Log`` rounds by the place in the batch; the logarithm of a sum of one number is taken number by number."""
    if int(x_R1.shape[-1]) != 1:
        raise NotImplementedError(f"the last axis must have one entry, but the shape is {x_R1.shape}")
    return op.ReduceLogSum(x_R1, _ints(-1), keepdims=1)


aten = torch.ops.aten
TRANSLATIONS: Translations = {
    torch.ops.tandem.gru.default: _gru,
    torch.ops.tandem.best_allowed.default: _best_allowed,
}
SEARCH_TRANSLATIONS: Translations = {
    **TRANSLATIONS,
    aten.log.default: _log,
    aten.div.Tensor_mode: lambda first, second, rounding_mode: op.Div(first, second),  # whole numbers, none negative
    aten.remainder.Scalar: lambda first, second: op.Mod(first, second),
    aten.index.Tensor: lambda values, places: op.Gather(values, *places),
    aten._local_scalar_dense.default: lambda number: op.Identity(number),
}
"""Those of what follows the logits, where the general ones take more operators."""


def traced(
    module: nn.Module, inputs: Given, outputs: Sequence[str], translations: Translations = TRANSLATIONS
) -> onnx.ModelProto:
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
            custom_translation_table=dict(translations),
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
