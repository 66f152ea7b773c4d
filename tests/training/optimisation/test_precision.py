"""What "auto" stands for, what a GPU's matrix units may do to products in float32, and what may be compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.errors import ConfigError
from tandem.training.loop.objective import Objective
from tandem.training.optimisation import precision as precisions
from tandem.training.optimisation.precision import (
    PRODUCTS,
    AskedPrecision,
    ChosenPrecision,
    chosen,
    float32_products,
    flushed_denormals,
    is_emulated,
    slower,
    speedup,
)
from tandem.training.parallel import Processes
from tandem.training.recipe import TrainingConfig
from tests.models.architectures.examples import FIRST_CASES, Case
from tests.training.loop.test_device_step import batch_of
from tests.training.loop.test_trainer import trained
from tests.training.toy import Recorder, toy_recipe, toy_trainer


def allowed() -> list[str]:
    return [kind.fp32_precision for kind in PRODUCTS]


def formerly() -> tuple[bool, bool, str]:
    """What torch's former flags say; it raises where they are not as the present ones."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return matmul.allow_tf32, cudnn.allow_tf32, torch.get_float32_matmul_precision()


@pytest.mark.parametrize(
    ("precision", "expected"), [("float32", "ieee"), ("tf32", "tf32"), ("bf16", "tf32"), ("fp16", "tf32")]
)
def test_float32_is_float32_and_nothing_is_left_behind(precision: str, expected: str) -> None:
    mkldnn: Any = torch.backends.mkldnn
    before, cpu = (allowed(), formerly()), mkldnn.matmul.fp32_precision
    with contextlib.suppress(ZeroDivisionError), float32_products(precision):
        assert allowed() == [expected] * len(PRODUCTS)
        narrow = expected == "tf32"
        assert formerly() == (narrow, narrow, "high" if narrow else "highest")
        assert mkldnn.matmul.fp32_precision == cpu
        raise ZeroDivisionError
    assert (allowed(), formerly()) == before


