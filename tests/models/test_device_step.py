"""The step over static buffers: it can be recorded and replayed, reads nothing back, and moves no buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from models.device import Shape, Sizes, StaticBatch, StaticStep
from models.device.step import in_order
from models.errors import ConfigError, OptionError
from models.graphs import TorchGraphs
from models.search import DecodeBatch, Sentence
from tests.models.architectures import FIRST_CASES, Case, first_cases
from tests.models.device import (
    POOLED,
    SIZES,
    assert_same,
    decoded,
    mixed,
    prepared,
    static,
)
from tests.models.search.tables import run_out

QUICK = ("transformer", "multisource")


class Replayed(StaticStep):
    """Runs in Python once per shape; from then on what was recorded then is replayed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.recorded: dict[Shape, Callable[[], Tensor]] = {}
        self.replays = 0

    def forward(self, shape: Shape) -> None:
        if shape in self.recorded:
            self.recorded[shape]()
            self.replays += 1
            return

        def once() -> Tensor:
            super(Replayed, self).forward(shape)
            return torch.zeros(())

        self.recorded[shape] = make_fx(once)()


@pytest.mark.parametrize(
    "case",
    # One with pools and one with row state that the sources begin; the others are more of the same.
    [
        pytest.param(case, id=str(case), marks=[] if case.architecture in QUICK else pytest.mark.slow)
        for case in FIRST_CASES
    ],
)
def test_a_recorded_step_can_be_replayed(case: Case) -> None:
    """As a captured graph would be: everything that changes from step to step lies in the buffers.

    Recording itself fails where the host looks at a tensor's values.
    """
    model = prepared(case)
    joining = mixed(model, 3)
    step = Replayed(model, beam_size=3, sizes=Sizes((4,), (16,), (8, 16)))
    batch = StaticBatch(step)
    batch.join(joining[:2])
    found = {one.id: one.hypotheses for _ in range(3) for one in batch.step()}
    batch.join(joining[2:])
    found |= run_out(batch)
    found |= decoded(batch, [Sentence("again", joining[0].sources, joining[0].options)])
    assert step.replays > 4 * len(step.recorded) > 4
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining)
    assert_same(found, expected | {"again": expected[0]})


class OfOneShape(nn.Module):
    def __init__(self, step: StaticStep, shape: Shape) -> None:
        super().__init__()
        self.step, self.shape = step, shape

    def forward(self, given: Tensor) -> Tensor:
        self.step(self.shape)
        return given


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning")  # torch's own
@first_cases
def test_the_step_exports(case: Case) -> None:
    step = StaticStep(prepared(case), beam_size=3, sizes=Sizes((2,), (8,), (8,)))
    shape = Shape(2, (8,) * len(step.records.sources), 8)
    with torch.no_grad():
        program = torch.export.export(OfOneShape(step, shape), (torch.zeros(1),))
    assert not program.range_constraints  # no size depends on data
    assert len(program.run_decompositions().graph_signature.buffers_to_mutate) > 10


class NoLooking(TorchDispatchMode):
    """Fails where a tensor's values reach the host, or where they make a shape."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero", "item")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        name = func.name().removeprefix("aten::").partition(".")[0]
        assert name not in self.FORBIDDEN, f"{name} waits for the device"
        if name in ("index", "index_put", "index_put_"):
            assert not any(isinstance(one, Tensor) and one.dtype == torch.bool for one in args[1]), "a boolean index"
        return func(*args, **(kwargs or {}))


@first_cases
def test_nothing_is_read_back_within_a_step_and_no_buffer_moves(case: Case) -> None:
    model = prepared(case)
    step = StaticStep(model, beam_size=3, sizes=SIZES)
    addresses = {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    batch = StaticBatch(step, poll_every=100)  # only looks when all must be done
    joining = mixed(model, 3)
    batch.join(joining[:2])
    with NoLooking() as mode:
        for _ in range(3):
            batch.step()
    assert mode.seen > 100
    batch.join(joining[2:4])
    batch.remove([0])
    run_out(batch)
    assert addresses == {name: buffer.data_ptr() for name, buffer in step.named_buffers()}


def test_looking_is_noticed() -> None:
    with NoLooking(), pytest.raises(AssertionError, match="waits for the device"):
        torch.ones(3).max().item()
    with NoLooking(), pytest.raises(AssertionError, match="boolean index"):
        torch.ones(3)[torch.ones(3) > 0]


@given(
    st.lists(
        st.tuples(st.sampled_from([-2.5, -1.0, -0.5]), st.integers(0, 3), st.integers(0, 8)),
        min_size=2,
        max_size=12,
        unique_by=lambda one: one[1:],
    )
)
def test_candidates_are_ordered_by_score_then_parent_then_token(given_candidates: list[tuple[float, int, int]]) -> None:
    scores, parents, tokens = (torch.tensor([column]) for column in zip(*given_candidates, strict=True))
    ordered = in_order(scores, tokens, parents, 9)
    found = [(-score, parent, token) for score, token, parent in zip(*(x[0].tolist() for x in ordered), strict=True)]
    assert found == sorted((-score, parent, token) for score, parent, token in given_candidates)


def test_sizes_and_settings_are_checked() -> None:
    for wrong in ((), (4, 2), (0, 3), (2, 2)):
        with pytest.raises(ConfigError, match="source must be ascending"):
            Sizes(source=wrong)
    assert SIZES.shape(3, (4, 5), 1) == Shape(4, (4, 16), 4)
    model = prepared(POOLED)
    with pytest.raises(ConfigError, match="at most the model's 32 positions"):
        StaticStep(model, beam_size=2, sizes=Sizes(target=(8, 64)))
    with pytest.raises(OptionError, match="beam_size must be at least 1"):
        StaticStep(model, beam_size=0, sizes=SIZES)
    with pytest.raises(ConfigError, match="poll_every must be at least 1"):
        static(model, 2, poll_every=0)
