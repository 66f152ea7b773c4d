"""The beam step behind the logits, operator by operator: :mod:`models.steps.continuations` and
:mod:`models.steps.shortlisted` as nodes that are joined to a graph.

They depend on the vocabulary's size alone. The graphs that search are made of the one that returns all logits, in
whatever precision that is.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V vocabulary, W entries, N blocks, C candidates, J
bans, M = C + J.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from tandem.models.search.graphs import GraphSpec, TensorSpec
from tandem.models.steps.numbers import SPARE, SPREAD, block_width
from tandem.training.export.editing import Editor, Writer


def search_graph(step_logits: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """A ``step`` graph as ``spec`` declares it; ``step_logits`` stays as it is."""
    model = onnx.ModelProto.FromString(step_logits.SerializeToString())
    declare(model, spec)
    editor = Editor(model)
    sentences = next(tensor.name for tensor in spec.inputs if tensor.kind == "memory")
    write = Writer(editor, "search")
    _best_continuations(write, int(spec.input("banned").padding), sentences)
    editor.nodes += write.nodes
    return editor.finish()


def declare(model: onnx.ModelProto, spec: GraphSpec) -> None:
    """Give a ``step_logits`` graph the inputs and outputs of one that searches; what makes them is still to come."""
    inputs = {value.name: value for value in model.graph.input}
    new_state = [value for value in model.graph.output if value.name != "logits"]
    results = spec.outputs[: len(spec.outputs) - len(new_state)]
    del model.graph.input[:], model.graph.output[:]
    model.graph.input.extend(inputs[t.name] if t.name in inputs else declared(t) for t in spec.inputs)
    model.graph.output.extend([*map(declared, results), *new_state])


def declared(tensor: TensorSpec, name: str = "") -> onnx.ValueInfoProto:
    """An input or output as the spec describes it; ``name``: that it has in the file, where another."""
    sizes = [int(axis[6:]) if axis.startswith("fixed:") else axis for axis in tensor.axes]
    return helper.make_tensor_value_info(
        name or tensor.name, helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), sizes
    )


def _best_continuations(write: Writer, size: int, sentences: str) -> None:
    """:func:`models.steps.continuations.best_continuations`; of ``sentences`` only their number counts."""
    last, one, zero = write.ints(-1), write.ints(1), write.number(0)
    minus_infinity, start_1 = write.number(-math.inf), write.ints(0)
    count = write("Reshape", "count", last)
    score_RV = write("LogSoftmax", "logits", axis=-1)
    best_RC, token_RC = _best_allowed(write, score_RV, count, size)
    first_R1 = write("Slice", token_RC, start_1, one, one)
    held = (write("GatherElements", scores, first_R1, axis=1) for scores in ("logits", score_RV))
    write("Squeeze", write("Sub", *held), one, into="logsumexp")

    forced_R1 = write("Unsqueeze", "forced", one)
    is_forced_R1 = write("GreaterOrEqual", forced_R1, zero)
    alone_R1 = write("GatherElements", score_RV, write("Max", forced_R1, zero), axis=1)
    is_first_C = write("Equal", write("Range", zero, "count", write.number(1)), zero)
    alone_RC = write("Where", is_first_C, alone_R1, minus_infinity)
    best_RC = write("Where", is_forced_R1, alone_RC, best_RC)
    token_RC = write("Where", is_forced_R1, forced_R1, token_RC)

    by_sentence = write("Concat", write("Shape", sentences, start=0, end=1), last, axis=0)
    total_RC = write("Add", best_RC, write("Unsqueeze", "score", one))
    _, flat_BC = write.two("TopK", write("Reshape", total_RC, by_sentence), count, into=("scores", ""))
    write("GatherElements", write("Reshape", token_RC, by_sentence), flat_BC, axis=1, into="tokens")
    write("Div", flat_BC, "count", into="parents")


def _best_allowed(write: Writer, score_RV: str, count: str, size: int) -> tuple[str, str]:
    """J bans take away at most J of the best C + J: to look for them there spares a copy of all scores."""
    last, one = write.ints(-1), write.ints(1)
    banned_RJ = write("Pad", "banned", write.ints(0, 0, 0, 1), write.number(size))  # the runtime cannot sum up nothing
    more = write("Add", count, write("Shape", banned_RJ, start=1, end=2))
    best_RM, token_RM = _largest(write, score_RV, write("Min", more, write.ints(max(size, SPARE))), size)
    same_RMJ = write("Equal", write("Unsqueeze", token_RM, last), write("Unsqueeze", banned_RJ, one))
    penalty_RMJ = write("Where", same_RMJ, write.number(-math.inf), write.number(0.0))
    allowed_RM = write("Add", best_RM, write("ReduceSum", penalty_RMJ, last, keepdims=0))
    best_RC, place_RC = write.two("TopK", allowed_RM, count)
    return best_RC, write("GatherElements", token_RM, place_RC, axis=1)


def _largest(write: Writer, score_RV: str, count: str, size: int) -> tuple[str, str]:
    """:func:`models.steps.continuations.largest`."""
    width = block_width(size)
    if not width:
        if size >= SPARE:
            return write.two("TopK", score_RV, count)
        score_RV = write("Pad", score_RV, write.ints(0, 0, 0, SPARE - size), write.number(-math.inf))
        best_RC, token_RC = write.two("TopK", score_RV, count)
        return best_RC, write("Min", token_RC, write.number(size - 1))
    block_RNW = write("Reshape", score_RV, write.ints(-1, size // width, width))
    chosen = write("Min", count, write.ints(size // width))
    _, found_RM = write.two("TopK", write("ReduceMax", block_RNW, write.ints(-1), keepdims=0), chosen)
    block_RM, _ = write.two("TopK", found_RM, chosen, largest=0)
    held_RMW = write("GatherND", block_RNW, write("Unsqueeze", block_RM, write.ints(-1)), batch_dims=1)
    best_RC, at_RC = write.two("TopK", write("Reshape", held_RMW, write.ints(0, -1)), count)
    wide = write.number(width)
    rank_RC = write("Div", at_RC, wide)
    before_RC = write("Sub", write("GatherElements", block_RM, rank_RC, axis=1), rank_RC)
    return best_RC, write("Add", write("Mul", before_RC, wide), at_RC)


def write_best_listed(write: Writer, logits_RW: str, mean_R1: str, size: int) -> None:
    """:func:`models.steps.shortlisted.best_listed` of logits of the entries, and of the mean of all ``size``."""
    last, one, zero = write.ints(-1), write.ints(1), write.number(0)
    minus_infinity = write.number(-math.inf)
    sentences, entries = (write("Shape", "listed", start=at, end=at + 1) for at in (0, 1))
    by_sentence = write("Concat", sentences, last, axis=0)
    logits_BKW = write("Reshape", logits_RW, write("Concat", sentences, last, entries, axis=0))
    listed_BKW = write("Add", logits_BKW, write("Unsqueeze", "listed", one))
    masked_RW = write("Reshape", listed_BKW, write("Concat", last, entries, axis=0))
    rest_BK = write("Add", write("Reshape", mean_R1, by_sentence), _unlisted(write, size))
    lse_R1 = _log_sum_exp(write, masked_RW, write("Reshape", rest_BK, write.ints(-1, 1)), entries)
    write("Squeeze", lse_R1, one, into="logsumexp")

    offset_R1 = write("Sub", write("Unsqueeze", "score", one), lse_R1)
    forced_R1 = write("Unsqueeze", "forced", one)
    free_R1, only_R1 = write("Less", forced_R1, zero), write("Max", forced_R1, zero)
    total_RW = write("Add", masked_RW, write("Where", free_R1, offset_R1, minus_infinity))
    nothing_RJ = write("GreaterOrEqual", "banned", entries)
    penalty_RJ = write("Where", nothing_RJ, write.number(0.0), minus_infinity)
    within_RJ = write("Min", "banned", write("Sub", entries, one))
    total_RW = write("ScatterElements", total_RW, within_RJ, penalty_RJ, axis=1, reduction="add")
    alone_R1 = write("Add", write("GatherElements", masked_RW, only_R1, axis=1), offset_R1)
    alone_R1 = write("Where", free_R1, minus_infinity, alone_R1)
    total_RW = write("ScatterElements", total_RW, only_R1, alone_R1, axis=1, reduction="max")

    flat_BX = write("Reshape", total_RW, by_sentence)
    count = write("Min", write("Reshape", "count", last), write("Shape", flat_BX, start=1, end=2))
    _, place_BC = write.two("TopK", flat_BX, count, into=("scores", ""))
    write("Gather", "entries", write("Mod", place_BC, entries), axis=0, into="tokens")
    write("Div", place_BC, entries, into="parents")


def _unlisted(write: Writer, size: int) -> str:
    """Log of the number of tokens that a sentence does not list, and the spread: B x 1."""
    last = write.ints(-1)
    listed_B1 = write("ReduceSum", write("Exp", "listed"), last, keepdims=1)
    left_B1 = write("Sub", write.number(float(size)), listed_B1)
    return write("Add", _log(write, left_B1), write.number(SPREAD))


def _log_sum_exp(write: Writer, masked_RW: str, rest_R1: str, entries: str) -> str:
    """:func:`models.steps.shortlisted.log_sum_exp`."""
    last, one = write.ints(-1), write.number(1.0)
    most_R1 = write("Max", write("ReduceMax", masked_RW, last, keepdims=1), rest_R1)

    def terms(values: str) -> str:
        powers = write("Exp", write("Sub", values, most_R1))
        return write("Cast", write("Add", powers, one), to=TensorProto.DOUBLE)

    sum_R1 = write("Add", write("ReduceSum", terms(masked_RW), last, keepdims=1), terms(rest_R1))
    count = write("Cast", write("Add", entries, write.ints(1)), to=TensorProto.DOUBLE)
    narrow_R1 = write("Cast", write("Sub", sum_R1, count), to=TensorProto.FLOAT)
    return write("Add", most_R1, _log(write, narrow_R1))


def _log(write: Writer, x_N1: str) -> str:
    """``Log`` rounds by the place in the batch; the logarithm of a sum of one number is taken number by number."""
    return write("ReduceLogSum", x_N1, write.ints(-1), keepdims=1)
