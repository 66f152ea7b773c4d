"""Records: selection and growth act on every tensor by its declared kind."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tandem.models.architectures.records import Memory, State, memory, pool, rows


@dataclass(frozen=True, slots=True, eq=False)
class SomeMemory(Memory):
    parts: tuple[Tensor, ...] = memory("source0", "fixed")
    mask: Tensor = memory("source0", padding=-math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class SomeState(State):
    last: tuple[Tensor, ...] = rows()
    keys: tuple[Tensor, ...] = pool()


def numbered(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)


@pytest.fixture
def state() -> SomeState:
    """Two sentences of two rows; three slots a sentence."""
    return SomeState(
        position_R=torch.tensor([4, 4, 1, 1]),
        history_RP=numbered(4, 3),
        last=(numbered(4, 2), numbered(4, 1, 2)),
        keys=(numbered(2, 3, 5),),
    )


def test_tensors_are_named_in_declaration_order(state: SomeState) -> None:
    assert [name for name, _, _ in state.tensors()] == ["position_R", "history_RP", "last.0", "last.1", "keys.0"]
    kinds = [item.metadata["kind"] for _, item, _ in state.tensors()]
    assert kinds == ["position", "history", "rows", "rows", "pool"]


def test_rebuild_is_the_inverse_of_tensors(state: SomeState) -> None:
    values = {name: tensor + 1 for name, _, tensor in state.tensors()}
    rebuilt = SomeState.rebuild(state, values)
    for name, _, tensor in rebuilt.tensors():
        assert tensor is values[name]


def test_memory_selects_sentences() -> None:
    record = SomeMemory(parts=(numbered(3, 2, 4), numbered(3, 2, 4) + 1), mask=numbered(3, 2))
    chosen = torch.tensor([2, 2, 0])
    selected = record.select(chosen)
    for (_, _, old), (_, _, new) in zip(record.tensors(), selected.tensors(), strict=True):
        assert new.equal(old[chosen])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_state_selects_rows_and_leaves_pools(parents: list[int]) -> None:
    record = SomeState(torch.arange(4), numbered(4, 3), (numbered(4, 2),), (numbered(2, 3, 5),))
    selected = record.select(torch.tensor(parents))
    for (_, item, old), (_, _, new) in zip(record.tensors(), selected.tensors(), strict=True):
        assert new.equal(old if item.metadata["kind"] == "pool" else old[torch.tensor(parents)])


def test_advance_replaces_rows_and_appends_one_slot_per_row(state: SomeState) -> None:
    new_keys = numbered(4, 5) + 100
    after = state.advance({"last": (numbered(4, 2) + 7, numbered(4, 1, 2)), "keys": (new_keys,)}, sentences=2)
    assert after.position_R.tolist() == [5, 5, 2, 2]
    assert after.last[0].equal(numbered(4, 2) + 7)
    assert after.keys[0][:, :3].equal(state.keys[0])
    # The slots of a sentence's rows follow one another, and each row sees its own alone.
    assert after.keys[0][:, 3:].reshape(4, 5).equal(new_keys)
    assert after.history_RP[:, :3].equal(state.history_RP.to(after.history_RP.dtype))
    own = after.history_RP[:, 3:].isfinite().nonzero()
    assert own.tolist() == [[0, 0], [1, 1], [2, 0], [3, 1]]
    assert (after.history_RP[:, 3:].isinf() | (after.history_RP[:, 3:] == 0)).all()


def test_a_missing_update_is_an_error(state: SomeState) -> None:
    with pytest.raises(KeyError, match="keys"):
        state.advance({"last": state.last}, sentences=2)
