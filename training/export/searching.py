"""``step`` from ``step_logits``: the search behind the logits, operator by operator.

What :func:`models.graphs.best_per_row` says in PyTorch, an exporter writes in half as many operators again, and at
small batches a step costs by the operator. Shape suffixes as there; W width of a block of the vocabulary, N blocks, M
of them chosen.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from models.graphs import BLOCKS, LEAST_BLOCKED, SPARE
from models.search.graphs import GraphSpec, TensorSpec
from training.export.editing import Editor, Writer


def search_graph(step_logits: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """A ``step`` graph as ``spec`` declares it; ``step_logits`` stays as it is."""
    model = onnx.ModelProto.FromString(step_logits.SerializeToString())
    declare(model, spec)
    editor = Editor(model)
    write = Writer(editor, "search")
    sentences = next(tensor.name for tensor in spec.inputs if tensor.kind == "memory")
    _search(write, sentences, int(spec.input("banned").padding))
    editor.nodes += write.nodes
    return editor.finish()


def declare(model: onnx.ModelProto, spec: GraphSpec) -> None:
    """Give a ``step_logits`` graph the inputs and outputs of one that searches; what makes them is still to come."""
    inputs = {value.name: value for value in model.graph.input}
    new_state = [value for value in model.graph.output if value.name != "logits"]
    searched = spec.outputs[: len(spec.outputs) - len(new_state)]
    del model.graph.input[:], model.graph.output[:]
    model.graph.input.extend(inputs[t.name] if t.name in inputs else _declared(t) for t in spec.inputs)
    model.graph.output.extend([*map(_declared, searched), *new_state])


def _declared(tensor: TensorSpec) -> onnx.ValueInfoProto:
    """An input or output as the spec describes it."""
    sizes = [int(axis[6:]) if axis.startswith("fixed:") else axis for axis in tensor.axes]
    return helper.make_tensor_value_info(tensor.name, helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), sizes)


def _search(write: Writer, sentences: str, size: int) -> None:
    rest, column, zero = write.number(-1, [1]), write.number(1, [1]), write.number(0)
    count = write("Reshape", "count", rest)
    scores_RV = write("LogSoftmax", "logits", axis=-1)
    best_RC, token_RC = _allowed(write, scores_RV, count, size)
    first_R1 = write("Gather", token_RC, write.number(0, [1]), axis=1)
    lse_R1 = write("Sub", *(write("GatherElements", one, first_R1, axis=1) for one in ("logits", scores_RV)))
    write("Squeeze", lse_R1, column, to="logsumexp")

    forced_R1 = write("Unsqueeze", "forced", column)
    is_forced_R1 = write("GreaterOrEqual", forced_R1, zero)
    alone_R1 = write("GatherElements", scores_RV, write("Max", forced_R1, zero), axis=1)
    later_C = write("Greater", write("Range", zero, "count", write.number(1)), zero)
    best_RC = write("Where", is_forced_R1, alone_R1, best_RC)
    best_RC = write("Where", write("And", is_forced_R1, later_C), write.number(-np.inf), best_RC)
    token_RC = write("Where", is_forced_R1, forced_R1, token_RC)

    total_RC = write("Add", best_RC, write("Unsqueeze", "score", column))
    by_sentence = write("Concat", write("Shape", sentences, start=0, end=1), rest, axis=0)
    _, place_BC = write.best(write("Reshape", total_RC, by_sentence), count, to="scores")
    write("GatherElements", write("Reshape", token_RC, by_sentence), place_BC, axis=1, to="tokens")
    write("Div", place_BC, "count", to="parents")


def _allowed(write: Writer, scores_RV: str, count: str, size: int) -> tuple[str, str]:
    """The ``count`` largest scores of each row that are not banned, and their tokens, R x C.

    J bans take away at most J of the best C + J: to look for them there spares a copy of all scores.
    """
    last, column = write.number(-1, [1]), write.number(1, [1])
    banned_RJ = write("Pad", "banned", write.shape(0, 0, 0, 1), write.number(size))  # the runtime cannot sum up nothing
    more = write("Add", count, write("Shape", banned_RJ, start=1, end=2))
    best_RM, token_RM = _largest(write, scores_RV, write("Min", more, write.number(max(size, SPARE), [1])), size)
    same_RMJ = write("Equal", write("Unsqueeze", token_RM, last), write("Unsqueeze", banned_RJ, column))
    penalty_RMJ = write("Where", same_RMJ, write.number(-np.inf), write.number(0.0))
    allowed_RM = write("Add", best_RM, write("ReduceSum", penalty_RMJ, last, keepdims=0))
    best_RC, place_RC = write.best(allowed_RM, count)
    return best_RC, write("GatherElements", token_RM, place_RC, axis=1)


def _largest(write: Writer, scores_RV: str, count: str, size: int) -> tuple[str, str]:
    """The ``count`` largest scores of each row and their tokens, R x C."""
    width = next((width for width in BLOCKS if size % width == 0), 0)
    if not width or size < LEAST_BLOCKED:
        if size < SPARE:  # enough columns to choose from, however small the vocabulary
            rows = write("Shape", scores_RV, start=0, end=1)
            spare = write(
                "Expand", write.number(-np.inf), write("Concat", rows, write.number(SPARE - size, [1]), axis=0)
            )
            scores_RV = write("Concat", scores_RV, spare, axis=1)
        best_RC, token_RC = write.best(scores_RV, count)
        return best_RC, write("Min", token_RC, write.number(size - 1)) if size < SPARE else token_RC
    blocks_RNW = write("Reshape", scores_RV, write.shape(-1, size // width, width))
    chosen = write("Min", count, write.number(size // width, [1]))
    _, found_RM = write.best(write("ReduceMax", blocks_RNW, write.number(-1, [1]), keepdims=0), chosen)
    # Blocks in their own order, so that of equal scores the one of the smaller token still comes first.
    block_RM, _ = write.best(found_RM, chosen, largest=False)
    held_RMW = write("GatherND", blocks_RNW, write("Unsqueeze", block_RM, write.number(-1, [1])), batch_dims=1)
    best_RC, at_RC = write.best(write("Flatten", held_RMW, axis=1), count)
    rank_RC = write("Div", at_RC, write.number(width))
    before_RC = write("Sub", write("GatherElements", block_RM, rank_RC, axis=1), rank_RC)
    return best_RC, write("Add", write("Mul", before_RC, write.number(width)), at_RC)
