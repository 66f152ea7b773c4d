"""One model's graphs, with what search reads from their specs once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.search.graphs import Array, Graphs, TensorSpec, align_steps, source_specs, vocabulary_size
from models.search.tensors import Tensors, stack


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The graphs of one model and what search needs to know about them.

    Attributes:
        step: ``"step"`` for beam search, ``"step_logits"`` for sampling.
    """

    graphs: Graphs
    step: str
    beam_size: int
    bos: int
    eos: int
    vocabulary_size: int = field(init=False)
    memory: tuple[TensorSpec, ...] = field(init=False)
    rows: tuple[TensorSpec, ...] = field(init=False)
    pools: tuple[TensorSpec, ...] = field(init=False)
    inputs: dict[str, TensorSpec] = field(init=False)

    def __post_init__(self) -> None:
        spec = self.graphs.specs[self.step]
        # An align graph that steps starts from the initial state again when a sentence is done.
        kept = ("memory", "init") if align_steps(self.graphs.specs) else ("memory",)
        fields: dict[str, Any] = {
            "vocabulary_size": vocabulary_size(self.graphs.specs),
            "memory": self.graphs.specs["encode"].outputs_of_kind(*kept),
            "rows": spec.of_kind("rows"),
            "pools": spec.of_kind("pool"),
            "inputs": {tensor.name: tensor for tensor in spec.inputs},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def encode(self, sources: Sequence[tuple[Array, ...]]) -> Tensors:
        """All encode outputs of sources padded to a common length."""
        inputs: Tensors = {}
        for index, spec in enumerate(source_specs(self.graphs.specs)):
            own = [source[index] for source in sources]
            inputs[spec.name] = stack(own, spec)
            inputs[f"{spec.name}.length"] = np.array([len(one) for one in own], np.int64)
        return self.graphs.run("encode", inputs)
