"""``step_resident``: ``step`` with its pools kept where it runs, for a runtime that leaves state on a device.

``step`` returns the new entries of its pools and leaves it to search to write them. Here the pools come out with these
entries written, grown to as many slots as search asks for: they go from step to step without being looked at.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from models.search.graphs import RESIDENT_CONTROLS, RESIDENT_GRAPH, GraphSpec, TensorSpec
from training.export.editing import Editor, Writer

__all__ = ["RESIDENT_GRAPH", "resident_graph"]


def resident_graph(step: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto | None:
    """The graph made of ``step``, which stays as it is; None for models without pools.

    Beside ``step``'s inputs it reads ``RESIDENT_CONTROLS``: the number of slots, and of each new entry the row that
    made it, its sentence and its slot. Pools come out in the order of the spec behind the other state.
    """
    pools = spec.of_kind("pool")
    if not pools:
        return None
    model = onnx.ModelProto.FromString(step.SerializeToString())
    _declare(model.graph, pools)
    editor = Editor(model)
    before, after = Writer(editor, "resident"), Writer(editor, "resident.new")
    grown = {pool.name: _grown(before, pool) for pool in pools}
    for node in editor.nodes:
        node.input[:] = [grown.get(name, name) for name in node.input]
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
    for pool in pools:
        value = onnx.ValueInfoProto()
        value.CopyFrom(held[pool.name])
        value.name = f"pool.{pool.field}"
        outputs.append(value)
    for value in held.values():  # a pool that is yet to grow has fewer slots than the history
        value.type.tensor_type.shape.dim[-2].dim_param = "held"
    del graph.output[:]
    graph.output.extend(outputs)
    sizes = {"slots": 1}
    graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.INT64, [sizes.get(name, "new")]) for name in RESIDENT_CONTROLS
    )
