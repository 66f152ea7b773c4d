"""One model's graphs, with what search reads from their specs once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tandem.models.search.graphs import (
    Array,
    Graphs,
    GraphSpecs,
    TensorSpec,
    align_steps,
    source_specs,
    vocabulary_size,
)
from tandem.models.search.tensors import Tensors, padded_length, stack


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The graphs of one model and what search needs to know about them.

    Attributes:
        step: ``"step"`` for beam search, ``"step_logits"`` for sampling.
        free_slots: of the step's graph.
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
    edges: tuple[list[int], ...] = field(init=False)
    free_slots: bool = field(init=False)

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
            "free_slots": spec.free_slots,
        }
        sources = source_specs(self.graphs.specs)
        fields["edges"] = tuple(_edges(fields["memory"], index) for index in range(len(sources)))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def encode(self, sources: Sequence[tuple[Array, ...]]) -> Tensors:
        """All encode outputs of sources padded to a common length."""
        return self.graphs.run("encode", encode_inputs(self.graphs.specs, sources))

    def kernel_class(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Which sentences may share a batch without a change of their bits, given the lengths of their sources.

        Matrix kernels sum a product over more than 128 features in blocks that depend on the number of columns, here
        of source positions: in 1,024 up to 16 columns, in 512 up to 32, in 256 up to 64, in 128 beyond.
        """
        return tuple(
            bisect_left(edges, padded_length(length, len(lengths)))
            for edges, length in zip(self.edges, lengths, strict=True)
        )


def encode_inputs(specs: GraphSpecs, sources: Sequence[tuple[Array, ...]]) -> Tensors:
    """What the encode graph reads: sources padded to a common length, and their own lengths."""
    inputs: Tensors = {}
    own = source_specs(specs)
    for index, spec in enumerate(own):
        column = [source[index] for source in sources]
        inputs[spec.name] = stack(column, spec, padded_length(max(map(len, column)), len(own)))
        inputs[f"{spec.name}.length"] = np.array([len(one) for one in column], np.int64)
    return inputs


def _edges(memory: Sequence[TensorSpec], source: int) -> list[int]:
    """The numbers of positions of one source at which some product with a memory changes its order of summation."""
    pairs = ((spec.axes[-2:-1], spec.fixed[-1:]) for spec in memory)
    widths = [width for axes, sizes in pairs for width in sizes if axes == (f"source{source}",)]
    widest = max(widths, default=0)
    return [columns for columns, whole in ((16, 512), (32, 256), (64, 128)) if widest > whole]
