"""The step over static buffers: it can be recorded and replayed, reads nothing back, and moves no buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import CapturedStep
from tandem.extras.gpu.rules import FREE, NEVER, append_text, repeating
from tandem.extras.gpu.sizes import Shape, Sizes
from tandem.extras.gpu.step import StaticStep, in_order
from tandem.extras.gpu.tests.support import (
    POOLED,
    RECURRENT,
    SIZES,
    assert_same,
    decoded,
    mixed,
    prepared,
    sources,
    static,
)
from tandem.models.errors import ConfigError, OptionError
from tandem.models.search import DecodeBatch, Sentence
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import AnyModel, Case, first_cases
from tests.models.search.tables import run_out
from tests.posing import DEVICE, Waits, devices, no_autocast, posing

__all__ = ["no_autocast"]


class Traced(TorchDispatchMode):
    """Records a step as the operators it calls; replays them with other memory in use than before."""

    def __init__(self, step: CapturedStep, work: Callable[[], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls: list[tuple[Any, Any, Any, Any]] = []
        before = {name: buffer.clone() for name, buffer in step.named_buffers()}
        with Waits() as waits, self:
            work()
        assert not waits.counts
        for name, buffer in step.named_buffers():  # what records does not compute
            buffer.copy_(before[name])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self._calls.append((func, args, kwargs or {}, made))
        return made

    def replay(self) -> None:
        poison = [torch.full((1 << power,), torch.nan) for power in range(4, 16)]
        del poison  # what is allocated next finds it there
        now: dict[Tensor, Tensor] = {}  # by what was made as it was recorded
        for func, args, kwargs, made in self._calls:
            args, kwargs = tree_map_only(Tensor, lambda tensor: now.get(tensor, tensor), (args, kwargs))
            now.update(zip(tree_leaves(made), tree_leaves(func(*args, **kwargs)), strict=True))


class Tracer:
    """Makes recordings as :class:`extras.gpu.capture.CudaRecorder` does, on the CPU."""

    def __init__(self, refused: int = 0) -> None:
        self.step: CapturedStep | None = None
        self.refused = refused

    def record(self, work: Callable[[], None]) -> Traced:
        assert self.step is not None
        if self.refused:
            self.refused -= 1
            raise RuntimeError("operation not permitted when stream is capturing")
        return Traced(self.step, work)


def captured(model: AnyModel, beam_size: int, sizes: Sizes, tracer: Tracer | None = None, **named: Any) -> CapturedStep:
    tracer = tracer or Tracer()
    step = CapturedStep(model, beam_size=beam_size, sizes=sizes, recorder=lambda: tracer, **named)
    tracer.step = step
    return step


@first_cases
def test_a_recorded_step_can_be_replayed(case: Case) -> None:
    """As a captured graph would be: everything that changes from step to step lies in the buffers.

    Recording itself fails where the host looks at a tensor's values, and a replay computes nothing of the first time.
    """
    model = prepared(case)
    joining = [one for one in mixed(model, 3) if one.options.no_repeat_ngram_size or one.options.max_rounds]
    step = captured(model, 3, Sizes((4,), (16,), (16,), required=3))  # with required tokens and without
    batch = StaticBatch(step, lag=True)
    batch.join(joining[:2])
    found = {one.id: one.hypotheses for _ in range(3) for one in batch.step()}
    batch.join(joining[2:])
    found |= run_out(batch)
    found |= decoded(batch, [Sentence("again", joining[0].sources, joining[0].options)])
    assert step.counters.captures == step.counters.eager_steps >= 2
    assert step.counters.replays > 4 * step.counters.captures
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining)
    assert_same(found, expected | {"again": expected[joining[0].id]})


@first_cases
def test_encoding_in_few_sizes_is_encoding(case: Case) -> None:
    """Padded with sentences that are none, and to the next length."""
    model = prepared(case)

    class Padding(CapturedStep):
        def encode(self, sources: Any) -> Any:
            return self.encode_captured(sources)

    joining = mixed(model, 2)[:7]
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    step = Padding(model, beam_size=2, sizes=SIZES)
    assert_same(decoded(StaticBatch(step), joining), expected)
    assert_same(decoded(StaticBatch(step), joining[:1]), {0: expected[0]})


def test_graphs_are_kept_by_use() -> None:
    class Calls:
        def record(self, work: Callable[[], None]) -> Any:
            return SimpleNamespace(replay=work)

    step = CapturedStep(prepared(RECURRENT), beam_size=1, sizes=Sizes((1,), (4,), (2, 8)), recorder=Calls, most=2)
    shapes = [Shape(1, (4,), 2), Shape(1, (4,), 8), Shape(1, (4,), 8, repeats=True)]
    for shape in (shapes[0], shapes[1], shapes[0], shapes[2], shapes[0], shapes[1]):
        step(shape)
    assert (step.counters.captures, step.counters.evictions, step.counters.replays) == (4, 2, 2)


@pytest.mark.parametrize("refused", [1, 1000])
def test_a_shape_that_cannot_be_captured_is_tried_once_more_and_then_runs_without(refused: int) -> None:
    model = prepared(RECURRENT)
    joining = mixed(model, 2)
    step = captured(model, 2, Sizes((4,), (16,), (16,), required=3), Tracer(refused))
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    assert_same(decoded(StaticBatch(step), joining), expected)
    counters = step.counters
    if refused == 1:
        assert (counters.capture_failures, counters.captures, counters.eager_steps) == (1, 1, 2)
        assert counters.replays > 2
    else:
        assert (counters.capture_failures, counters.captures, counters.replays) == (2, 0, 0)
        assert counters.eager_steps > 2


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
    shape = Shape(2, (8,) * len(step.records.sources), 8, repeats=True, required=True)
    with torch.no_grad():
        program = torch.export.export(OfOneShape(step, shape), (torch.zeros(1),))
    assert not program.range_constraints  # no size depends on data
    assert len(program.run_decompositions().graph_signature.buffers_to_mutate) > 10


@pytest.mark.parametrize("steps", [9, pytest.param(1000, marks=pytest.mark.slow)])
@first_cases
def test_nothing_is_read_back_within_a_step_and_no_buffer_moves(case: Case, steps: int) -> None:
    model = prepared(case)
    step = StaticStep(model, beam_size=3, sizes=SIZES)
    addresses = {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    joining = mixed(model, 3)
    for _ in range(0, steps, 9):
        batch = StaticBatch(step, poll_every=9, lag=True)  # the first look is read at the second
        batch.join([Sentence(n, one.sources, replace(one.options, max_length=12)) for n, one in enumerate(joining[:2])])
        with Waits() as waits:
            assert batch.step() == []
        assert not waits.counts
        assert waits.seen > 100 * 9 and batch.counters.steps == 0
    batch.join(joining[2:4])
    batch.remove([0])
    run_out(batch)
    assert addresses == {name: buffer.data_ptr() for name, buffer in step.named_buffers()}


@pytest.mark.usefixtures("no_autocast")
@first_cases
def test_encoding_and_a_step_stay_on_their_device(case: Case) -> None:
    """Every tensor that they make lies there, and none reaches the host."""
    step = StaticStep(prepared(case), beam_size=3, sizes=SIZES)
    lengths = (16,) * len(step.records.sources)
    given = [torch.from_numpy(x) for x in step.records.inputs(sources(step.model)[:3], 4, lengths)]
    with torch.no_grad(), posing(step), Waits() as waits:
        inputs = [torch.empty(x.shape, dtype=x.dtype, device=DEVICE) for x in given]
        encoded = step.records.encoded(inputs)
        step.records.put(torch.arange(4, device=DEVICE), encoded)
        step(Shape(4, lengths, 16, repeats=True, required=True))
        assert devices([encoded, *step.buffers()]) == {DEVICE}
    assert not waits.counts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@first_cases
def test_narrow_models_keep_narrow_state_and_find_as_good_hypotheses(case: Case, dtype: torch.dtype) -> None:
    model = prepared(case)
    joining = mixed(model, 3)
    expected = decoded(static(model, 3), joining)
    model.to(dtype)
    batch = static(model, 3)
    narrow = {name for name, x in batch._step.records.named_buffers() if x.dtype == dtype}
    assert {name for name in narrow if name.startswith("state__")} and len(narrow) > 1
    assert batch._step.slots.score_BK.dtype == torch.float32
    found = decoded(batch, joining)
    for name, hypotheses in expected.items():
        near = 0.02 if dtype == torch.float16 else 0.4  # another path may be taken, whose end is about as good
        assert found[name][0].normalised == pytest.approx(hypotheses[0].normalised, abs=near, rel=near)


def test_what_waits_is_seen() -> None:
    """The count itself: a value, a mask as an index, the places of what is true, and copies to the host."""
    with Waits() as waits:
        x = torch.ones(3)
        float(x[0])
        x[x > 0]
        x.nonzero()
    assert waits.counts == {"_local_scalar_dense": 1, "index": 1, "nonzero": 1}
    with posing(nn.Linear(2, 2)), Waits() as waits:
        there = torch.ones(3, device=DEVICE)
        there.cpu()
        there.to("cpu", non_blocking=True)
        torch.ones(3).copy_(there)
        for look in (there[0].item, there.tolist, there.numpy):  # the last of which no tensor that poses has
            with pytest.raises(RuntimeError, match=r"_local_scalar_dense|numpy"):
                look()
    assert waits.counts == {"_to_copy": 2, "copy_": 1, "_local_scalar_dense": 2}


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
    with pytest.raises(ConfigError, match="required must be at least 1"):
        Sizes(required=0)
    assert Sizes.within(100, 160, 32) == Sizes((8, 64, 100), (32, 64, 128, 160), (32,))
    assert Sizes.within(100, 160, 32).halved().sentences == (8, 50)
    assert SIZES.shape(3, (4, 5), 1) == Shape(4, (4, 16), 4)
    model = prepared(POOLED)
    with pytest.raises(ConfigError, match="at most the model's 32 positions"):
        StaticStep(model, beam_size=2, sizes=Sizes(target=(8, 64)))
    with pytest.raises(OptionError, match="beam_size must be at least 1"):
        StaticStep(model, beam_size=0, sizes=SIZES)
    with pytest.raises(ConfigError, match="poll_every must be at least 1"):
        static(model, 2, poll_every=0)


@pytest.mark.parametrize(("period", "banned"), [(1, True), (11, True), (12, True), (13, False)])
def test_a_stretch_as_long_as_the_longest_period_goes_once(period: int, banned: bool) -> None:
    """Of a text that repeats itself but for its last token, that one is banned where the rule looks so far back."""
    written = [*range(4, 4 + period)] * 2
    text, match = torch.full((1, 1, 40), FREE), torch.zeros((1, 1, 40), dtype=torch.int64)
    for place, token in enumerate(written[:-1]):
        append_text(text, match, torch.zeros((1, 1), dtype=torch.int64), torch.tensor([[token]]), torch.tensor([place]))
    bounds = torch.tensor([NEVER]), torch.tensor([1])
    found = repeating(text, match, torch.tensor([len(written) - 1]), bounds, nothing=-1)
    assert (found.eq(written[-1]).any().item()) is banned
