"""Batches: every pair once, the budget held, little padding, the same plan for the same seed; exact tensors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import ConfigError
from tandem.training.data.batches import collate
from tandem.training.data.dataset import PreparedData, TokenArray
from tandem.training.data.plans import BatchPlan, plan_epoch
from tandem.training.data.prefetch import prefetch
from tests.training.toy import padded_tokens

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=80)


def side(sequences: Sequence[Sequence[int]]) -> TokenArray:
    offsets = np.cumsum([0, *map(len, sequences)]).astype(np.int64)
    return TokenArray(np.array(array("i", [t for s in sequences for t in s]), dtype=np.uint16), offsets)


def flat(plans: Iterable[BatchPlan]) -> list[int]:
    return [pair for plan in plans for item in plan.items for pair in item]


@given(LENGTHS, st.integers(40, 200), st.floats(0, 1), st.integers(2, 5), st.integers(0, 3))
def test_every_pair_once_within_the_budget(
    lengths: list[tuple[int, int]], max_tokens: int, share: float, most: int, epoch: int
) -> None:
    source, target = (np.array(column, dtype=np.int64) for column in zip(*lengths, strict=True))
    plan = partial(
        plan_epoch, source, target, seed=7, max_tokens=max_tokens, join_share=share, join_most=most,
        max_source_tokens=60, max_target_tokens=50,
    )  # fmt: skip
    plans = plan(epoch=epoch)
    assert sorted(flat(plans)) == list(range(len(lengths)))
    assert plans == plan(epoch=epoch)
    for batch in plans:
        assert padded_tokens(batch) <= 2 * max_tokens
        item_source = [sum(source[list(item)] - 1) + 1 for item in batch.items]
        item_target = [sum(target[list(item)] - 1) + 1 for item in batch.items]
        assert (batch.source_length, batch.target_length) == (max(item_source), max(item_target))
        for item, s, t in zip(batch.items, item_source, item_target, strict=True):
            assert len(item) <= most
            assert len(item) == 1 or (s <= 60 and t <= 50)


def test_epochs_differ_and_joins_come_in_the_share_asked_for() -> None:
    lengths = np.full(20_000, 9, dtype=np.int64)
    plan = partial(plan_epoch, lengths, lengths, seed=1, max_tokens=2000, join_share=0.2, join_most=4)
    first, second = plan(epoch=0), plan(epoch=1)
    assert flat(first) != flat(second)
    items = [item for batch in first for item in batch.items]
    assert sum(len(item) > 1 for item in items) / len(items) == pytest.approx(0.2, abs=0.01)
    assert {len(item) for item in items} == {1, 2, 3, 4}


def test_little_padding_on_text_like_lengths() -> None:
    rng = np.random.default_rng(0)
    source = np.clip(rng.lognormal(2.7, 0.6, 50_000), 2, 200).astype(np.int64)
    target = np.clip(source * rng.lognormal(0, 0.25, len(source)), 2, 200).astype(np.int64)
    plans = plan_epoch(source, target, epoch=0, seed=1, max_tokens=4000)
    assert 1 - (source.sum() + target.sum()) / sum(map(padded_tokens, plans)) < 0.10


@given(LENGTHS, st.integers(1, 9))
def test_batches_counted_in_sentences(lengths: list[tuple[int, int]], most: int) -> None:
    """Full but for the last where the budget is no bound, smaller where it is."""
    source, target = (np.array(column, dtype=np.int64) for column in zip(*lengths, strict=True))
    plan = partial(plan_epoch, source, target, epoch=0, seed=7, max_items=most)
    roomy, tight = plan(max_tokens=40 * 80), plan(max_tokens=40)
    assert sorted(flat(roomy)) == sorted(flat(tight)) == list(range(len(lengths)))
    sizes = sorted(len(batch.items) for batch in roomy)
    assert sizes[1:] == [most] * (len(sizes) - 1)
    assert all(len(one.items) <= most and padded_tokens(one) <= 80 for one in tight)


def test_a_pair_longer_than_the_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_tokens must be at least 15 for the longest pair, but is 14"):
        plan_epoch(np.array([3, 20]), np.array([3, 10]), epoch=0, seed=1, max_tokens=14)


def test_collate_joins_and_pads() -> None:
    data = PreparedData((side([[5, 6, 3], [7, 3], [8, 9, 10, 3]]),), side([[11], [12, 13], [14]]))
    assert data.source_lengths.tolist() == [3, 2, 4]
    assert data.target_lengths.tolist() == [2, 3, 2]
    batch = collate(data, BatchPlan(((1, 2), (0,)), 5, 4))
    assert batch.sources[0].values.tolist() == [[7, 8, 9, 10, 3], [5, 6, 3, 0, 0]]
    assert batch.sources[0].lengths.tolist() == [5, 3]
    assert batch.target_in.tolist() == [[2, 12, 13, 14], [2, 11, 0, 0]]
    assert batch.target_out.tolist() == [[12, 13, 14, 3], [11, 3, 0, 0]]
    assert (batch.source_tokens, batch.target_tokens) == (8, 6)


SEQUENCE = st.lists(st.integers(4, 300), max_size=12)


@given(st.lists(st.tuples(SEQUENCE, SEQUENCE, SEQUENCE), min_size=1, max_size=15), st.floats(0, 1))
def test_collate_loses_nothing(rows: list[tuple[list[int], list[int], list[int]]], share: float) -> None:
    first, second, target = zip(*rows, strict=True)
    data = PreparedData((side([[*ids, 3] for ids in first]), side([[*ids, 3] for ids in second])), side(target))
    for plan in plan_epoch(data.source_lengths, data.target_lengths, epoch=0, seed=3, max_tokens=60, join_share=share):
        batch = collate(data, plan)
        for row, item in enumerate(plan.items):
            for source, text in zip(batch.sources, (first, second), strict=True):
                expected = [token for pair in item for token in text[pair]] + [3]
                assert source.values[row, : source.lengths[row]].tolist() == expected
                assert not source.values[row, source.lengths[row] :].any()
            words = [token for pair in item for token in target[pair]]
            assert batch.target_out[row].tolist()[: len(words) + 1] == [*words, 3]
            assert batch.target_in[row].tolist()[: len(words) + 1] == [2, *words]
        assert batch.target_tokens == int((batch.target_out != 0).sum())
        assert batch.source_tokens == sum(int((source.values != 0).sum()) for source in batch.sources)


def test_resuming_by_skipping_equals_going_on() -> None:
    data = PreparedData((side([[4] * (n % 9) + [3] for n in range(300)]),), side([[5] * (n % 7) for n in range(300)]))
    plan = partial(plan_epoch, data.source_lengths, data.target_lengths, epoch=2, seed=5, max_tokens=64, join_share=0.3)
    whole = [batch.target_out.tolist() for batch in prefetch(partial(collate, data), plan())]
    rest = [batch.target_out.tolist() for batch in prefetch(partial(collate, data), islice(plan(), 11, None))]
    assert rest == whole[11:]


def test_copied_spans_come_from_the_source_in_the_share_asked_for() -> None:
    rng = np.random.default_rng(3)
    sources = [[*rng.integers(10, 99, n).tolist(), 3] for n in rng.integers(1, 20, 4000)]
    targets = [rng.integers(100, 199, n).tolist() for n in rng.integers(1, 12, 4000)]
    data = PreparedData((side(sources),), side(targets))
    plan = partial(plan_epoch, data.source_lengths, data.target_lengths, epoch=2, seed=1, max_tokens=300)
    plain, copying = plan(), plan(copy_share=0.4)
    assert [batch.items for batch in plain] == [batch.items for batch in copying]
    assert copying == plan(copy_share=0.4)
    copied = room = 0
    for batch in copying:
        tensors = collate(data, batch)
        for row, (pair,) in enumerate(batch.items):
            source, target = sources[pair][:-1], targets[pair]
            first, *read = tensors.target_in[row].tolist()[: len(target) + 1]
            assert tensors.target_out[row].tolist()[: len(target) + 1] == [*read, 3]
            room += len(target) <= len(source)
            if batch.copies[row] < 0:
                assert (first, read) == (2, target)
            else:
                copied += 1
                begin = batch.copies[row]
                assert (first, read) == (3, source[begin : begin + len(target)])
    assert copied / room == pytest.approx(0.4, abs=0.05)


def test_prefetch_hands_over_errors_in_their_turn() -> None:
    results = prefetch(lambda n: 10 // n, [5, 2, 0, 1])
    assert [next(results), next(results)] == [2, 5]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_prefetch_ends_when_left() -> None:
    made: list[int] = []

    def note(number: int) -> int:
        made.append(number)
        return number

    results = prefetch(note, iter(range(10**9)), depth=2)
    assert next(results) == 0
    results.close()
    assert len(made) <= 5
