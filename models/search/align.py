"""Attention over whole hypotheses, from the ``align`` graph: for coverage, alignments and unknown-word replacement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.graphs import Array, Graphs, align_steps
from tandem.models.search.hypotheses import Ended, Hypothesis
from tandem.models.search.model import encode_inputs
from tandem.models.search.options import SearchOptions
from tandem.models.search.ranking import coverage, rank
from tandem.models.search.tensors import Tensors, blank, padded_length, slots_for
from tandem.models.vocabulary.base import BOS, PAD

Attention = tuple[Array, ...]  # per source, target steps (EOS included) x source tokens


def align(
    graphs: Graphs, sources: Sequence[tuple[Array, ...]], tokens: Sequence[Sequence[Sequence[int]]]
) -> list[list[Attention]]:
    """Encode sentences and return the attention of each of their hypotheses.

    Args:
        sources: per sentence, its sources as they were decoded.
        tokens: per sentence, its hypotheses, token ids without BOS and EOS.

    Returns:
        Per sentence and hypothesis one array per source: row t holds the weights with which token t was predicted,
        the last row those of EOS; padding is cut off.
    """
    memory = graphs.run("encode", encode_inputs(graphs.specs, sources))
    return attend(graphs, memory, tokens, [tuple(map(len, one)) for one in sources])


def with_attention(
    hypotheses: Sequence[Hypothesis], attention: Mapping[tuple[int, ...], Attention]
) -> tuple[Hypothesis, ...]:
    """The hypotheses with copies of their attention: the arrays themselves are cut from those of a whole batch."""
    return tuple(
        replace(one, attention=tuple(weights.copy() for weights in attention[one.tokens])) for one in hypotheses
    )


def ranked(
    ended: Mapping[int, Sequence[Ended]],
    options: Mapping[int, SearchOptions],
    attend: Callable[[Mapping[int, Sequence[Ended | Hypothesis]]], dict[int, dict[tuple[int, ...], Attention]]],
) -> dict[int, tuple[Hypothesis, ...]]:
    """Sentences' best hypotheses by place, with their attention where the options ask for it.

    ``attend`` gives the attention of hypotheses, for each place by their tokens: it depends on nothing else of them.
    """
    seen = attend({place: own for place, own in ended.items() if options[place].coverage_penalty})
    terms = {place: [coverage(own[one.tokens]) for one in ended[place]] for place, own in seen.items()}
    best = {place: rank(own, options[place], terms.get(place, ())) for place, own in ended.items()}
    asking = {place: own for place, own in best.items() if options[place].attention}
    # What ranked a sentence is reused; for the others only what is returned is looked at.
    seen |= attend({place: own for place, own in asking.items() if place not in seen})
    return best | {place: with_attention(own, seen[place]) for place, own in asking.items()}


def attend(
    graphs: Graphs,
    memory: Mapping[str, Array],
    tokens: Sequence[Sequence[Sequence[int]]],
    lengths: Sequence[tuple[int, ...]],
    *,
    bos: int = BOS,
) -> list[list[Attention]]:
    """The same from what encode returned, one entry per sentence; ``lengths`` are those of its sources."""
    spec = graphs.specs["align"]
    longest = max(len(one) for group in tokens for one in group)
    length = longest + 1 if align_steps(graphs.specs) else padded_length(longest + 1, 2)
    target_RT = target_table(tokens, length, bos).reshape(-1, length)
    if align_steps(graphs.specs):
        outputs = _by_position(graphs, memory, target_RT, len(tokens))
    else:
        inputs = {tensor.name: memory[tensor.name] for tensor in spec.of_kind("memory")}
        outputs = graphs.run("align", {**inputs, "target": target_RT})
    # In source order, whatever the order of the exported file.
    named = sorted((int(t.axes[-1].removeprefix("source")), t.name) for t in spec.outputs if t.kind == "attention")
    return by_hypothesis([outputs[name] for _, name in named], tokens, lengths)


def target_table(tokens: Sequence[Sequence[Sequence[int]]], length: int, bos: int) -> NDArray[np.int64]:
    """Each sentence's hypotheses as a model reads them, padded: sentences x hypotheses x ``length``."""
    table = np.full((len(tokens), max(map(len, tokens)), length), PAD, np.int64)
    table[:, :, 0] = bos
    for rows, group in zip(table, tokens, strict=True):
        for row, one in zip(rows, group, strict=False):
            row[1 : len(one) + 1] = one
    return table


def by_hypothesis(
    weights: Sequence[Array], tokens: Sequence[Sequence[Sequence[int]]], lengths: Sequence[tuple[int, ...]]
) -> list[list[Attention]]:
    """The attention of each hypothesis, cut from that of all rows of a :func:`target_table` with each source."""
    most = max(map(len, tokens))
    return [
        [
            tuple(x[sentence * most + row, : len(one) + 1, :length] for x, length in zip(weights, own, strict=True))
            for row, one in enumerate(group)
        ]
        for sentence, (group, own) in enumerate(zip(tokens, lengths, strict=True))
    ]


def _by_position(graphs: Graphs, memory: Mapping[str, Array], target_RT: Array, sentences: int) -> Tensors:
    """The attention of whole targets from an align graph that goes on from a state: R x T x S by name."""
    spec = graphs.specs["align"]
    rows, steps = target_RT.shape
    per_sentence = rows // sentences
    pools, history = spec.of_kind("pool"), spec.of_kind("history")
    sizes = {"slot": slots_for(per_sentence * steps)}
    values: Tensors = {tensor.name: memory[tensor.name] for tensor in spec.of_kind("memory")}
    initial = {tensor.field: tensor.name for tensor in graphs.specs["encode"].outputs_of_kind("init")}
    for tensor in spec.of_kind("rows"):
        start = initial.get(tensor.field)
        values[tensor.name] = blank(tensor, rows, sizes) if start is None else memory[start].repeat(per_sentence, 0)
    values |= {tensor.name: blank(tensor, sentences, sizes) for tensor in pools}
    values |= {tensor.name: blank(tensor, rows, sizes) for tensor in history}

    seen: dict[str, list[Array]] = {tensor.name: [] for tensor in spec.outputs_of_kind("attention")}
    row_R, parent_R = np.arange(rows) % per_sentence, np.arange(rows, dtype=np.int64)
    for step in range(steps):
        values |= {"token": np.ascontiguousarray(target_RT[:, step]), "parent": parent_R}
        values["position"] = np.full(rows, step, np.int64)
        outputs = graphs.run("align", {tensor.name: values[tensor.name] for tensor in spec.inputs})
        values |= {tensor.name: outputs[tensor.name] for tensor in spec.of_kind("rows")}
        slot_R = step * per_sentence + row_R
        for tensor in pools:
            values[tensor.name][parent_R // per_sentence, ..., slot_R, :] = outputs[f"append.{tensor.field}"]
        for tensor in history:
            values[tensor.name][parent_R, slot_R] = 0.0
        for name, parts in seen.items():
            parts.append(outputs[name])
    return {name: np.stack(parts, axis=1) for name, parts in seen.items()}
