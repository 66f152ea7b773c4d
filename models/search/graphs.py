"""What search, engine and runtimes share about a model: named graphs of named tensors.

A bundle's ``graphs.json`` holds one ``GraphSpec`` per graph (``encode``, ``step``, ``step_logits``, ``step_shortlist``,
``align``). Whoever joins, drops, pads or reorders tensors reads the role of each axis there, and never asks which
architecture it is.

Axis roles
    ``sentence`` B; ``row`` R = B x K, sentence-major (row = b*K + k); ``old_row`` rows of the previous step;
    ``source0``, ``source1``, ... length of that source; ``slot`` P; ``ban`` J; ``candidate``; ``target`` T;
    ``entry`` W; ``fixed:N`` a constant size N.

Kinds
    ``memory`` what encode derives from the sources and step reads; ``init`` an encode output that starts the state of
    the same field; ``rows`` state reordered by ``parent`` inside the graph; ``pool`` append-only state, one pool of
    slots per sentence; ``append`` a row's new entry for the pool of the same field; ``attention`` of the align graph;
    anything else (``source``, ``control``, ``result``, ...) is found by name and its kind is only informative.

The ``align`` graph reads whole targets; one with state (``rows``, ``pool``) goes from position to position as steps do.

``step_shortlist`` is ``step`` over ``entries``, rising token ids that each sentence may use or not (``listed``, 0 or
-inf); those that it may not use keep their part of the probability (:mod:`models.steps.shortlisted`). ``banned`` and
``forced`` are places among the entries there (W or more bans nothing, ``forced`` is -1 or an entry), ``tokens`` are
token ids; there are fewer than ``count`` candidates where the entries are too few.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import BundleError

Array: TypeAlias = NDArray[Any]
GRAPHS_FORMAT = 1
DTYPES = ("float32", "float16", "int64", "int32", "bool")
_SIMPLE_AXES = ("sentence", "row", "old_row", "slot", "ban", "candidate", "target", "entry")
_STATE_INPUTS = ("token", "parent", "position")
_NEEDED_INPUTS = {
    "encode": (),
    "step": (*_STATE_INPUTS, "score", "banned", "forced", "count"),
    "step_logits": _STATE_INPUTS,
    "step_shortlist": (*_STATE_INPUTS, "score", "banned", "forced", "count", "entries", "listed"),
    "align": ("target",),
}
_NEEDED_OUTPUTS = {
    "encode": (),
    "step": ("scores", "tokens", "parents", "logsumexp"),
    "step_logits": ("logits",),
    "step_shortlist": ("scores", "tokens", "parents", "logsumexp"),
    "align": (),
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One named tensor: its dtype, the role of each axis, its padding value and its kind (see the module)."""

    name: str
    dtype: str
    axes: tuple[str, ...]
    padding: float
    kind: str

    @property
    def field(self) -> str:
        """The name without its first part: ``keys.0`` of ``state.keys.0``, ``append.keys.0`` and ``init.keys.0``."""
        return self.name.partition(".")[2]

    @property
    def fixed(self) -> tuple[int, ...]:
        """Sizes of the ``fixed:N`` axes, in order."""
        return tuple(int(axis[6:]) for axis in self.axes if axis.startswith("fixed:"))


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """The inputs and outputs of one graph, in the order of the exported file.

    Attributes:
        free_slots: whether slots of a pool that no row sees cost a step nothing, so that pools may have many.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    free_slots: bool = False

    def of_kind(self, *kinds: str) -> tuple[TensorSpec, ...]:
        """The inputs of these kinds."""
        return tuple(spec for spec in self.inputs if spec.kind in kinds)

    def outputs_of_kind(self, *kinds: str) -> tuple[TensorSpec, ...]:
        """The outputs of these kinds."""
        return tuple(spec for spec in self.outputs if spec.kind in kinds)

    def input(self, name: str) -> TensorSpec:
        """The input of that name. Raises KeyError where there is none."""
        return _named(self.inputs, name)

    def output(self, name: str) -> TensorSpec:
        """The output of that name. Raises KeyError where there is none."""
        return _named(self.outputs, name)


GraphSpecs: TypeAlias = Mapping[str, GraphSpec]


class Graphs(Protocol):
    """A runtime holding one model: runs a named graph on named NumPy arrays.

    ``run`` is given every input of the graph's spec and returns every output. It may return arrays that it reuses at
    the next call only if it copies them out first: search keeps what it is given.
    """

    @property
    def specs(self) -> GraphSpecs: ...
    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]: ...


def vocabulary_size(specs: GraphSpecs) -> int:
    """V: the padding of ``banned`` (an id that no token has), or the width of the logits."""
    if "step" in specs:
        return int(specs["step"].input("banned").padding)
    return specs["step_logits"].output("logits").fixed[-1]


def source_specs(specs: GraphSpecs) -> tuple[TensorSpec, ...]:
    """The encode inputs ``source0``, ``source1``, ... without their lengths."""
    return tuple(spec for spec in specs["encode"].inputs if not spec.name.endswith(".length"))


def align_steps(specs: GraphSpecs) -> bool:
    """Whether the align graph goes on from a state, one position at a time, instead of taking whole targets."""
    return "align" in specs and bool(specs["align"].of_kind("rows", "pool"))


def check_specs(specs: GraphSpecs) -> list[str]:
    """Every fault in the contract between the graphs, one sentence each; empty where they fit together."""
    faults = [f"there is no {name!r} graph" for name in ("encode", "step") if name not in specs]
    for graph, spec in specs.items():
        for tensor in (*spec.inputs, *spec.outputs):
            faults += [f"{graph}: {tensor.name}: {fault}" for fault in _tensor_faults(tensor)]
        for side, needed in ((spec.inputs, _NEEDED_INPUTS), (spec.outputs, _NEEDED_OUTPUTS)):
            names: Iterable[str] = needed.get(graph, ())
            if graph == "align" and side is spec.inputs and align_steps(specs):
                names = _STATE_INPUTS
            missing = set(names) - {tensor.name for tensor in side}
            faults += [f"{graph}: {name!r} is missing" for name in sorted(missing)]
        if graph != "encode":
            faults += [f"{graph}: {fault}" for fault in _state_faults(spec)]
        if graph != "encode" and "encode" in specs:
            made = {tensor.name for tensor in specs["encode"].outputs}
            faults += [
                f"{graph}: encode does not return {tensor.name!r}"
                for tensor in spec.of_kind("memory")
                if tensor.name not in made
            ]
    return faults


def specs_to_json(specs: GraphSpecs) -> str:
    """The content of ``graphs.json``."""

    def tensors(group: Iterable[TensorSpec]) -> list[dict[str, Any]]:
        return [
            {"name": t.name, "dtype": t.dtype, "axes": list(t.axes), "padding": _written(t.padding), "kind": t.kind}
            for t in group
        ]

    graphs = {name: {"inputs": tensors(g.inputs), "outputs": tensors(g.outputs)} for name, g in specs.items()}
    return json.dumps({"format": GRAPHS_FORMAT, "graphs": graphs}, indent=1) + "\n"


def specs_from_json(text: str, where: object = "graphs.json") -> dict[str, GraphSpec]:
    """The specs written by ``specs_to_json``.

    Raises:
        BundleError: not JSON, of a newer format, or graphs that do not fit together; every fault is listed.
    """
    try:
        content = json.loads(text)
        if content["format"] > GRAPHS_FORMAT:
            raise BundleError(where, [f"format {content['format']} is newer than {GRAPHS_FORMAT}; update tandem"])
        specs = {
            name: GraphSpec(_read(graph["inputs"]), _read(graph["outputs"]))
            for name, graph in content["graphs"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(where, [f"not a description of graphs: {error!r}"]) from error
    if faults := check_specs(specs):
        raise BundleError(where, faults)
    return specs


def _read(tensors: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(str(t["name"]), str(t["dtype"]), tuple(map(str, t["axes"])), float(t["padding"]), str(t["kind"]))
        for t in tensors
    )


def _written(padding: float) -> float | str:
    return padding if np.isfinite(padding) else str(padding)  # JSON has no infinity


def _named(tensors: Sequence[TensorSpec], name: str) -> TensorSpec:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise KeyError(name)


def _tensor_faults(tensor: TensorSpec) -> list[str]:
    faults = [] if tensor.dtype in DTYPES else [f"dtype must be one of {DTYPES}, but is {tensor.dtype!r}"]
    for axis in tensor.axes:
        head, _, size = axis.partition(":")
        known = axis in _SIMPLE_AXES or (axis.startswith("source") and axis[6:].isdecimal())
        if not known and not (head == "fixed" and size.isdecimal()):
            faults.append(f"axis {axis!r} has no known role")
    first = {"memory": "sentence", "init": "sentence", "pool": "sentence"}.get(tensor.kind)
    if first and tensor.axes[:1] != (first,):
        faults.append(f"the first axis of kind {tensor.kind!r} must be {first!r}, but is {tensor.axes[:1]}")
    if tensor.kind == "pool" and tensor.axes[-2:-1] != ("slot",):
        faults.append(f"the last axis but one of a pool must be 'slot', but is {tensor.axes[-2:-1]}")
    return faults


def _state_faults(spec: GraphSpec) -> list[str]:
    rows_out = {tensor.name for tensor in spec.outputs_of_kind("rows")}
    appended = {tensor.field for tensor in spec.outputs_of_kind("append")}
    faults = [f"{t.name!r} is not returned" for t in spec.of_kind("rows") if t.name not in rows_out]
    faults += [f"nothing is appended to {t.name!r}" for t in spec.of_kind("pool") if t.field not in appended]
    if spec.of_kind("pool") and "history" not in {tensor.name for tensor in spec.inputs}:
        faults.append("a graph with pools needs 'history'")
    return faults
