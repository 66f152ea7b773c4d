"""The stream of updates: every batch once, whatever the number of processes and shards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tandem.training.data import stream
from tandem.training.data.batches import collate
from tandem.training.data.dataset import PreparedData, TokenArray
from tandem.training.data.directions import SourceTags
from tandem.training.data.features import FeatureArray
from tandem.training.data.plans import BatchPlan, plan_epoch
from tandem.training.data.stream import Group, Stream, share_out
from tandem.training.parallel import Processes
from tests.training.toy import padded_tokens

LIMITS: dict[str, Any] = {"seed": 3, "max_tokens": 60}


def numbered(pairs: int) -> PreparedData:
    """Pairs of many lengths; the first symbol of a target is the pair's number (+ 10)."""
    rng = np.random.default_rng(1)
    sides = []
    for last in (3, None):
        lengths = rng.integers(2, 12, pairs)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = rng.integers(5, 9, offsets[-1])
        tokens[offsets[:-1]] = np.arange(pairs) + 10
        if last is not None:
            tokens[offsets[1:] - 1] = last
        sides.append(TokenArray(tokens.astype(np.int32), offsets))
    return PreparedData((sides[0],), sides[1])


def flat(plans: Sequence[BatchPlan]) -> list[int]:
    return [pair for plan in plans for item in plan.items for pair in item]


def pairs_of(group: Group) -> list[int]:
    """The pairs of a group that teach something."""
    rows = [row for batch in group.batches for row in batch.target_out.tolist() if any(row)]
    return [row[0] - 10 for row in rows]


def test_one_shard_is_the_plan_of_the_epoch() -> None:
    data = numbered(200)
    plans = list(Stream(data, 1, Processes(), **LIMITS).plans(2))
    assert plans == list(plan_epoch(data.source_lengths, data.target_lengths, epoch=2, **LIMITS))


def test_shards_hold_every_pair_once_in_another_order_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SHARD", 64)
    monkeypatch.setattr(stream, "BLOCK", 8)
    data = numbered(203)  # four shards, the last block not full
    own = Stream(data, 1, Processes(), **LIMITS)
    first, again, second = (list(own.plans(epoch)) for epoch in (0, 0, 1))
    assert first == again
    for plans in (first, second):
        assert sorted(flat(plans)) == list(range(203))
        for plan in plans:
            batch = collate(data, plan)
            assert batch.target_out.shape == (len(plan.items), plan.target_length)
            assert batch.sources[0].values.shape[1] == plan.source_length
            assert padded_tokens(plan) <= 120
    begun = [set(flat(plans)[:40]) for plans in (first, second)]
    assert len(begun[0] & begun[1]) < 30


def test_resumed_within_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SHARD", 64)
    monkeypatch.setattr(stream, "BLOCK", 8)
    own = Stream(numbered(203), 2, Processes(), **LIMITS)
    whole = list(islice(own.updates(), 60))
    place = whole[40]
    rest = list(islice(own.updates(place.epoch, place.batch), 19))
    assert [pairs_of(group) for group in rest] == [pairs_of(group) for group in whole[41:]]
    assert {group.epoch for group in whole} >= {0, 1, 2}
    planned: list[int] = []
    plan = stream.Stream._plan

    def counted(self: Stream, rewriting: Any, shard: Any) -> Any:
        planned.append(shard.number)
        return plan(self, rewriting, shard)

    monkeypatch.setattr(stream.Stream, "_plan", counted)
    late = next(group for group in whole if len(group.shards) == 2)
    after = whole.index(late) + 1
    rest = list(islice(own.updates(late.epoch, late.batch, late.shards), 60 - after))
    assert [pairs_of(group) for group in rest] == [pairs_of(group) for group in whole[after:]]
    assert planned[0] == 2, "the shards that are used up are not planned once more"


@given(st.integers(1, 7), st.integers(1, 9))
def test_processes_share_the_updates_of_one(accumulate: int, processes: int) -> None:
    data = numbered(90)
    expected = list(islice(Stream(data, accumulate, Processes(), **LIMITS).updates(), 4))
    shares = [
        list(islice(Stream(data, accumulate, Processes(rank, processes), **LIMITS).updates(), 4))
        for rank in range(processes)
    ]
    for number, group in enumerate(expected):
        parts = [share[number] for share in shares]
        assert {(part.epoch, part.batch) for part in parts} == {(group.epoch, group.batch)}
        assert sorted(pair for part in parts for pair in pairs_of(part)) == sorted(pairs_of(group))
        tokens = sum(batch.target_tokens for part in parts for batch in part.batches)
        assert tokens == sum(batch.target_tokens for batch in group.batches)
        assert all(part.batches for part in parts)


def test_rows_are_dealt_where_there_are_more_processes_than_batches() -> None:
    plans = [BatchPlan(((0,), (1,), (2,)), 5, 5, (-1, 0, -1)), BatchPlan(((3, 4),), 5, 5)]
    shares = [[plan for _, plan in share_out(list(enumerate(plans)), Processes(rank, 5))] for rank in range(5)]
    assert [[plan.items for plan in share] for share in shares] == [
        [((0,),)], [((3, 4),)], [((1,),)], [((3, 4),)], [((2,),)]
    ]  # fmt: skip
    assert [share[0].copies for share in shares[::2]] == [(-1,), (0,), (-1,)]
    assert [share[0].target_length for share in shares] == [5, 5, 5, 0, 5]  # 0: nothing was left, a copy


class Parity(SourceTags):
    """Joins odd pairs with odd ones only, and takes the first symbol of a source for a tag."""

    def groups(self, data: PreparedData) -> NDArray[np.int16]:
        return (np.arange(len(data)) % 2).astype(np.int16)

    def before(self, side: TokenArray | FeatureArray, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.ones_like(pairs)


PARITY = Parity()


def test_joined_sources_lose_the_tags_inside() -> None:
    data = numbered(60)
    joined = Stream(data, 1, Processes(), PARITY, **LIMITS, join_share=0.5, join_most=3)
    (batch,) = next(joined.updates()).batches
    plan = next(joined.plans(0))
    for row, item in enumerate(plan.items):
        parts = [data.sources(pair)[0].tolist()[place > 0 : -1] for place, pair in enumerate(item)]
        expected = [token for part in parts for token in part]
        assert batch.sources[0].values[row].tolist()[: len(expected) + 1] == [*expected, 3]


def test_groups_are_never_joined_with_one_another() -> None:
    data = numbered(400)
    joined = Stream(data, 1, Processes(), PARITY, **LIMITS, join_share=0.5, join_most=3)
    plans = list(joined.plans(0))
    assert sorted(flat(plans)) == list(range(400))
    items = [item for plan in plans for item in plan.items]
    assert sum(len(item) > 1 for item in items) > 30
    assert all(len({pair % 2 for pair in item}) == 1 for item in items)
