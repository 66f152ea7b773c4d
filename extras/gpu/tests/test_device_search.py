"""Search over static buffers: the hypotheses of ``DecodeBatch``, whoever joins, leaves, waits or fails."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.extras.gpu.sizes import Sizes
from tandem.extras.gpu.tests.support import (
    ORDINARY,
    POOLED,
    RECURRENT,
    RULES,
    Found,
    assert_same,
    decoded,
    mixed,
    options,
    prepared,
    sources,
    static,
)
from tandem.models.errors import OptionError
from tandem.models.search import Counters, DecodeBatch, Hypothesis, SearchOptions, Sentence, SentenceError
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import CASES, EOS, FIRST_CASES, AnyModel, Case, first_cases
from tests.models.search.tables import batch_actions, played, run_out


@pytest.mark.parametrize(
    ("case", "beam_size"),
    [
        pytest.param(
            case, size, id=f"{case}-{size}", marks=[] if case in FIRST_CASES and size == 4 else pytest.mark.slow
        )
        for case in CASES
        for size in (1, 4, 5)
    ],
)
def test_hypotheses_are_those_of_the_one_search(case: Case, beam_size: int) -> None:
    """In float64, where no two hypotheses are equal but for rounding."""
    model = prepared(case, torch.float64)
    joining = mixed(model, beam_size)
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=beam_size), joining)
    for lag in (False, True):
        batch = static(model, beam_size, lag=lag)
        batch.join(joining[:3])
        found = {one.id: one.hypotheses for one in batch.step()}
        batch.join(joining[3:])  # late, and most of them must wait for a slot
        assert_same(found | run_out(batch), expected)


def test_what_the_equality_covers() -> None:
    """Hypotheses end early and at their bound, at different lengths within one sentence and between sentences."""
    model = prepared(POOLED)
    found = decoded(static(model, 5), mixed(model, 5))
    lengths = {name: {len(one.tokens) for one in hypotheses} for name, hypotheses in found.items()}
    assert len(set.union(*lengths.values())) > 5
    assert any(len(own) > 2 for own in lengths.values())


@cache
def double(case: Case) -> AnyModel:
    return prepared(case, torch.float64)


@cache
def alone(case: Case, beam_size: int, which: int, rules: int) -> tuple[Hypothesis, ...]:
    sentence = Sentence(0, sources(double(case))[which], options(beam_size, rules))
    return decoded(DecodeBatch(TorchGraphs(double(case)), beam_size=beam_size), [sentence])[0]


@settings(max_examples=settings().max_examples // 6)  # of every architecture
@given(
    actions=batch_actions(6, len(RULES), 10),
    beam_size=st.sampled_from([1, 3]),
    poll_every=st.integers(1, 5),
    lag=st.booleans(),
)
@first_cases
def test_batch_mates_change_nothing(
    actions: list[tuple[str, Any]], beam_size: int, poll_every: int, case: Case, lag: bool
) -> None:
    batch = static(double(case), beam_size, poll_every=poll_every, lag=lag)
    known = sources(double(case))
    kept, found = played(
        batch, actions, lambda name, which, rules: Sentence(name, known[which], options(beam_size, rules))
    )
    assert_same(found, {name: alone(case, beam_size, *pair) for name, pair in kept.items()}, 1e-5)


@settings(max_examples=12)
@given(
    source=st.lists(st.integers(4, 7), max_size=12),
    prefix=st.lists(st.integers(4, 7), max_size=10),
    required=st.lists(st.integers(4, 7), max_size=3),
    size=st.integers(0, 4),
    rounds=st.integers(0, 3),
    extra=st.integers(0, 6),
)
def test_rules_of_repetition_and_required_tokens_are_those_of_the_one_search(
    source: list[int], prefix: list[int], required: list[int], size: int, rounds: int, extra: int
) -> None:
    """Few tokens, so that texts repeat themselves in all ways before the first token that is searched for."""
    model = double(RECURRENT)
    rules = SearchOptions(
        beam_size=3, n_best=3, prefix=tuple(prefix), required=tuple(required), no_repeat_ngram_size=size,
        max_rounds=rounds, max_length=min(15, len(prefix) + extra + 1), suppressed=(0, 1, 2, 8, 9, 10),
    )  # fmt: skip
    sentence = Sentence(0, (np.array([*source, EOS], np.int64),), rules)
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), [sentence])
    assert_same(decoded(static(model, 3), [sentence]), expected, 1e-6)


@first_cases
def test_a_full_batch_answers_as_a_sentence_alone(case: Case) -> None:
    model = prepared(case)
    joining = mixed(model, 4)[:5]
    together = decoded(static(model, 4, Sizes((8,), (16,), (16,))), joining)
    for sentence in joining:
        assert_same(decoded(static(model, 4), [sentence]), {sentence.id: together[sentence.id]})


@pytest.mark.parametrize("lag", [False, True])
@pytest.mark.parametrize("poll_every", [1, 3, 50])
def test_sentences_idle_until_the_masks_are_read(poll_every: int, lag: bool) -> None:
    model = prepared(POOLED)
    joining = mixed(model, 3)[:4]
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining)
    longest = max(one.options.max_length for one in joining)
    batch = static(model, 3, poll_every=poll_every, lag=lag)
    batch.join(joining)
    found: Found = {}
    calls = 0
    while len(batch):
        calls += 1
        done = batch.step()
        taken = min(calls * poll_every, longest + 1)
        # Where looks lag, the last but one has been read; all have been where every sentence must be done.
        looked = taken - poll_every if lag and taken <= longest else taken
        assert batch.counters.steps >= min(looked, taken)
        assert all(len(one.hypotheses[0].tokens) <= taken for one in done)
        found |= {one.id: one.hypotheses for one in done}
    assert calls <= -(-(longest + 1) // poll_every)
    assert_same(found, expected)


def test_counters_are_those_of_the_one_search() -> None:
    """Live rows and seen slots alike; the static batch runs more dead ones."""
    model = prepared(POOLED)
    joining = [one for one in mixed(model, 3) if not (one.options.attention or one.options.coverage_penalty)][:4]
    general, batch = DecodeBatch(TorchGraphs(model), beam_size=3), static(model, 3, poll_every=1)
    decoded(general, joining)
    assert batch.rows == 0
    batch.join(joining)
    assert batch.rows == 4 * 3
    run_out(batch)

    def useful(counted: Counters) -> tuple[int, int]:
        return counted.rows - counted.dead_rows, counted.slot_cells - counted.slot_padding

    assert useful(batch.counters) == useful(general.counters)
    assert batch.counters.steps == general.counters.steps
    assert batch.counters.rows >= general.counters.rows


def test_where_nothing_may_follow_the_hypotheses_are_unfinished() -> None:
    model = prepared(POOLED)
    (source,) = sources(model, (4,))
    rules = SearchOptions(beam_size=3, n_best=3, suppressed=ORDINARY, prefix=(5, 6), min_length=4, max_length=6)
    nothing = SearchOptions(beam_size=3, suppressed=ORDINARY, min_length=4, max_length=6)
    joining = [Sentence("two", source, rules), Sentence("none", source, nothing)]
    found = decoded(static(model, 3), joining)
    assert [(one.tokens, one.finished) for one in found["two"]] == [((5, 6), False)]
    assert_same(found, decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining))


def poisoned(token: int, table: str) -> AnyModel:
    """A model whose embedding of one symbol is not a number."""
    model = prepared(Case("convs2s", "plain"))
    with torch.no_grad():
        model.get_parameter(table)[token] = torch.nan
    return model


def test_what_is_not_finite_from_the_first_step_on_is_told_by_step() -> None:
    """The general search tells it when the sentence joins."""
    model = poisoned(7, "source_embedding")
    (good, bad, other) = (np.array(ids, np.int64) for ids in ([5, 6, EOS], [5, 7, EOS], [6, 4, 8, EOS]))
    healthy = SearchOptions(beam_size=3, n_best=3, max_length=8, suppressed=(7,))
    joining = [Sentence(name, (ids,), healthy) for name, ids in (("good", good), ("bad", bad), ("other", other))]
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), [joining[0], joining[2]])
    batch = static(model, 3)
    batch.join(joining)
    for _ in range(3):  # until it is removed
        with pytest.raises(SentenceError, match=r"'bad' at step 0$") as raised:
            batch.step()
        assert raised.value.ids == ("bad",)
    batch.remove(["bad"])
    assert_same(run_out(batch), expected)


def test_what_has_finished_is_not_lost_to_an_error() -> None:
    model = poisoned(7, "source_embedding")
    (good, bad) = (np.array(ids, np.int64) for ids in ([5, 6, EOS], [5, 7, EOS]))
    short = SearchOptions(beam_size=2, max_length=2, suppressed=(7,))
    batch = static(model, 2)
    batch.join([Sentence("good", (good,), short), Sentence("bad", (bad,), short)])
    with pytest.raises(SentenceError):
        run_out(batch)
    batch.remove(["bad"])
    assert [one.id for one in batch.step()] == ["good"]
    assert len(batch) == 0


def test_sentences_without_a_slot_wait_in_order() -> None:
    model = prepared(POOLED)
    batch = static(model, 2, poll_every=1)
    given = sources(model, (3,) * 7)
    batch.join([Sentence(name, source, options(2)) for name, source in enumerate(given)])
    assert batch.ids == tuple(range(7)) and len(batch) == 7 and batch.rows == 8
    batch.remove([1, 5])
    batch.step()
    assert set(batch.ids) == {0, 2, 3, 4, 6} and batch.ids[-1] == 6
    assert set(run_out(batch)) == {0, 2, 3, 4, 6}
    assert batch.step() == [] and batch.ids == ()


def test_shortlists_are_not_for_the_device() -> None:
    model = prepared(POOLED)
    (source,) = sources(model, (4,))
    batch = static(model, 2)
    assert not batch.lacks(Sentence("all", source, options(2)))
    with pytest.raises(OptionError, match="shortlist must be None on the device"):
        batch.join([Sentence("some", source, options(2), shortlist=np.array([3, 5, 6]))])


def test_what_has_no_room_is_refused() -> None:
    model = prepared(POOLED)
    (source, long, _) = sources(model, (4, 20, 3))
    batch = static(model, 2)
    with pytest.raises(ValueError, match="at most 16"):
        batch.join([Sentence("good", source, options(2)), Sentence("bad", long, options(2))])
    assert len(batch) == 0
