"""Continuous batching: whoever joins, leaves or fails, a sentence's result is the one it has alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import DecodingError, OptionError
from tandem.models.search import (
    DecodeBatch,
    Hypothesis,
    Sampling,
    SearchOptions,
    Sentence,
    SentenceError,
    align,
    translate_batch,
)  # fmt: skip
from tests.models.search.tables import EOS, TableGraphs, batch_actions, hashed, played, run_out, source

SIZE = 9
SOURCES = [(4,), (5, 6), (7, 8, 4, 5), (8,) * 12, tuple(4 + n % 5 for n in range(33))]
OPTIONS: list[dict[str, Any]] = [
    {"max_length": 9},
    {"max_length": 25, "min_length": 20, "no_repeat_ngram_size": 3},
    {"max_length": 25, "min_length": 20, "max_rounds": 2, "suppressed": (0, 1, 2, 7, 8)},
    {"max_length": 6, "prefix": (5, 5), "suppressed": (0, 1, 2), "length_penalty_form": "gnmt"},
    {"max_length": 12, "n_best": 1, "sampling": Sampling(temperature=0.8, top_k=6, top_p=0.9, seed=7)},
    {"max_length": 5, "max_length_ratio": 0.1, "exhaustive": True},
    {"max_length": 1},
]
GRAPHS = {state: TableGraphs(hashed(SIZE, 42), SIZE, state) for state in ("pool", "rows")}
ALONE: dict[Any, tuple[Hypothesis, ...]] = {}


def make(name: int, which: int, options: int, beam_size: int) -> Sentence:
    return Sentence(name, source(*SOURCES[which]), SearchOptions(beam_size=beam_size, **OPTIONS[options]))


def alone(state: str, which: int, options: int, beam_size: int) -> tuple[Hypothesis, ...]:
    key = (state, which, options, beam_size)
    if key not in ALONE:
        batch = DecodeBatch(GRAPHS[state], beam_size=beam_size)
        batch.join([make(0, which, options, beam_size)])
        ALONE[key] = run_out(batch)[0]
    return ALONE[key]


@given(
    actions=batch_actions(len(SOURCES), len(OPTIONS), 14),
    beam_size=st.integers(1, 4),
    state=st.sampled_from(["pool", "rows"]),
)
def test_batch_mates_change_nothing(actions: list[tuple[str, Any]], beam_size: int, state: str) -> None:
    GRAPHS[state].calls.clear()
    batch = DecodeBatch(GRAPHS[state], beam_size=beam_size)
    kept, found = played(batch, actions, lambda name, which, rules: make(name, which, rules, beam_size))
    assert found == {name: alone(state, *pair, beam_size) for name, pair in kept.items()}


@pytest.mark.parametrize("state", ["pool", "rows"])
def test_two_sources(state: str) -> None:
    graphs = TableGraphs(hashed(SIZE, 8), SIZE, state, sources=2)
    options = SearchOptions(beam_size=3, max_length=8)
    pairs = [(*source(*a), *source(*b)) for a in SOURCES for b in SOURCES[::-1]]
    together = translate_batch(graphs, pairs, options, token_budget=200)
    assert together == [translate_batch(graphs, [pair], options)[0] for pair in pairs]
    assert len({tuple(one[0].tokens) for one in together}) > 10


def test_translate_batch_keeps_order_and_budget() -> None:
    graphs = TableGraphs(hashed(SIZE, 8), SIZE)
    options = SearchOptions(beam_size=2, max_length=6)
    given_sources = [source(*one) for one in SOURCES * 3]
    found = translate_batch(graphs, given_sources, options, token_budget=100)
    assert found == [translate_batch(graphs, [one], options)[0] for one in given_sources]
    assert translate_batch(graphs, [], options) == []
    graphs.calls.clear()
    translate_batch(graphs, given_sources, options, token_budget=100)
    assert max(inputs["source0.length"].sum() for name, inputs in graphs.calls if name == "encode") <= 50


def test_pools_stay_near_the_length_of_the_text() -> None:
    graphs = TableGraphs(hashed(SIZE, 1, spread=3.0), SIZE)
    options = SearchOptions(beam_size=4, min_length=60, max_length=60)
    translate_batch(graphs, [source(4, 5)], options)
    assert graphs.calls[-1][1]["state.entries"].shape[1] < 4 * 60 / 2


def test_leavers_places_are_taken_or_compacted() -> None:
    graphs = TableGraphs(hashed(SIZE, 1), SIZE)
    batch = DecodeBatch(graphs, beam_size=2)
    long = SearchOptions(beam_size=2, min_length=30, max_length=30)
    batch.join([Sentence(n, source(4, 5, 6, 4, 5), long) for n in range(8)])
    batch.remove([3])
    batch.step()
    assert graphs.calls[-1][1]["memory.tokens.0"].shape == (8, 8)  # padded in fours
    assert len(graphs.calls[-1][1]["memory.lengths.0"]) == 8  # above 3/4: the place waits
    batch.join([Sentence("new", source(4), long)])
    batch.step()
    assert len(graphs.calls[-1][1]["memory.lengths.0"]) == 8  # taken
    assert graphs.calls[-1][1]["memory.lengths.0"][3] == 2
    batch.remove([0, 1, 2])
    batch.step()
    assert len(graphs.calls[-1][1]["memory.lengths.0"]) == 5  # below 3/4: compacted
    batch.remove([4, 5, 6, 7])
    batch.step()
    assert graphs.calls[-1][1]["memory.tokens.0"].shape == (1, 4)  # and no longer padded to those that left
    assert batch.ids == ("new",) and batch.rows == 2
    batch.remove(["new", "nobody"])
    assert len(batch) == 0 and batch.step() == []


@pytest.mark.parametrize("state", ["pool", "rows"])
def test_a_joiner_that_is_longer_than_a_free_place_is_not_cut(state: str) -> None:
    graphs = TableGraphs(hashed(SIZE, 42), SIZE, state)
    options = SearchOptions(beam_size=2, min_length=12, max_length=14)
    batch = DecodeBatch(graphs, beam_size=2)
    batch.join([Sentence(n, source(4 + n), options) for n in range(4)])
    for _ in range(6):
        batch.step()
    batch.remove([1])  # three of four: its place stays
    batch.join([Sentence("long", source(*SOURCES[4]), options)])
    found = run_out(batch)
    assert list(found["long"]) == translate_batch(graphs, [source(*SOURCES[4])], options)[0]
    assert list(found[3]) == translate_batch(graphs, [source(7)], options)[0]


def test_rows_of_different_age_share_a_step() -> None:
    graphs = TableGraphs(hashed(SIZE, 1), SIZE)
    batch = DecodeBatch(graphs, beam_size=1)
    long = SearchOptions(beam_size=1, min_length=9, max_length=9)
    batch.join([Sentence(0, source(4), long)])
    batch.step()
    batch.join([Sentence(1, source(5), long)])
    batch.step()
    assert graphs.calls[-1][1]["position"].tolist() == [2, 1]


@pytest.mark.parametrize("state", ["pool", "rows"])
@pytest.mark.parametrize("sampling", [None, Sampling(seed=1)])
def test_numbers_that_are_not_finite_cost_only_their_sentence(state: str, sampling: Sampling | None) -> None:
    graphs = TableGraphs(hashed(SIZE, 42), SIZE, state, poison={(5, 6): 2})
    options = SearchOptions(beam_size=2, min_length=5, max_length=8, sampling=sampling)
    batch = DecodeBatch(graphs, beam_size=2)
    batch.join([Sentence(name, source(*one), options) for name, one in zip("abc", SOURCES, strict=False)])
    batch.step()
    for _ in range(2):  # again the same: the failed step changed nothing
        with pytest.raises(SentenceError, match="'b' at step 2") as caught:
            batch.step()
        assert isinstance(caught.value, DecodingError)
        assert caught.value.ids == ("b",)
    batch.remove(caught.value.ids)
    found = run_out(batch)
    for name, one in (("a", SOURCES[0]), ("c", SOURCES[2])):
        assert (
            list(found[name]) == translate_batch(TableGraphs(hashed(SIZE, 42), SIZE, state), [source(*one)], options)[0]
        )


def test_a_failed_join_adds_nobody() -> None:
    graphs = TableGraphs(hashed(SIZE, 42), SIZE, poison={(5, 6): 0})
    options = SearchOptions(beam_size=2, max_length=4)
    batch = DecodeBatch(graphs, beam_size=2)
    batch.join([Sentence("a", source(4), options)])
    with pytest.raises(SentenceError, match="'b' at step 0"):
        batch.join([Sentence("b", source(5, 6), options), Sentence("c", source(7), options)])
    assert set(run_out(batch)) == {"a"}


class Broken(TableGraphs):
    """Fails once when told to."""

    failing = False

    def run(self, graph: str, inputs: Any) -> dict[str, Any]:
        if self.failing:
            self.failing = False
            raise RuntimeError("out of memory")
        return super().run(graph, inputs)


def test_a_crashing_step_can_be_repeated() -> None:
    graphs = Broken(hashed(SIZE, 42), SIZE)
    options = SearchOptions(beam_size=3, max_length=20, min_length=10)
    batch = DecodeBatch(graphs, beam_size=3)
    batch.join([Sentence(0, source(4), options), Sentence(1, source(5, 6), options)])
    found: dict[Any, Any] = {}
    while len(batch):
        graphs.failing = True
        with pytest.raises(RuntimeError, match="out of memory"):
            batch.step()
        found |= {one.id: list(one.hypotheses) for one in batch.step()}
    assert [found[0], found[1]] == translate_batch(graphs, [source(4), source(5, 6)], options)


def test_what_does_not_fit_is_refused() -> None:
    graphs = TableGraphs(hashed(SIZE, 1), SIZE)
    batch = DecodeBatch(graphs, beam_size=2)
    fits = SearchOptions(beam_size=2)
    for options, field in (
        (SearchOptions(beam_size=3), "beam_size"),
        (SearchOptions(beam_size=2, suppressed=(SIZE,)), "suppressed"),
        (SearchOptions(beam_size=2, prefix=(SIZE,)), "prefix"),
    ):
        with pytest.raises(OptionError) as caught:
            batch.join([Sentence("a", source(4), options)])
        assert caught.value.field == field
    for sources in ((), (np.zeros(0, np.int64),), (*source(4), *source(5))):
        with pytest.raises(ValueError, match="non-empty sources"):
            batch.join([Sentence("a", sources, fits)])
    with pytest.raises(ValueError, match="already"):
        batch.join([Sentence("a", source(4), fits), Sentence("a", source(5), fits)])
    assert len(batch) == 0


def test_options_that_the_graphs_cannot_serve_are_refused() -> None:
    class Bare(TableGraphs):
        @property
        def specs(self) -> Any:
            return {name: super(Bare, self).specs[name] for name in ("encode", "step")}

    batch = DecodeBatch(Bare(hashed(SIZE, 1), SIZE), beam_size=1)
    for options in (SearchOptions(beam_size=1, coverage_penalty=0.2), SearchOptions(beam_size=1, sampling=Sampling())):
        with pytest.raises(OptionError):
            batch.join([Sentence("a", source(4), options)])


def test_counters_add_up() -> None:
    batch = DecodeBatch(TableGraphs(hashed(SIZE, 1), SIZE), beam_size=2)
    options = SearchOptions(beam_size=2, min_length=3, max_length=3)
    batch.join([Sentence(0, source(4), options), Sentence(1, source(4, 5, 6), options)])
    counters = batch.counters
    assert (counters.steps, counters.rows, counters.dead_rows) == (1, 2, 0)
    assert (counters.source_cells, counters.source_padding) == (8, 2)
    assert (counters.slot_cells, counters.slot_padding) == (32, 30)
    run_out(batch)
    assert (batch.counters.steps, batch.counters.rows) == (4, 14)


def test_alignments_have_the_shape_of_their_sentence() -> None:
    def attention(steps: int, length: int) -> np.ndarray:
        return np.full((steps, length), 1 / length, np.float32)

    graphs = TableGraphs(hashed(SIZE, 1), SIZE, sources=2, attention=attention)
    pairs = [(*source(4, 5), *source(6)), (*source(4), *source(6, 7, 8))]
    found = align(graphs, pairs, [[(4, 5, 6), (4,)], [()]])
    assert [[tuple(one.shape for one in pair) for pair in group] for group in found] == [
        [((4, 3), (4, 2)), ((2, 3), (2, 2))],
        [((1, 2), (1, 4))],
    ]
    assert all(np.allclose(one.sum(axis=1), 1) for group in found for pair in group for one in pair)
    assert EOS == 3
