"""Attention from an align graph that goes on from a state, over models whose attention tells what they were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tandem.models.search import Array, GraphSpec, SearchOptions, TensorSpec, align, check_specs, translate_batch
from tandem.models.search.align import attend
from tandem.models.search.graphs import GraphSpecs
from tests.models.search.tables import TableGraphs, source

BOS, EOS = 2, 3


def tensor(name: str, *axes: str, dtype: str = "float32", padding: float = 0.0, kind: str = "control") -> TensorSpec:
    return TensorSpec(name, dtype, axes, padding, kind)


class Telling:
    """Attends to position s with 10^s x (first source token + sum of the prefix), from three kinds of state.

    The sum so far is a row's state that starts with the sentence's first token, the number of steps another that starts
    with 0, and a pool holds the tokens, by their positions.
    """

    def __init__(self) -> None:
        row = [tensor(name, "row", dtype="int64") for name in ("token", "parent", "position")]
        rows = [tensor(f"state.{name}", "old_row", "fixed:1", kind="rows") for name in ("sum", "steps")]
        after = [tensor(f"state.{name}", "row", "fixed:1", kind="rows") for name in ("sum", "steps")]
        pool = tensor("state.seen", "sentence", "slot", "fixed:2", kind="pool")
        history = tensor("history", "row", "slot", padding=-np.inf, kind="history")
        memory = tensor("memory.tokens", "sentence", "source0", padding=-7, kind="memory")
        given = tensor("source0", "sentence", "source0", dtype="int64", kind="source")
        length = tensor("source0.length", "sentence", dtype="int64", kind="source")
        start = tensor("init.sum", "sentence", "fixed:1", kind="init")
        weights = tensor("attention.source0", "row", "source0", kind="attention")
        appended = tensor("append.seen", "row", "fixed:2", kind="append")
        self.specs: GraphSpecs = {
            "encode": GraphSpec((given, length), (memory, start)),
            "align": GraphSpec((*row, history, *rows, pool, memory), (*after, weights, appended)),
        }

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        assert set(inputs) == {spec.name for spec in self.specs[graph].inputs}
        if graph == "encode":
            tokens = inputs["source0"].astype(np.float32)
            return {"memory.tokens": tokens, "init.sum": tokens[:, :1]}
        parent, token, position = inputs["parent"], inputs["token"], inputs["position"]
        total, steps = inputs["state.sum"][parent][:, 0], inputs["state.steps"][parent]
        rows, sentences = len(token), len(inputs["state.seen"])
        for row in range(rows):
            seen = inputs["state.seen"][row * sentences // rows][inputs["history"][row] == 0]
            assert seen[:, 0].tolist() == list(range(position[row])), "a row sees another's entries, or lacks its own"
            first = inputs["memory.tokens"][row * sentences // rows, 0]
            assert total[row] == first + seen[:, 1].sum()
            assert steps[row, 0] == position[row]
        total = total + token
        powers = 10.0 ** np.arange(inputs["memory.tokens"].shape[1], dtype=np.float32)
        return {
            "state.sum": total[:, None].astype(np.float32),
            "state.steps": steps + 1,
            "attention.source0": (total[:, None] * powers).astype(np.float32),
            "append.seen": np.stack([position, token], axis=1).astype(np.float32),
        }


def expected(sentence: tuple[Array, ...], tokens: tuple[int, ...]) -> Array:
    totals = sentence[0][0] + np.cumsum([BOS, *tokens])
    weights: Array = totals[:, None] * 10.0 ** np.arange(len(sentence[0]))
    return weights


def test_state_goes_from_position_to_position() -> None:
    """Sentences and hypotheses of different length and number, in one batch."""
    sources = [source(5, 6), source(9), source(7, 4, 8, 5)]
    tokens: list[list[tuple[int, ...]]] = [[(4, 5, 6), (7,), ()], [(8,)], [(4,) * 17, (5, 6)]]
    found = align(Telling(), sources, tokens)
    assert [len(group) for group in found] == [3, 1, 2]
    for sentence, group, attentions in zip(sources, tokens, found, strict=True):
        for one, (attention,) in zip(group, attentions, strict=True):
            np.testing.assert_array_equal(attention, expected(sentence, one))


def test_memory_may_come_from_elsewhere() -> None:
    """As from a running batch: what encode returned, initial states included."""
    graphs, sentence = Telling(), source(5, 6)
    memory = graphs.run("encode", {"source0": np.stack(sentence), "source0.length": np.array([3])})
    ((attention,),) = attend(graphs, memory, [[(4, 5)]], [(3,)])
    np.testing.assert_array_equal(attention[0], expected(sentence, (4, 5)))


def test_a_running_batch_keeps_initial_states_for_such_a_graph() -> None:
    """Coverage is that of the attention, which needs the state the sentence started from."""

    class Both(TableGraphs):
        """A table with row state whose align graph steps, and attends evenly when it is given the right start."""

        @property
        def specs(self) -> GraphSpecs:
            specs = dict(super().specs)
            before, memory = specs["step_logits"].of_kind("control", "rows"), specs["step_logits"].of_kind("memory")
            weights = tensor("attention.0", "row", "source0", kind="attention")
            specs["align"] = GraphSpec((*before, *memory), (weights, *specs["step_logits"].outputs_of_kind("rows")))
            return specs

        def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
            if graph != "align":
                return super().run(graph, inputs)
            outputs, _ = self._row_state(inputs)
            lengths = inputs["memory.lengths.0"].repeat(len(inputs["token"]) // len(inputs["memory.lengths.0"]))
            longest = inputs["memory.tokens.0"].shape[1]
            even = [[1.0 / n] * n + [0.0] * (longest - n) for n in lengths.tolist()]
            return {**outputs, "attention.0": np.array(even, np.float32)}

    logits = np.log(np.array([0.1, 0.1, 0.1, 0.2, 0.3, 0.2]))
    model = Both(lambda sources, prefix: logits, 6, state="rows")
    assert check_specs(model.specs) == []
    options = SearchOptions(beam_size=2, n_best=2, max_length=3, length_penalty=0.0, coverage_penalty=1.0)
    for length, hypotheses in zip((1, 3), translate_batch(model, [source(4), source(4, 5, 4)], options), strict=True):
        for one in hypotheses:
            steps, size = len(one.token_scores), length + 1
            covered = size * np.log(min(1.0, steps / size))
            assert one.normalised == pytest.approx(one.score + covered, abs=1e-5)


def test_faults_of_such_a_graph_are_named() -> None:
    specs = dict(Telling().specs)
    align_spec = specs["align"]
    faulty = GraphSpec(
        tuple(spec for spec in align_spec.inputs if spec.name not in ("parent", "history")),
        tuple(spec for spec in align_spec.outputs if spec.name not in ("state.sum", "append.seen")),
    )
    whole = GraphSpec((replace(align_spec.inputs[0], name="targets"),), ())
    found = check_specs({**specs, "align": faulty})
    assert [fault for fault in found if fault.startswith("align")] == [
        "align: 'parent' is missing",
        "align: 'state.sum' is not returned",
        "align: nothing is appended to 'state.seen'",
        "align: a graph with pools needs 'history'",
    ]
    assert "align: 'target' is missing" in check_specs({**specs, "align": whole})
