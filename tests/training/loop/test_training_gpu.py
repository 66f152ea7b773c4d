"""Training on GPUs: as on a CPU, the same twice, on two of them the same, and without waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch

from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.training.loop.objective import Objective
from tandem.training.loop.trainer import Trainer
from tandem.training.loop.validation import TextValidator
from tandem.training.parallel import Processes
from tandem.training.recipe import TrainingConfig
from tests.cuda import no_waiting
from tests.models.architectures.examples import FIRST_CASES, Case
from tests.training.loop.test_device_step import batch_of
from tests.training.loop.test_parallel import PLAIN, alone, launch, weights
from tests.training.toy import Recorder, toy_recipe

pytestmark = pytest.mark.gpu
TRAINED = [case for case in FIRST_CASES if case.trainable]


def trained(
    data: Path, folder: Path, device: str, *, resume: bool = False, **training: Any
) -> tuple[Trainer, Recorder]:
    recorder = Recorder()
    settings: dict[str, Any] = {"updates": 20, "model": {"dropout": 0.0}} | training
    recipe = toy_recipe(**settings)
    wanted = recipe.training.validation_sentences
    trainer = Trainer(
        recipe,
        data,
        folder,
        processes=Processes(device=device),
        reporter=recorder,
        validator=TextValidator(recipe, data) if wanted else None,
    )
    assert trainer.resume() == resume
    trainer.train()
    return trainer, recorder


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16", "fp16"])
def test_a_gpu_learns_what_a_cpu_does(precision: str, prepared: Path, tmp_path: Path) -> None:
    _, expected = trained(prepared, tmp_path / "cpu", "cpu")
    _, found = trained(prepared, tmp_path / "cuda", "cuda", precision=precision)
    near = 1e-3 if precision == "float32" else 0.02
    assert found.updates[-1][1]["nll"] == pytest.approx(expected.updates[-1][1]["nll"], rel=near)


@pytest.mark.parametrize("case", TRAINED, ids=str)
@pytest.mark.parametrize("further", [{}, {"precision": "bf16"}], ids=str)
def test_a_loss_and_its_gradients_are_not_waited_for(case: Case, further: dict[str, Any]) -> None:
    model = case.build(torch.float32, dropout=0.1).cuda().train()
    objective = Objective(model, TrainingConfig(**{"precision": "float32"} | further))
    batch = batch_of(model).pinned()
    for _ in range(2):
        objective(batch)[0].backward()
    with no_waiting():
        loss, _ = objective(batch)
        loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_gradients_are_those_of_a_cpu(case: Case) -> None:
    gradients = []
    for device in ("cpu", "cuda"):
        model = case.build(torch.float64).to(device).train()
        Objective(model, TrainingConfig(precision="float32"))(batch_of(model))[0].backward()
        gradients.append({name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None})
    torch.testing.assert_close(*reversed(gradients), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", [case for case in TRAINED if not case.recurrent], ids=str)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
def test_what_is_compiled_is_the_same(case: Case) -> None:
    model, losses = case.build(torch.float32).cuda().train(), []
    for wanted in (False, True):
        objective = Objective(model, TrainingConfig(precision="float32", compile=wanted))
        losses.append(float(objective(batch_of(model))[0]))
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_a_validation_leaves_the_model_where_it_is(prepared: Path, tmp_path: Path) -> None:
    """It decodes there, and what listens to the gradients goes on listening."""
    trainer, recorder = trained(
        prepared, tmp_path, "cuda", validate_every=5, validation_sentences=6, ema_decay=0.5, metric="bleu"
    )
    assert len(recorder.validations) == 4
    parameter = next(trainer.model.parameters())
    listening: Any = cast("Any", parameter.view_as(parameter).grad_fn).next_functions[0][0]
    heard: list[int] = []
    listening.register_hook(lambda *_: heard.append(1))
    TorchGraphs(trainer.model.eval())
    parameter.sum().backward()
    assert heard == [1]


@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda", "cpu")])
@pytest.mark.parametrize("precision", ["float32", "fp16"])
def test_what_began_on_one_device_goes_on_on_the_other(
    devices: tuple[str, str], precision: str, prepared: Path, tmp_path: Path
) -> None:
    further: dict[str, Any] = {"precision": precision, "ema_decay": 0.9}
    for device, updates in zip(devices, (10, 20), strict=True):
        trainer, found = trained(
            prepared, tmp_path / "two", device, resume=device == devices[1], updates=updates, **further
        )
    states = trainer.optimiser.state_dict()["state"].values()
    assert {x.device.type for state in states for x in state.values()} == {devices[1]}
    _, expected = trained(prepared, tmp_path / "one", "cpu", **further)
    near = 1e-3 if precision == "float32" else 0.02
    assert found.updates[-1][1]["nll"] == pytest.approx(expected.updates[-1][1]["nll"], rel=near)


def test_deterministic_runs_are_bit_equal(prepared: Path, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"deterministic": True, "precision": "bf16", "recompute": True}
    one, other = (trained(prepared, tmp_path / name, "cuda", **wanted)[0] for name in "ab")
    assert all(x.equal(y) for x, y in zip(one.model.parameters(), other.model.parameters(), strict=True))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("further", [{}, {"validation_sentences": 6}], ids=str)
def test_two_gpus_are_one_process_with_accumulated_gradients(
    further: dict[str, Any], prepared: Path, tmp_path: Path
) -> None:
    """Also where the first of them decodes in between."""
    launch(2, prepared, tmp_path / "two", PLAIN | further, device="cuda")
    expected, _ = alone(prepared, tmp_path / "one", PLAIN)
    for name, tensor in weights(tmp_path / "two").items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-4, rtol=0)
