"""``step_resident``: ``step`` with its pools kept where it runs, for a runtime that leaves state on a device.

``step`` returns the new entries of its pools and leaves it to search to write them. Here the pools come out with these
entries written, grown to as many slots as search asks for: they go from step to step without being looked at. So does
the mask of what each row sees, which ``step`` is given: its parent's, and the slot of its own new entry.
"""

from __future__ import annotations

import math

import onnx
from onnx import TensorProto, helper

from models.search.graphs import RESIDENT_CONTROLS, RESIDENT_GRAPH, SEEN_STATE, GraphSpec, TensorSpec
from training.export.editing import Editor, Writer

__all__ = ["RESIDENT_GRAPH", "resident_graph"]

_SEEN = "seen"  # the output: a file cannot give it the name that the input has


def resident_graph(step: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto | None:
    """The graph made of ``step``, which stays as it is; None for models without pools.

    Beside ``step``'s inputs it reads ``RESIDENT_CONTROLS``: the number of slots, and of each new entry the row that
    made it, its sentence and its slot. In the place of ``history`` it has ``SEEN_STATE``, that of the last step's rows.
    What each row sees comes out behind the other state, and then the pools in the order of the spec.
    """
    pools = spec.of_kind("pool")
    if not pools:
        return None
    model = onnx.ModelProto.FromString(step.SerializeToString())
    _declare(model.graph, pools)
    editor = Editor(model)
    before, after = Writer(editor, "resident"), Writer(editor, "resident.new")
    grown = {pool.name: _grown(before, pool) for pool in pools} | {"history": _seen(before)}
    for node in editor.nodes:
        node.input[:] = [grown.get(name, name) for name in node.input]
    _see(after, grown["history"])
    for pool in pools:
        _written(after, pool, grown[pool.name])
    editor.nodes = [*before.nodes, *editor.nodes, *after.nodes]
    made = editor.finish()
    onnx.checker.check_model(made, full_check=True)
    return made


def _grown(write: Writer, pool: TensorSpec) -> str:
    """The pool with as many slots as are asked for."""
    axis, rank = len(pool.axes) - 2, len(pool.axes)
    more = write("Sub", "slots", write("Shape", pool.name, start=axis, end=axis + 1))
    pads = write("Concat", write.shape(*[0] * (rank + axis)), more, write.shape(0), axis=0)
    return write("Pad", pool.name, pads)


def _seen(write: Writer) -> str:
    """What each row's parent saw, for as many slots as are asked for."""
    parents = write("Gather", SEEN_STATE, "parent", axis=0)
    more = write("Sub", "slots", write("Shape", SEEN_STATE, start=1, end=2))
    return write("Pad", parents, write("Concat", write.shape(0, 0, 0), more, axis=0), write.number(-math.inf))


def _see(write: Writer, seen: str) -> None:
    """The same with the slots of the new entries."""
    last = write.number(1, [1])
    entry_M2 = write("Concat", write("Unsqueeze", "place.row", last), write("Unsqueeze", "place.slot", last), axis=1)
    visible = write("Expand", write.number(0.0), write("Shape", "place.row"))
    write("ScatterND", seen, entry_M2, visible, to=_SEEN)


def _written(write: Writer, pool: TensorSpec, grown: str) -> None:
    """The pool with the new entries in their slots."""
    rank, last = len(pool.axes), write.number(1, [1])
    forth = [0, rank - 2, *range(1, rank - 2), rank - 1]
    back = [0, *range(2, rank - 1), 1, rank - 1]
    place_M2 = write("Concat", write("Unsqueeze", "place", last), write("Unsqueeze", "place.slot", last), axis=1)
    new = write("Gather", f"append.{pool.field}", "place.row", axis=0)
    by_slot = write("ScatterND", write("Transpose", grown, perm=forth), place_M2, new)
    write("Transpose", by_slot, perm=back, to=f"pool.{pool.field}")


def _declare(graph: onnx.GraphProto, pools: tuple[TensorSpec, ...]) -> None:
    """The inputs and outputs that differ from ``step``'s."""
    held = {pool.name: value for pool in pools for value in graph.input if value.name == pool.name}
    outputs = [value for value in graph.output if not value.name.startswith("append.")]
    outputs.append(helper.make_tensor_value_info(_SEEN, TensorProto.FLOAT, ["row", "slots"]))
    for pool in pools:
        value = onnx.ValueInfoProto()
        value.CopyFrom(held[pool.name])
        value.name = f"pool.{pool.field}"
        outputs.append(value)
    for value in held.values():  # a pool that is yet to grow has fewer slots than the history
        value.type.tensor_type.shape.dim[-2].dim_param = "held"
    del graph.output[:]
    graph.output.extend(outputs)
    inputs = [value for value in graph.input if value.name not in ("history", "parent")]
    inputs.append(helper.make_tensor_value_info("parent", TensorProto.INT64, ["row"]))
    inputs.append(helper.make_tensor_value_info(SEEN_STATE, TensorProto.FLOAT, ["old_row", "seen"]))
    del graph.input[:]
    graph.input.extend(inputs)
    sizes = {"slots": 1}
    graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.INT64, [sizes.get(name, "new")]) for name in RESIDENT_CONTROLS
    )
