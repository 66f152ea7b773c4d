"""What a GPU's matrix units may do to products in float32, and what may be compiled."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch

from models.errors import ConfigError
from models.registry import ARCHITECTURES
from tests.models.architectures import FIRST_CASES, Case
from tests.training.test_device_step import batch_of
from tests.training.test_trainer import trained
from tests.training.toy import Recorder, toy_recipe, toy_trainer
from training.objective import Objective
from training.precision import PRODUCTS, Precision, float32_products, is_emulated
from training.recipe import TrainingConfig


def recurrent(case: Case) -> bool:
    return ARCHITECTURES[case.architecture][1].recurrent


def chosen() -> list[str]:
    return [kind.fp32_precision for kind in PRODUCTS]


@pytest.mark.parametrize(
    ("precision", "expected"), [("float32", "ieee"), ("tf32", "tf32"), ("bf16", "tf32"), ("fp16", "tf32")]
)
def test_float32_is_float32_and_nothing_is_left_behind(precision: str, expected: str) -> None:
    before = chosen()
    with contextlib.suppress(ZeroDivisionError), float32_products(precision):
        assert chosen() == [expected] * len(PRODUCTS)
        raise ZeroDivisionError
    assert chosen() == before


@pytest.mark.parametrize(
    ("precision", "device", "capability", "emulated"),
    [
        ("bf16", "cpu", "AVX2", True), ("fp16", "cpu", "AVX2", True), ("bf16", "cpu", "AVX512", False),
        ("float32", "cpu", "AVX2", False), ("bf16", "cuda", "AVX2", False),
    ],
)  # fmt: skip
def test_a_processor_without_narrow_products_is_known(
    monkeypatch: pytest.MonkeyPatch, precision: Precision, device: str, capability: str, emulated: bool
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert is_emulated(precision, device) is emulated


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_training_chooses_the_products(precision: str, prepared: Path, tmp_path: Path) -> None:
    """In an update and in a validation; on a CPU "tf32" is "float32"."""
    seen: list[list[str]] = []
    recipe = toy_recipe(updates=1, validate_every=1, precision=precision, model={"dropout": 0.0})
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=Recorder())
    whole = Objective.forward

    def watched(self: Objective, batch: Any) -> Any:
        seen.append(chosen())
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


@pytest.mark.parametrize("case", [case for case in FIRST_CASES if case.trainable and recurrent(case)], ids=str)
def test_what_goes_position_by_position_is_not_compiled(case: Case) -> None:
    with pytest.raises(ConfigError, match="training compile must be false for"):
        Objective(case.build(torch.float32), TrainingConfig(compile=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
@pytest.mark.parametrize("case", [case for case in FIRST_CASES if case.trainable and not recurrent(case)], ids=str)
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
