"""Attention over whole hypotheses, from the ``align`` graph: for coverage, alignments and unknown-word replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.search.graphs import Array, Graphs, source_specs
from models.search.tensors import stack
from models.vocabulary.base import BOS, PAD

Attention = tuple[Array, ...]  # per source, target steps (EOS included) x source tokens


def align(
    graphs: Graphs, sources: Sequence[tuple[Array, ...]], tokens: Sequence[Sequence[Sequence[int]]], *, bos: int = BOS
) -> list[list[Attention]]:
    """Encode sentences and return the attention of each of their hypotheses.

    Args:
        sources: per sentence, its sources as they were decoded.
        tokens: per sentence, its hypotheses, token ids without BOS and EOS.

    Returns:
        Per sentence and hypothesis one array per source: row t holds the weights with which token t was predicted,
        the last row those of EOS; padding is cut off.
    """
    inputs: dict[str, Array] = {}
    for index, spec in enumerate(source_specs(graphs.specs)):
        inputs[spec.name] = stack([one[index] for one in sources], spec)
        inputs[f"{spec.name}.length"] = np.array([len(one[index]) for one in sources], np.int64)
    memory = graphs.run("encode", inputs)
    return attend(graphs, memory, tokens, [tuple(map(len, one)) for one in sources], bos=bos)


def attend(
    graphs: Graphs,
    memory: Mapping[str, Array],
    tokens: Sequence[Sequence[Sequence[int]]],
    lengths: Sequence[tuple[int, ...]],
    *,
    bos: int = BOS,
) -> list[list[Attention]]:
    """The same from memory that is already there, one entry per sentence; ``lengths`` are those of its sources."""
    spec = graphs.specs["align"]
    most = max(map(len, tokens))
    longest = max(len(one) for group in tokens for one in group)
    target = np.full((len(tokens), most, longest + 1), PAD, np.int64)
    target[:, :, 0] = bos
    for sentence, group in enumerate(tokens):
        for row, one in enumerate(group):
            target[sentence, row, 1 : len(one) + 1] = one
    inputs = {tensor.name: memory[tensor.name] for tensor in spec.of_kind("memory")}
    outputs = graphs.run("align", {**inputs, "target": target.reshape(-1, longest + 1)})
    # In source order, whatever the order of the exported file.
    named = sorted((int(t.axes[2].removeprefix("source")), t.name) for t in spec.outputs if t.kind == "attention")
    return [
        [
            tuple(outputs[name][sentence * most + row, : len(one) + 1, : lengths[sentence][k]] for k, name in named)
            for row, one in enumerate(group)
        ]
        for sentence, group in enumerate(tokens)
    ]