@pytest.mark.parametrize(
    ("precision", "device", "capability", "emulated"),
    [
        ("bf16", "cpu", "AVX2", True), ("fp16", "cpu", "AVX2", True), ("bf16", "cpu", "AVX512", False),
        ("float32", "cpu", "AVX2", False), ("bf16", "cuda", "AVX2", False), ("auto", "cpu", "AVX2", False),
    ],
)  # fmt: skip
def test_a_processor_without_narrow_products_is_known(
    monkeypatch: pytest.MonkeyPatch, precision: AskedPrecision, device: str, capability: str, emulated: bool
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert is_emulated(precision, device) is emulated


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what the processor is and what a measurement of it finds."""

    def measured(times: float, capability: str = "AVX512") -> None:
        monkeypatch.setattr(precisions, "speedup", lambda narrow: times)
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)

    return measured


@pytest.mark.parametrize(
    ("times", "capability", "expected"),
    [
        (4.7, "AVX512", ChosenPrecision("bf16", "products 4.7 times as fast as in float32 here")),
        (1.1, "AVX512", ChosenPrecision("bf16", "products 1.1 times as fast as in float32 here")),
        (1.05, "AVX512", ChosenPrecision("float32", "products as fast as in bf16 here")),
        (0.54, "AVX512", ChosenPrecision("float32", "products 1.9 times as fast as in bf16 here")),
        (4.7, "AVX2", ChosenPrecision("float32", "this processor has no products in bf16")),
    ],
)
def test_auto_is_what_multiplies_fastest(
    times: float, capability: str, expected: ChosenPrecision, measured: Callable[..., None]
) -> None:
    measured(times, capability)
    assert chosen("auto", Processes()) == expected


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "float32")])
def test_auto_on_a_gpu(supported: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert chosen("auto", Processes(device="cuda")).precision == expected


def test_the_first_process_chooses_for_all(measured: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "of_first", lambda self, number: [1.0])
    measured(0.5)
    assert chosen("auto", Processes(1, 2)).precision == "bf16"


@pytest.mark.parametrize("asked", ["float32", "tf32", "bf16", "fp16"])
def test_what_a_recipe_says_is_not_measured(asked: AskedPrecision, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(precisions, "speedup")
    assert chosen(asked, Processes()) == ChosenPrecision(asked)  # type: ignore[arg-type]  # not "auto"


@pytest.mark.parametrize(
    ("asked", "times", "capability", "told"),
    [
        ("float32", 4.7, "AVX512", "products in bf16 are 4.7 times as fast as in float32 here"),
        ("tf32", 4.7, "AVX512", "products in bf16 are 4.7 times as fast as in tf32 here"),
        ("bf16", 0.5, "AVX512", "products in float32 are 2.0 times as fast as in bf16 here"),
        ("fp16", 0.2, "AVX512", "products in float32 are 5.0 times as fast as in fp16 here"),
        ("bf16", 4.7, "AVX2", "this processor has no bf16"),
        ("float32", 1.0, "AVX512", ""),
        ("float32", 0.5, "AVX512", ""),
        ("float32", 4.7, "AVX2", ""),
        ("bf16", 4.7, "AVX512", ""),
        ("auto", 4.7, "AVX512", ""),
    ],
)
def test_a_slower_precision_is_told(
    asked: AskedPrecision, times: float, capability: str, told: str, measured: Callable[..., None]
) -> None:
    measured(times, capability)
    line = slower(asked, "cpu")
    assert line.startswith(told) and bool(line) == bool(told)
    assert not told or 'precision = "auto"' in line
    assert slower(asked, "cuda") == ""


def test_products_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least times count, those of each type together; threads stay as many as they were."""
    seconds = iter([9.0, 9.0, *[1.0, 1.0] * 4, *[4.0, 7.0, 3.0, 1.0] * 2, 3.0, 1.0, *[6.0, 2.0] * 5])
    monkeypatch.setattr(precisions, "_seconds", lambda x, weight: next(seconds))
    threads = torch.get_num_threads()
    assert speedup.__wrapped__(torch.bfloat16) == (3.0 + 6.0) / (1.0 + 2.0)
    assert next(seconds, None) is None
    assert torch.get_num_threads() == threads


def test_what_is_emulated_is_not_measured_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    def seconds(x: torch.Tensor, weight: torch.Tensor) -> float:
        seen.append(tuple(x.shape))
        return 5.0 if x.dtype == torch.bfloat16 else 1.0

    monkeypatch.setattr(precisions, "_seconds", seconds)
    assert speedup.__wrapped__(torch.bfloat16) == 0.2
    assert set(seen) == {(64, 256)}


def test_a_real_measurement() -> None:
    assert 0.0 < speedup.__wrapped__(torch.bfloat16) < 1000.0


def test_subnormal_numbers_are_taken_for_none_and_afterwards_not() -> None:
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush them")
    tiny = torch.tensor(1e-30)
    with contextlib.suppress(ZeroDivisionError), flushed_denormals():
        assert float(tiny * 1e-10) == 0.0
        raise ZeroDivisionError
    assert float(tiny * 1e-10) > 0.0


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_training_chooses_the_products(precision: str, prepared: Path, tmp_path: Path) -> None:
    """In an update and in a validation; on a CPU "tf32" is "float32"."""
    seen: list[list[str]] = []
    recipe = toy_recipe(updates=1, validate_every=1, precision=precision, model={"dropout": 0.0})
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=Recorder())
    whole = Objective.forward

    def watched(self: Objective, batch: Any) -> Any:
        seen.append(allowed())
        return whole(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Objective, "forward", watched)
        trainer.train()
    assert len(seen) > 1
    assert {tuple(one) for one in seen} == {("ieee" if precision == "float32" else "tf32",) * len(PRODUCTS)}


def test_tf32_is_float32_on_a_cpu(prepared: Path, tmp_path: Path) -> None:
    one, other = (
        trained(toy_recipe(updates=3, precision=name), prepared, tmp_path / name) for name in ("float32", "tf32")
    )
    assert all(x.equal(y) for x, y in zip(one.model.parameters(), other.model.parameters(), strict=True))


def test_compiling_and_recomputing_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="compile and recompute cannot both be true"):
        TrainingConfig(compile=True, recompute=True)


@pytest.mark.parametrize("case", [case for case in FIRST_CASES if case.trainable and case.recurrent], ids=str)
def test_what_goes_position_by_position_is_not_compiled(case: Case) -> None:
    with pytest.raises(ConfigError, match="training compile must be false for"):
        Objective(case.build(torch.float32), TrainingConfig(compile=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
@pytest.mark.parametrize("case", [case for case in FIRST_CASES if case.trainable and not case.recurrent], ids=str)
def test_what_is_compiled_is_one_graph_for_all_sizes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loss and gradients, and no compiling again where only sizes change."""
    model = case.build(torch.float32)
    whole = torch.compile
    monkeypatch.setattr(torch, "compile", lambda run, **named: whole(run, backend="aot_eager", fullgraph=True, **named))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    objectives = [
        Objective(model.train(), TrainingConfig(precision="float32", compile=wanted)) for wanted in (False, True)
    ]
    batch = batch_of(model)
    for rows in (2, 4, 6):
        bigger = batch._with(lambda x, rows=rows: torch.cat([x] * (rows // 2)))  # type: ignore[misc]
        gradients = []
        for objective in objectives:
            model.zero_grad()
            loss, _ = objective(bigger)
            loss.backward()
            gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        torch.testing.assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-4)
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert compiled <= 2  # the first sizes may be taken for constants
