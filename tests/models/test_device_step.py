"""The step over static buffers: it can be recorded and replayed, reads nothing back, and moves no buffer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from models.device import CapturedStep, Shape, Sizes, StaticBatch, StaticStep
from models.device.step import in_order
from models.errors import ConfigError, OptionError
from models.graphs import TorchGraphs
from models.search import DecodeBatch, Sentence
from tests.models.architectures import FIRST_CASES, AnyModel, Case, cases, first_cases, two_kinds
from tests.models.device import (
    POOLED,
    RECURRENT,
    SIZES,
    assert_same,
    decoded,
    mixed,
    prepared,
    static,
)
from tests.models.search.tables import run_out


class Traced:
    """Records a step as the operators it calls; replays them with other memory in use than before."""

    def __init__(self, step: CapturedStep, work: Callable[[], None]) -> None:
        def once() -> Tensor:
            work()
            return torch.zeros(())

        before = {name: buffer.clone() for name, buffer in step.named_buffers()}
        self._graph = make_fx(once)()
        for name, buffer in step.named_buffers():  # what records does not compute
            buffer.copy_(before[name])

    def replay(self) -> None:
        poison = [torch.full((1 << power,), torch.nan) for power in range(4, 16)]
        del poison  # what is allocated next finds it there
        self._graph()


class Tracer:
    """Makes recordings as :class:`models.device.capture.CudaRecorder` does, on the CPU."""

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


@cases(FIRST_CASES, [POOLED])
def test_a_recorded_step_can_be_replayed(case: Case) -> None:
    """As a captured graph would be: everything that changes from step to step lies in the buffers.

    Recording itself fails where the host looks at a tensor's values.
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


@two_kinds
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


@pytest.mark.slow
@pytest.mark.parametrize("case", [POOLED, RECURRENT], ids=str)
def test_a_step_compiles_in_one_piece(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the kernels, which need a compiler: what is traced has no break, and computes the same."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model = prepared(case)
    joining = mixed(model, 3)
    step = CapturedStep(model, beam_size=3, sizes=Sizes((16,), (16,), (16,), required=3), compiled=True)
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining)
    assert_same(decoded(StaticBatch(step), joining), expected)


@pytest.mark.slow
def test_shapes_are_not_one_that_is_compiled_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch does that a few times, and then raises."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 1)
    (case,) = (case for case in FIRST_CASES if case.architecture == "convs2s")
    step = CapturedStep(prepared(case), beam_size=1, sizes=Sizes((1, 2), (4,), (2,)), compiled=True)
    with torch.inference_mode():
        for shape in (Shape(1, (4,), 2), Shape(2, (4,), 2)):
            step(shape)
    assert len(step._compiled_steps) == 2
    gone = weakref.ref(step)
    del step
    gc.collect()
    assert gone() is None  # and with it its buffers


def test_compiling_is_measured_and_a_compiler_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, joining = prepared(POOLED), mixed(prepared(POOLED), 3)
    step = CapturedStep(model, beam_size=3, sizes=SIZES)
    monkeypatch.setattr(torch, "compile", Mock(side_effect=RuntimeError("no compiler")))
    assert not step.measure_compiled()
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=3), joining)
    assert_same(decoded(StaticBatch(step), joining), expected)
    for took, faster in (((1.0, 0.5), True), ((1.0, 0.95), False)):
        monkeypatch.setattr(step, "_seconds", Mock(side_effect=took))
        assert step.measure_compiled() is faster


def test_graphs_are_kept_by_use() -> None:
    class Calls:
        def record(self, work: Callable[[], None]) -> Any:
            return SimpleNamespace(replay=work)

    step = CapturedStep(prepared(RECURRENT), beam_size=1, sizes=Sizes((1,), (4,), (2, 8)), recorder=Calls, most=2)
    shapes = [Shape(1, (4,), 2), Shape(1, (4,), 8), Shape(1, (4,), 8, repeats=True)]
    for shape in (shapes[0], shapes[1], shapes[0], shapes[2], shapes[0], shapes[1]):
        step(shape)
    assert (step.counters.captures, step.counters.evictions, step.counters.replays) == (4, 2, 2)


def test_a_shape_that_cannot_be_captured_runs_without() -> None:
    model = prepared(RECURRENT)
    joining = mixed(model, 2)
    step = captured(model, 2, Sizes((4,), (16,), (16,), required=3), Tracer(refused=1))
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    assert_same(decoded(StaticBatch(step), joining), expected)
    assert step.counters.capture_failures == 1
    assert step.counters.eager_steps > step.counters.captures


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


@pytest.mark.parametrize("steps", [9, pytest.param(1000, marks=pytest.mark.slow)])
@two_kinds
def test_nothing_is_read_back_within_a_step_and_no_buffer_moves(case: Case, steps: int) -> None:
    model = prepared(case)
    step = StaticStep(model, beam_size=3, sizes=SIZES)
    addresses = {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    joining = mixed(model, 3)
    for _ in range(0, steps, 9):
        batch = StaticBatch(step, poll_every=9, lag=True)  # the first look is read at the second
        batch.join([Sentence(n, one.sources, replace(one.options, max_length=12)) for n, one in enumerate(joining[:2])])
        with NoLooking() as mode:
            assert batch.step() == []
        assert mode.seen > 100 * 9 and batch.counters.steps == 0
    batch.join(joining[2:4])
    batch.remove([0])
    run_out(batch)
    assert addresses == {name: buffer.data_ptr() for name, buffer in step.named_buffers()}


@first_cases
def test_every_tensor_that_a_step_makes_names_its_device(case: Case) -> None:
    model = prepared(case)
    step = StaticStep(model, beam_size=3, sizes=SIZES)
    batch = StaticBatch(step)
    batch.join(mixed(model, 3)[:4])
    batch.step()
    shape = Shape(4, (16,) * len(step.records.sources), 16, repeats=True, required=True)
    with torch.inference_mode(), torch.device("meta"):  # a tensor made on the default device has no numbers
        step(shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@two_kinds
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
