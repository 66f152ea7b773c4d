"""The offline driver: any window and budget give what each sentence gives alone, in order, and little is held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.search import Array, Failed, OfflineDecoder, SearchOptions
from tandem.models.search.offline import Sources
from tests.models.search.tables import TableGraphs, hashed, source

SIZE = 9
OPTIONS = SearchOptions(beam_size=2, max_length=12, min_length_ratio=0.5)
ALONE: dict[tuple[int, ...], Any] = {}


def made(tokens: tuple[int, ...]) -> Sources:
    return source(*tokens)


def alone(tokens: tuple[int, ...]) -> Any:
    if tokens not in ALONE:
        (ALONE[tokens],) = OfflineDecoder(TableGraphs(hashed(SIZE, 5), SIZE), OPTIONS).decode([made(tokens)])
    return ALONE[tokens]


@given(
    st.lists(st.lists(st.integers(4, 8), min_size=1, max_size=15).map(tuple), max_size=12),
    st.integers(1, 120),
    st.integers(1, 13),
    st.none() | st.integers(1, 5),
)
def test_any_window_and_budget_give_what_each_sentence_gives_alone(
    sentences: list[tuple[int, ...]], budget: int, window: int, most: int | None
) -> None:
    ended: list[int] = []
    graphs = TableGraphs(hashed(SIZE, 5), SIZE)
    decoder = OfflineDecoder(graphs, OPTIONS, token_budget=budget, most=most, window=window, progress=ended.append)
    assert list(decoder.decode(map(made, sentences))) == [alone(one) for one in sentences]
    assert sum(ended) == len(sentences)
    rows = [inputs["token"].shape[0] for name, inputs in graphs.calls if name == "step"]
    assert max(rows, default=0) <= 2 * (most or window)


def test_sentences_join_where_others_have_ended() -> None:
    """With room for four, ten sentences of very different length: the encoder sees some while others are running."""
    graphs = TableGraphs(hashed(SIZE, 5), SIZE)
    options = SearchOptions(beam_size=1, max_length=40, min_length_ratio=1.0, max_length_ratio=1.0)
    sentences = [(4,) * length for length in (30, 20, 2, 2, 3, 2, 2, 2, 2, 2)]
    assert len(list(OfflineDecoder(graphs, options, most=4).decode(map(made, sentences)))) == 10
    names = [name for name, _ in graphs.calls]
    steps_of_longest = names.index("step") + 30
    assert names[:steps_of_longest].count("encode") > 2


def test_no_more_than_a_window_is_read_ahead() -> None:
    read = 0

    def endless() -> Iterator[Sources]:
        nonlocal read
        while True:
            read += 1
            yield source(4, 5)

    decoder = OfflineDecoder(TableGraphs(hashed(SIZE, 5), SIZE), OPTIONS, window=8)
    for taken, _ in zip(range(1, 41), decoder.decode(endless()), strict=False):
        assert read - taken < 8 + 1
    assert read <= 48


class Fragile:
    """Crashes in the encoder, or at a step after the first, where a source has a token."""

    def __init__(self, encode: int, step: int) -> None:
        self._graphs = TableGraphs(hashed(SIZE, 5), SIZE)
        self.specs, self._encode, self._step = self._graphs.specs, encode, step

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph == "encode" and (inputs["source0"] == self._encode).any():
            raise RuntimeError("the encoder crashed")
        if graph == "step" and inputs["position"].max() > 0 and (inputs["memory.tokens.0"] == self._step).any():
            raise RuntimeError("the step crashed")
        return self._graphs.run(graph, inputs)


@pytest.mark.parametrize("window", [1, 3, 100])
def test_a_crash_costs_the_sentences_at_fault_and_no_other(window: int) -> None:
    sentences = [(4,), (4, 7), (5, 6), (8, 4, 4), (6,) * 9, (4, 4, 4)]
    decoder = OfflineDecoder(Fragile(7, 8), OPTIONS, isolate=True, window=window)
    outcomes = list(decoder.decode(map(made, sentences)))
    assert outcomes[1] == Failed("RuntimeError: the encoder crashed")
    assert outcomes[3] == Failed("RuntimeError: the step crashed")
    for index in (0, 2, 4, 5):
        assert outcomes[index] == alone(sentences[index])


def test_without_isolation_the_error_is_raised() -> None:
    with pytest.raises(RuntimeError, match="the encoder crashed"):
        list(OfflineDecoder(Fragile(7, 8), OPTIONS).decode([source(4), source(7)]))


def test_no_exception_of_the_process_is_a_failure_of_a_sentence() -> None:
    class Interrupted(TableGraphs):
        def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(OfflineDecoder(Interrupted(hashed(SIZE, 5), SIZE), OPTIONS, isolate=True).decode([(np.array([4, 3]),)]))
