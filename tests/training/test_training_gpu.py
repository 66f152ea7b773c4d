"""Training on GPUs: as on a CPU, the same twice, and the same on two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_parallel import PLAIN, alone, launch, weights
from tests.training.toy import Recorder, toy_recipe
from training.parallel import Processes
from training.trainer import Trainer

pytestmark = pytest.mark.gpu


def trained(data: Path, folder: Path, device: str, **training: Any) -> tuple[Trainer, Recorder]:
    recorder = Recorder()
    recipe = toy_recipe(updates=20, model={"dropout": 0.0}, **training)
    trainer = Trainer(recipe, data, folder, processes=Processes(device=device), reporter=recorder)
    trainer.train()
    return trainer, recorder


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_a_gpu_learns_what_a_cpu_does(precision: str, prepared: Path, tmp_path: Path) -> None:
    _, expected = trained(prepared, tmp_path / "cpu", "cpu")
    _, found = trained(prepared, tmp_path / "cuda", "cuda", precision=precision)
    assert found.updates[-1][1]["nll"] == pytest.approx(expected.updates[-1][1]["nll"], rel=0.02)


def test_deterministic_runs_are_bit_equal(prepared: Path, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"deterministic": True, "precision": "bf16", "recompute": True, "r_drop": 1.0}
    one, other = (trained(prepared, tmp_path / name, "cuda", **wanted)[0] for name in "ab")
    assert all(x.equal(y) for x, y in zip(one.model.parameters(), other.model.parameters(), strict=True))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_are_one_process_with_accumulated_gradients(prepared: Path, tmp_path: Path) -> None:
    launch(2, prepared, tmp_path / "two", PLAIN, device="cuda")
    expected, _ = alone(prepared, tmp_path / "one", PLAIN)
    for name, tensor in weights(tmp_path / "two").items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-4, rtol=0)
