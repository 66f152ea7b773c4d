"""A model as the four graphs that search and runtimes know: the torch side of :mod:`models.search.graphs`.

Each graph is a module with flat tensors in and out, the same for every architecture; export traces these modules, and
:class:`TorchGraphs` runs them as they are. What an architecture's records hold is read from their declarations.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V target vocabulary, C candidates, J bans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tandem.models.architectures.protocol import Padded, Seq2SeqModel, feature_widths
from tandem.models.architectures.records import Memory, State
from tandem.models.search.graphs import Array, GraphSpec, TensorSpec
from tandem.models.steps.continuations import best_continuations
from tandem.models.steps.devices import lost
from tandem.models.steps.shortlisted import best_listed, mean_logit

GRAPH_NAMES = ("encode", "step", "step_logits", "align", "step_shortlist")
AnyModel = Seq2SeqModel[Any, Any]


def sample_sources(model: AnyModel, sentences: int, length: int) -> tuple[Padded, ...]:
    """Valid sources of a given size where the model lies, for reading shapes off it."""
    device = next(model.parameters()).device
    lengths = torch.full((sentences,), length, device=device)
    ids = torch.ones(sentences, length, dtype=torch.int64, device=device)
    widths = feature_widths(model.config)
    matrices = (torch.ones(sentences, length, width, device=device) if width else ids for width in widths)
    return tuple(Padded(values, lengths) for values in matrices)


def _spec(name: str, tensor: Tensor, axes: Sequence[str], kind: str, padding: float = 0.0) -> TensorSpec:
    """Axes named "fixed", and those beyond the named ones, are constants of the size found."""
    named = [*axes, *("fixed" for _ in range(tensor.dim() - len(axes)))]
    sized = (f"fixed:{size}" if axis == "fixed" else axis for axis, size in zip(named, tensor.shape, strict=True))
    dtype = torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype  # NumPy has no bfloat16
    return TensorSpec(name, str(dtype).removeprefix("torch."), tuple(sized), padding, kind)


def _control(name: str, *axes: str, dtype: str = "int64", padding: float = 0.0) -> TensorSpec:
    return TensorSpec(name, dtype, axes, padding, "control")


def _logits(model: AnyModel) -> TensorSpec:
    return TensorSpec("logits", "float32", ("row", f"fixed:{model.config.target_vocabulary}"), 0.0, "result")


class GraphModule(nn.Module):
    """One graph of one model: ``forward`` takes and returns flat tensors in the order of ``spec``."""

    spec: GraphSpec

    def __init__(self, model: AnyModel, memory: Memory, state: State) -> None:
        super().__init__()
        self.model = model
        self._memory_template, self._state_template = memory, state
        self.spec = GraphSpec(tuple(self._inputs()), tuple(self._outputs()))

    def _inputs(self) -> Iterator[TensorSpec]:
        raise NotImplementedError

    def _outputs(self) -> Iterator[TensorSpec]:
        raise NotImplementedError

    def _memory_specs(self) -> Iterator[TensorSpec]:
        for name, item, tensor in self._memory_template.tensors():
            own = f"source{name.rpartition('.')[2]}"  # of a tuple with one tensor per source
            axes = [own if axis == "source" else axis for axis in item.metadata["axes"]]
            yield _spec(f"memory.{name}", tensor, axes, "memory", item.metadata["padding"])

    def _state(self, kind: str) -> Iterator[tuple[str, Field[Any], Tensor]]:
        return (entry for entry in self._state_template.tensors() if entry[1].metadata["kind"] == kind)

    def kept_types(self) -> dict[str, torch.dtype]:
        """In which type the model keeps each tensor of its memory and state; search may know it as another."""
        parts = (("memory", self._memory_template), ("state", self._state_template))
        return {f"{part}.{name}": x.dtype for part, record in parts for name, _, x in record.tensors()}

    def _named(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        return {spec.name: tensor for spec, tensor in zip(self.spec.inputs, tensors, strict=True)}

    def _memory(self, values: Mapping[str, Tensor]) -> Memory:
        own = {name.removeprefix("memory."): x for name, x in values.items() if name.startswith("memory.")}
        return type(self._memory_template).rebuild(self._memory_template, own)


class EncodeGraph(GraphModule):
    """Sources -> memory, and the initial state where it depends on the sources."""

    def _inputs(self) -> Iterator[TensorSpec]:
        for index, width in enumerate(feature_widths(self.model.config)):
            axes = ("sentence", f"source{index}")
            if width:
                yield TensorSpec(f"source{index}", "float32", (*axes, f"fixed:{width}"), 0.0, "source")
            else:
                yield TensorSpec(f"source{index}", "int64", axes, 0.0, "source")
            yield TensorSpec(f"source{index}.length", "int64", ("sentence",), 1.0, "source")

    def _outputs(self) -> Iterator[TensorSpec]:
        yield from self._memory_specs()
        for name, item, tensor in self._state("rows"):
            if item.metadata["initial"]:
                yield _spec(f"init.{name}", tensor, ("sentence",), "init")

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        sources = tuple(Padded(ids, lengths) for ids, lengths in zip(tensors[::2], tensors[1::2], strict=True))
        memory = self.model.encode(sources)
        state = self.model.init_state(memory, 1)
        initial = [x for _, item, x in state.tensors() if item.metadata.get("initial")]
        return (*(x for _, _, x in memory.tensors()), *initial)


class _Stepping(GraphModule):
    """What the two step graphs share: the inputs that make a state, and the new state."""

    def _inputs(self) -> Iterator[TensorSpec]:
        yield _control("token", "row")
        yield _control("parent", "row")
        yield _control("position", "row")
        yield from self._search_inputs()
        if next(self._state("pool"), None) is not None:
            yield TensorSpec("history", "float32", ("row", "slot"), -math.inf, "history")
        for name, _, tensor in self._state("rows"):
            yield _spec(f"state.{name}", tensor, ("old_row",), "rows")
        for name, _, tensor in self._state("pool"):
            lead = ("fixed",) * (tensor.dim() - 3)
            yield _spec(f"state.{name}", tensor, ("sentence", *lead, "slot"), "pool")
        yield from self._memory_specs()

    def _search_inputs(self) -> Iterator[TensorSpec]:
        return iter(())

    def _new_state_specs(self) -> Iterator[TensorSpec]:
        for name, _, tensor in self._state("rows"):
            yield _spec(f"state.{name}", tensor, ("row",), "rows")
        for name, _, tensor in self._state("pool"):
            yield _spec(f"append.{name}", tensor.select(-2, 0), ("row",), "append")

    def _advance(self, values: Mapping[str, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Logits R x V and the new state's tensors in spec order."""
        features, update = self.model.advance_one(values["token"], self._reordered(values), self._memory(values))
        return self.model.project(features).float(), self._new_state(update)

    def _reordered(self, values: Mapping[str, Tensor]) -> State:
        """The state of the rows that the parents name."""
        parent, position = values["parent"], values["position"]
        own = {name.removeprefix("state."): x for name, x in values.items() if name.startswith("state.")}
        for name, _, _ in self._state("rows"):
            own[name] = own[name].index_select(0, parent)
        own["position_R"] = position
        own["history_RP"] = values.get("history", position.new_zeros(position.size(0), 0, dtype=torch.float32))
        return type(self._state_template).rebuild(self._state_template, own)

    def _new_state(self, update: Mapping[str, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        return tuple(x for kind in ("rows", "pool") for x in self._updated(update, kind))

    def _updated(self, update: Mapping[str, tuple[Tensor, ...]], kind: str) -> Iterator[Tensor]:
        seen = dict.fromkeys(item.name for _, item, _ in self._state(kind))
        return (tensor for name in seen for tensor in update[name])


class StepGraph(_Stepping):
    """One whole step of beam search: reorder, advance, score, best ``count`` of the K x V continuations."""

    def _search_inputs(self) -> Iterator[TensorSpec]:
        yield _control("score", "row", dtype="float32")
        yield _control("banned", "row", "ban", padding=float(self.model.config.target_vocabulary))
        yield _control("forced", "row", padding=-1.0)
        yield _control("count")

    def _outputs(self) -> Iterator[TensorSpec]:
        for name, dtype in (("scores", "float32"), ("tokens", "int64"), ("parents", "int64")):
            yield TensorSpec(name, dtype, ("sentence", "candidate"), 0.0, "result")
        yield TensorSpec("logsumexp", "float32", ("row",), 0.0, "result")
        yield from self._new_state_specs()

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        values = self._named(tensors)
        logits_RV, new = self._advance(values)
        return (*self._search(logits_RV, values), *new)

    def _search(self, logits_RV: Tensor, values: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Scores, tokens and parents of the best continuations, and the log-sum-exp of each row."""
        sentences = next(x for name, x in values.items() if name.startswith("memory.")).size(0)
        return best_continuations(logits_RV, values, sentences)


class StepShortlistGraph(StepGraph):
    """The same step over the entries that some sentence of the batch lists; bans and forced tokens are entries too."""

    def _search_inputs(self) -> Iterator[TensorSpec]:
        yield from super()._search_inputs()
        yield _control("entries", "entry")
        yield _control("listed", "sentence", "entry", dtype="float32", padding=-math.inf)

    def _search(self, logits_RV: Tensor, values: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Scores, tokens and parents of the best continuations, and the log-sum-exp of each row, its rest included."""
        logits_RW = logits_RV.index_select(1, values["entries"])
        return best_listed(logits_RW, mean_logit(logits_RV), values, logits_RV.size(1))


class StepLogitsGraph(_Stepping):
    """One step that returns all logits: for sampling only."""

    def _outputs(self) -> Iterator[TensorSpec]:
        yield _logits(self.model)
        yield from self._new_state_specs()

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        logits, new = self._advance(self._named(tensors))
        return (logits, *new)


class AlignGraph(GraphModule):
    """Teacher-forced soft alignment of whole hypotheses with each source."""

    def _inputs(self) -> Iterator[TensorSpec]:
        yield _control("target", "row", "target")
        yield from self._memory_specs()

    def _outputs(self) -> Iterator[TensorSpec]:
        for index in range(len(self.model.config.source_vocabularies)):
            axes = ("row", "target", f"source{index}")
            yield TensorSpec(f"attention.source{index}", "float32", axes, 0.0, "attention")

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        values = self._named(tensors)
        return self.model.alignment(values["target"], self._memory(values))


class AlignStepGraph(_Stepping):
    """One position of the alignment of recurrent models, with the state that the next position needs."""

    def _outputs(self) -> Iterator[TensorSpec]:
        for index in range(len(self.model.config.source_vocabularies)):
            yield TensorSpec(f"attention.source{index}", "float32", ("row", f"source{index}"), 0.0, "attention")
        yield from self._new_state_specs()

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        values = self._named(tensors)
        attention, update = self.model.align_one(values["token"], self._reordered(values), self._memory(values))
        return (*attention, *self._new_state(update))


def graph_modules(model: AnyModel) -> dict[str, GraphModule]:
    """The graphs of a model that is prepared for inference."""
    with torch.no_grad():
        memory = model.encode(sample_sources(model, 2, 3))
        state = model.init_state(memory, 1)
        _, state = model.step(torch.zeros_like(state.position_R), state, memory)
    align = AlignStepGraph if model.recurrent else AlignGraph
    classes = (EncodeGraph, StepGraph, StepLogitsGraph, align, StepShortlistGraph)
    return {name: cls(model, memory, state) for name, cls in zip(GRAPH_NAMES, classes, strict=True)}


class TorchGraphs:
    """Runs a model's graphs in PyTorch on NumPy arrays: the reference runtime, used for validation while training.

    Args:
        model: switched to evaluation by the caller; its parameters are used as they are at each call, where they lie.

    Attributes:
        device: where they lie.
    """

    def __init__(self, model: AnyModel) -> None:
        self._modules = graph_modules(model)
        self._types = {name: module.kept_types() for name, module in self._modules.items()}
        self.device = next(model.parameters()).device
        self.specs: Mapping[str, GraphSpec] = {name: module.spec for name, module in self._modules.items()}

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one graph; see :class:`models.search.graphs.Graphs`.

        Raises:
            DeviceLost: the device does not work any more.
        """
        try:
            return self._run(graph, inputs)
        except RuntimeError as error:
            raise lost(self.device, error) or error from error

    def _run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        module, types = self._modules[graph], self._types[graph]
        tensors = [
            torch.as_tensor(np.asarray(inputs[spec.name]), dtype=types.get(spec.name), device=self.device)
            for spec in module.spec.inputs
        ]
        with torch.inference_mode():
            outputs = module(*tensors)
        return {spec.name: _array(x) for spec, x in zip(module.spec.outputs, outputs, strict=True)}


def _array(tensor: Tensor) -> Array:
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()
