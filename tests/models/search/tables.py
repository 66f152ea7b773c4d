"""Models that are tables: the next-token distribution is a seeded function of the whole source and the whole prefix.

They keep no prefix of their own. ``TableGraphs`` recovers each row's prefix from the state that search hands it, from
the pool through the history mask or from row state through ``parent``; a mistake in reordering, joining, compaction
or slot allocation therefore shows as a wrong prefix, and most often as a failed check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tandem.models.search import Array, Batch, Finished, GraphSpec, GraphSpecs, Hypothesis, Sentence, TensorSpec

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

BOS, EOS = 2, 3
Prefix = tuple[int, ...]
Distribution = Callable[[tuple[Prefix, ...], Prefix], Sequence[float]]  # (sources without EOS, tokens so far) -> logits
LONGEST = 40  # tokens that row state has room for


def hashed(size: int, seed: int = 0, spread: float = 1.5) -> Distribution:
    """Logits drawn anew for every source and prefix."""

    @lru_cache(maxsize=100_000)
    def logits(sources: tuple[Prefix, ...], prefix: Prefix) -> tuple[float, ...]:
        digest = hashlib.sha256(repr((seed, sources, prefix)).encode()).digest()
        drawn = np.random.default_rng(int.from_bytes(digest[:8], "big")).normal(scale=spread, size=size)
        return tuple(drawn.tolist())

    return logits


def scripted(size: int, table: Mapping[Prefix, Mapping[int, float]]) -> Distribution:
    """Probabilities by prefix; what a row leaves out is next to impossible, and prefixes without a row end."""

    def logits(_: tuple[Prefix, ...], prefix: Prefix) -> list[float]:
        row = table.get(prefix, {EOS: 1.0})
        return [float(np.log(row.get(token, 1e-30))) for token in range(size)]

    return logits


@dataclass
class TableGraphs:
    """The Graphs protocol over a distribution.

    Attributes:
        state: "pool" or "rows": where prefixes live.
        calls: graphs run so far, with their inputs.
        ties_reversed: returns equal candidates in the wrong order, as some top-k kernels do.
        poison: sources whose logits are NaN from a given position on.
    """

    distribution: Distribution
    size: int
    state: str = "pool"
    sources: int = 1
    ties_reversed: bool = True
    poison: dict[Prefix, int] = field(default_factory=dict)
    attention: Callable[[int, int], Array] | None = None
    calls: list[tuple[str, dict[str, Array]]] = field(default_factory=list)

    @property
    def specs(self) -> GraphSpecs:
        return table_specs(self.size, self.state, self.sources)

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.calls.append((graph, dict(inputs)))
        _check_inputs(self.specs[graph], inputs)
        outputs: dict[str, Array] = {"encode": self._encode, "align": self._align}.get(graph, self._step)(inputs, graph)
        assert set(outputs) == {spec.name for spec in self.specs[graph].outputs}
        return outputs

    def _encode(self, inputs: Mapping[str, Array], _: str) -> dict[str, Array]:
        outputs: dict[str, Array] = {}
        for k in range(self.sources):
            outputs[f"memory.tokens.{k}"] = inputs[f"source{k}"].copy()
            outputs[f"memory.lengths.{k}"] = inputs[f"source{k}.length"].copy()
        if self.state == "rows":
            lengths = inputs["source0.length"]
            outputs["init.sum"] = np.stack([lengths, np.zeros_like(lengths)], axis=1).astype(np.float32)
        return outputs

    def _align(self, inputs: Mapping[str, Array], _: str) -> dict[str, Array]:
        assert self.attention is not None
        rows, longest = inputs["target"].shape
        outputs = {}
        for k in range(self.sources):
            tokens = inputs[f"memory.tokens.{k}"]
            weights = np.full((rows, longest, tokens.shape[1]), 9.0, np.float32)
            for row in range(rows):
                length = int(inputs[f"memory.lengths.{k}"][row * len(tokens) // rows])
                weights[row, :, :length] = self.attention(longest, length)
            outputs[f"attention.{k}"] = weights
        return outputs

    def _step(self, inputs: Mapping[str, Array], graph: str) -> dict[str, Array]:
        outputs, prefixes = (self._pool_state if self.state == "pool" else self._row_state)(inputs)
        rows, sentences = len(inputs["token"]), len(inputs["memory.lengths.0"])
        logits = np.zeros((rows, self.size), np.float32)
        for row, prefix in enumerate(prefixes):
            if prefix is not None:
                source = self._source(inputs, row * sentences // rows)
                logits[row] = self.distribution(source, prefix)
                if len(prefix) >= self.poison.get(source[0], 10**6):
                    logits[row] = np.nan
        if graph == "step_logits":
            return {**outputs, "logits": logits}
        return outputs | best_candidates(inputs, logits, rows // sentences, ties_reversed=self.ties_reversed)

    def _source(self, inputs: Mapping[str, Array], sentence: int) -> tuple[Prefix, ...]:
        found = []
        for k in range(self.sources):
            tokens = inputs[f"memory.tokens.{k}"][sentence][: inputs[f"memory.lengths.{k}"][sentence]]
            assert tokens[-1] == EOS
            found.append(tuple(tokens[:-1].tolist()))
        return tuple(found)

    def _pool_state(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], list[Prefix | None]]:
        rows, sentences = len(inputs["token"]), len(inputs["state.entries"])
        prefixes: list[Prefix | None] = []
        for row in range(rows):
            pool = inputs["state.entries"][row * sentences // rows]
            seen = pool[inputs["history"][row] == 0].astype(int).tolist()
            tokens = [token for _, token in sorted(seen)] + [int(inputs["token"][row])]
            prefixes.append(self._prefix(inputs, row, tokens, [position for position, _ in sorted(seen)]))
        appended = np.stack([inputs["position"], inputs["token"]], axis=1).astype(np.float32)
        return {"append.entries": appended}, prefixes

    def _row_state(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], list[Prefix | None]]:
        rows, parent = len(inputs["token"]), inputs["parent"]
        tokens, sums = inputs["state.tokens"][parent].copy(), inputs["state.sum"][parent].copy()
        prefixes: list[Prefix | None] = []
        for row in range(rows):
            position = int(inputs["position"][row])
            before = tokens[row, :position].astype(int).tolist()
            if "score" not in inputs and position == 0 and tokens[row, 0] >= 0:
                prefixes.append(None)  # a dead row that sampling has sent back to the beginning: its state has begun
                continue
            tokens[row, position] = inputs["token"][row]
            prefixes.append(self._prefix(inputs, row, [*before, int(inputs["token"][row])], list(range(position))))
            if prefixes[-1] is not None:
                length = inputs["memory.lengths.0"][row * len(inputs["memory.lengths.0"]) // rows]
                assert sums[row].tolist() == [length, sum(before)], "row state of another row"
            sums[row, 1] += inputs["token"][row]
        return {"state.tokens": tokens, "state.sum": sums}, prefixes

    def _prefix(self, inputs: Mapping[str, Array], row: int, tokens: list[int], positions: list[int]) -> Prefix | None:
        if "score" in inputs and inputs["score"][row] == -np.inf:
            return None  # a dead row: anything may come, nothing is looked at
        if "score" not in inputs and (positions != list(range(inputs["position"][row])) or tokens[0] != BOS):
            return None  # sampling has no scores; whether the row lives is search's business
        assert positions == list(range(inputs["position"][row])), "a row sees another row's slots"
        assert tokens[0] == BOS
        return tuple(tokens[1:])


def best_candidates(
    inputs: Mapping[str, Array], logits: Array, rows: int, *, ties_reversed: bool = False
) -> dict[str, Array]:
    """The results of a step whose sentences have so many rows each."""
    with np.errstate(invalid="ignore"):
        total = np.log(np.exp(logits.astype(np.float64)).sum(axis=1)).astype(np.float32)
        scores = inputs["score"][:, None] + (logits - total[:, None])
    count, size = int(inputs["count"]), logits.shape[1]
    for row in range(len(scores)):
        banned = inputs["banned"][row]
        scores[row, banned[banned < size]] = -np.inf
        if inputs["forced"][row] >= 0:
            scores[row, np.arange(size) != inputs["forced"][row]] = -np.inf
    assert count <= rows * size
    flat = scores.reshape(-1, rows * size)
    index = np.lexsort((np.broadcast_to(np.arange(rows * size), flat.shape), -flat), axis=-1)[:, :count]
    best = np.take_along_axis(flat, index, 1)
    if ties_reversed:
        index = np.take_along_axis(index, np.lexsort((-index, -best), axis=-1), 1)
    return {"scores": best, "tokens": index % size, "parents": index // size, "logsumexp": total}


def table_specs(size: int, state: str, sources: int) -> dict[str, GraphSpec]:
    """The specs of a table model."""

    def tensor(name: str, dtype: str, *axes: str, padding: float = 0.0, kind: str = "control") -> TensorSpec:
        return TensorSpec(name, dtype, axes, padding, kind)

    memory: list[TensorSpec] = []
    given: list[TensorSpec] = []
    for k in range(sources):
        given.append(tensor(f"source{k}", "int64", "sentence", f"source{k}", kind="source"))
        given.append(tensor(f"source{k}.length", "int64", "sentence", kind="length"))
        memory.append(tensor(f"memory.tokens.{k}", "int64", "sentence", f"source{k}", padding=-7, kind="memory"))
        memory.append(tensor(f"memory.lengths.{k}", "int64", "sentence", kind="memory"))
    control = [tensor(name, "int64", "row") for name in ("token", "parent", "position")]
    search = [
        tensor("score", "float32", "row"),
        tensor("banned", "int64", "row", "ban", padding=size),
        tensor("forced", "int64", "row", padding=-1),
        tensor("count", "int64"),
    ]
    first: list[TensorSpec] = []
    if state == "pool":
        before = [
            tensor("history", "float32", "row", "slot", padding=-np.inf, kind="history"),
            tensor("state.entries", "float32", "sentence", "slot", "fixed:2", kind="pool"),
        ]
        after = [tensor("append.entries", "float32", "row", "fixed:2", kind="append")]
    else:
        fields = (("tokens", LONGEST, -1.0), ("sum", 2, 0.0))
        before = [
            tensor(f"state.{n}", "float32", "old_row", f"fixed:{w}", padding=p, kind="rows") for n, w, p in fields
        ]
        after = [tensor(f"state.{n}", "float32", "row", f"fixed:{w}", kind="rows") for n, w, _ in fields]
        first = [tensor("init.sum", "float32", "sentence", "fixed:2", kind="init")]
    candidate = [tensor(name, "int64", "sentence", "candidate", kind="result") for name in ("tokens", "parents")]
    results = [tensor("scores", "float32", "sentence", "candidate", kind="result"), *candidate]
    results.append(tensor("logsumexp", "float32", "row", kind="result"))
    logits = tensor("logits", "float32", "row", f"fixed:{size}", kind="result")
    target = tensor("target", "int64", "row", "target", kind="target")
    weights = [
        tensor(f"attention.{k}", "float32", "row", "target", f"source{k}", kind="attention") for k in range(sources)
    ]
    return {
        "encode": GraphSpec(tuple(given), (*memory, *first)),
        "step": GraphSpec((*control, *search, *before, *memory), (*results, *after)),
        "step_logits": GraphSpec((*control, *before, *memory), (logits, *after)),
        "align": GraphSpec((target, *memory), tuple(weights)),
    }


def _check_inputs(spec: GraphSpec, inputs: Mapping[str, Array]) -> None:
    """The contract on shapes: every axis role has one size in a call, and every dtype is the spec's."""
    assert set(inputs) == {tensor.name for tensor in spec.inputs}
    sizes: dict[str, int] = {}
    for tensor in spec.inputs:
        array = inputs[tensor.name]
        assert array.dtype == np.dtype(tensor.dtype), tensor.name
        assert array.flags.c_contiguous, tensor.name
        assert array.ndim == len(tensor.axes), tensor.name
        for axis, size in zip(tensor.axes, array.shape, strict=True):
            wanted = int(axis[6:]) if axis.startswith("fixed:") else sizes.setdefault(axis, size)
            assert size == wanted, (tensor.name, axis, size, wanted)
    if "row" in sizes and "sentence" in sizes:
        assert sizes["row"] % sizes["sentence"] == 0
    if "old_row" in sizes:
        assert ((inputs["parent"] >= 0) & (inputs["parent"] < sizes["old_row"])).all()
    if "slot" in sizes:
        assert sizes["slot"] % 16 == 0 and sizes["slot"] > 0


