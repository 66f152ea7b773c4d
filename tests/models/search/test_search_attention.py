"""Attention of finished hypotheses: for those who ask, computed once, and the same whatever the batch."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pytest

from tandem.models.errors import OptionError
from tandem.models.search import Array, DecodeBatch, GraphSpecs, Hypothesis, Sampling, SearchOptions, Sentence, align
from tests.models.search.tables import TableGraphs, hashed, run_out, source

SIZE = 9
OPTIONS = SearchOptions(beam_size=3, n_best=2, max_length=6, attention=True)
SENTENCES = {"a": source(4, 5), "b": source(6, 7, 8, 4, 5), "c": source(5)}


def weights(steps: int, length: int) -> Array:
    """Every step differs from every other, and every source position."""
    found: Array = np.random.default_rng(length).random((64, length)).astype(np.float32)[:steps]
    return found


class NoAlign(TableGraphs):
    @property
    def specs(self) -> GraphSpecs:
        return {name: spec for name, spec in super().specs.items() if name != "align"}


def graphs(**changes: object) -> TableGraphs:
    return TableGraphs(hashed(SIZE, 3), SIZE, attention=weights, **changes)  # type: ignore[arg-type]


def decode(table: TableGraphs, options: dict[str, SearchOptions]) -> dict[Hashable, tuple[Hypothesis, ...]]:
    batch = DecodeBatch(table, beam_size=3)
    batch.join([Sentence(name, SENTENCES[name], own) for name, own in options.items()])
    return run_out(batch)


def aligned(table: TableGraphs) -> int:
    """Hypotheses, padding included, whose attention was computed."""
    return sum(len(inputs["target"]) for graph, inputs in table.calls if graph == "align")


def test_it_is_what_the_align_graph_gives() -> None:
    table = graphs()
    for name, hypotheses in decode(table, dict.fromkeys(SENTENCES, OPTIONS)).items():
        tokens = [one.tokens for one in hypotheses]
        (wanted,) = align(table, [SENTENCES[str(name)]], [tokens])
        for one, expected in zip(hypotheses, wanted, strict=True):
            assert one.attention is not None
            assert [array.shape for array in one.attention] == [(len(one.tokens) + 1, len(SENTENCES[str(name)][0]))]
            np.testing.assert_array_equal(one.attention[0], expected[0])
            assert one.attention[0].base is None  # no view that keeps the batch's arrays alive


def test_only_those_who_ask_pay_and_only_for_what_is_returned() -> None:
    table = graphs()
    plain = replace(OPTIONS, attention=False)
    found = decode(table, {"a": plain, "b": OPTIONS, "c": plain})
    assert aligned(table) == OPTIONS.n_best
    assert {name: one[0].attention is not None for name, one in found.items()} == {
        "a": False,
        "b": True,
        "c": False,
    }
    without = graphs()
    assert decode(without, dict.fromkeys(SENTENCES, plain)) == found  # hypotheses compare without their attention
    assert aligned(without) == 0


def test_the_coverage_penaltys_attention_is_used_again() -> None:
    covered = replace(OPTIONS, coverage_penalty=0.3, attention=False)
    ranked, both = graphs(), graphs()
    expected = decode(ranked, {"b": covered})
    found = decode(both, {"b": replace(covered, attention=True)})
    assert found == expected
    assert aligned(both) == aligned(ranked) > OPTIONS.n_best
    (wanted,) = align(graphs(), [SENTENCES["b"]], [[one.tokens for one in found["b"]]])
    for one, attention in zip(found["b"], wanted, strict=True):
        assert one.attention is not None
        np.testing.assert_array_equal(one.attention[0], attention[0])


def test_samples_have_it_too_even_equal_ones() -> None:
    options = replace(OPTIONS, n_best=3, sampling=Sampling(temperature=0.01))
    found = decode(graphs(), {"a": options})["a"]
    assert len(found) == 3 and len({one.tokens for one in found}) == 1
    assert all(one.attention is not None for one in found)


@pytest.mark.parametrize("state", ["pool", "rows"])
def test_several_sources(state: str) -> None:
    table = graphs(state=state, sources=2)
    batch = DecodeBatch(table, beam_size=3)
    batch.join([Sentence("x", (*source(4, 5, 6), *source(7)), OPTIONS)])
    best = run_out(batch)["x"][0]
    assert best.attention is not None
    assert [one.shape for one in best.attention] == [(len(best.tokens) + 1, 4), (len(best.tokens) + 1, 2)]


def test_a_model_without_attention_refuses() -> None:
    table = NoAlign(hashed(SIZE), SIZE)
    with pytest.raises(OptionError, match="attention must be false for a model without attention"):
        decode(table, {"a": OPTIONS})