def source(*tokens: int) -> tuple[Array, ...]:
    """One source of those tokens and EOS."""
    return (np.array([*tokens, EOS], np.int64),)


def run_out(batch: Batch) -> dict[Hashable, tuple[Hypothesis, ...]]:
    """Step until nobody is left: the hypotheses of each sentence."""
    hypotheses: dict[Hashable, tuple[Hypothesis, ...]] = {}
    while len(batch):
        hypotheses |= {finished.id: finished.hypotheses for finished in batch.step()}
    return hypotheses


def batch_actions(sources: int, options: int, most: int) -> SearchStrategy[list[tuple[str, Any]]]:
    """Joining (by numbers of a source and of options), stepping and removing, in any order, so many times at most."""
    from hypothesis import strategies as st  # here: what else this module has, tests of a GPU use without it

    joiners = st.lists(st.tuples(st.integers(0, sources - 1), st.integers(0, options - 1)), min_size=1, max_size=5)
    step, remove = st.integers(1, 6), st.lists(st.integers(0, 12), max_size=4)
    kinds = {"join": joiners, "step": step, "remove": remove}
    return st.lists(st.one_of(*(st.tuples(st.just(kind), detail) for kind, detail in kinds.items())), max_size=most)


def played(
    batch: Batch, actions: Sequence[tuple[str, Any]], sentence: Callable[[int, int, int], Sentence]
) -> tuple[dict[int, tuple[int, int]], dict[Hashable, tuple[Hypothesis, ...]]]:
    """Who has joined and was not removed, by id, and the hypotheses; ``sentence`` is given an id and both numbers."""
    joined: dict[int, tuple[int, int]] = {}
    removed: set[int] = set()
    done: list[Finished] = []
    for action, detail in actions:
        if action == "join":
            new = {len(joined) + number: pair for number, pair in enumerate(detail)}
            batch.join([sentence(name, *pair) for name, pair in new.items()])
            joined |= new
        elif action == "remove":
            removed |= {name for name in detail if name in joined} - {one.id for one in done}
            batch.remove(detail)
        else:
            done += [one for _ in range(detail) for one in batch.step()]
            assert all(batch.ids.count(one.id) == 0 for one in done)
        assert len(batch) == len(joined) - len(removed) - len(done)
    while len(batch):
        done += batch.step()
    kept = {name: pair for name, pair in joined.items() if name not in removed}
    assert sorted(str(one.id) for one in done) == sorted(map(str, kept))
    return kept, {one.id: one.hypotheses for one in done}


def assert_same_hypotheses(
    found: Sequence[Sequence[Hypothesis]], expected: Sequence[Sequence[Hypothesis]], tolerance: float = 1e-4
) -> None:
    """The same tokens sentence by sentence, and scores that differ by rounding alone."""
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        for numbers in (attrgetter("score"), attrgetter("normalised")):
            np.testing.assert_allclose([*map(numbers, ours)], [*map(numbers, theirs)], atol=tolerance)


def log_softmax(logits: Any) -> Array:
    array = np.asarray(logits, np.float64)
    shifted = array - array.max()
    normal: Array = shifted - np.log(np.exp(shifted).sum())
    return normal
