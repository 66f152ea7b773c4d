"""Updates: skipped where the gradient is not finite, scaled in fp16, computed again or in parts as asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tandem.models.errors import CheckpointError, ConfigError
from tandem.training.checkpoint import further_tensors, read_progress
from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.loop.objective import Objective
from tandem.training.optimisation.determinism import determinism, seed_of
from tests.training.loop.test_trainer import everything, scaled, trained, update
from tests.training.toy import NAG, Recorder, toy_recipe, toy_trainer

INFINITE = float("inf")


def test_fp16_learns_as_float32_does(prepared: Path, tmp_path: Path) -> None:
    recorders = [Recorder(), Recorder()]
    for precision, recorder in zip(("float32", "fp16"), recorders, strict=True):
        recipe = toy_recipe(updates=12, precision=precision, log_every=6, model={"dropout": 0.0})
        toy_trainer(recipe, prepared, tmp_path / precision, reporter=recorder).train()
    (_, first), (_, last) = recorders[0].updates
    narrow = recorders[1].updates[-1][1]
    assert narrow["nll"] == pytest.approx(last["nll"], rel=0.01)
    assert last["nll"] < 0.9 * first["nll"]
    assert narrow["loss_scale"] >= 1
    assert "loss_scale" not in last


def test_fp16_gradients_are_scaled_back(prepared: Path, tmp_path: Path) -> None:
    """One update without clipping is that of float32, but for the precision of products."""
    recipes = [toy_recipe(precision=p, optimiser=NAG, model={"dropout": 0.0}) for p in ("float32", "fp16")]
    trainers = [toy_trainer(recipe, prepared, tmp_path) for recipe in recipes]
    before = everything(trainers[0])[0]
    batch = collate(trainers[0].train_data, next(trainers[0].stream.plans(0)))
    for trainer in trainers:
        update(trainer, [batch])
    exact, narrow = ({n: x - before[n] for n, x in everything(t)[0].items()} for t in trainers)
    for name, change in exact.items():
        assert float((narrow[name] - change).norm()) <= 0.02 * float(change.norm()) + 1e-7, name


def test_an_overflow_halves_the_scale_and_leaves_the_weights(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    trainer = toy_trainer(toy_recipe(precision="fp16", ema_decay=0.5), prepared, tmp_path, reporter=recorder)
    batch = collate(trainer.train_data, next(trainer.stream.plans(0)))
    monkeypatch.setattr(Objective, "forward", scaled(1.0, INFINITE, 1.0))
    states = []
    for _ in range(3):
        update(trainer, [batch])
        averages = [p.detach().clone() for p in trainer.stepper.best.parameters()]
        states.append((everything(trainer)[0], averages, trainer.stepper.loss_scale))
    first, skipped, last = states
    assert all(x.equal(skipped[0][name]) for name, x in first[0].items())
    assert all(x.equal(y) for x, y in zip(first[1], skipped[1], strict=True))
    assert not all(x.equal(last[0][name]) for name, x in first[0].items())
    assert [state[2] for state in states] == [65536.0, 32768.0, 32768.0]
    assert (trainer.progress.update, trainer.progress.skipped, trainer.progress.skipped_last) == (3, 1, 0)
    assert [values.get("skipped") for _, values in recorder.updates] == [None, 1, 1]


def test_too_many_skipped_updates_in_a_row_end_training(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Objective, "forward", scaled(1.0, INFINITE, INFINITE, 1.0, INFINITE))
    trainer = toy_trainer(toy_recipe(max_skipped=2, save_every=1), prepared, tmp_path)
    with pytest.raises(
        ConfigError,
        match=r"not finite in 3 updates in a row \(max_skipped is 2\) after update 7: set a learning_rate below",
    ):
        trainer.train()
    progress, _ = read_progress(tmp_path / "checkpoints/checkpoint-6.safetensors")
    assert (progress.skipped, progress.skipped_last) == (4, 2)  # and counting goes on from there
    again = toy_trainer(toy_recipe(max_skipped=2, save_every=1), prepared, tmp_path)
    assert again.resume()
    with pytest.raises(ConfigError, match="after update 7"):
        again.train()


def test_a_checkpoint_that_lacks_half_of_the_scale_is_refused(prepared: Path, tmp_path: Path) -> None:
    trainer = trained(toy_recipe(updates=1, precision="fp16"), prepared, tmp_path)
    tensors = further_tensors(trainer.run.checkpoints / "checkpoint-1.safetensors")
    assert {name for name in tensors if name.startswith("scaler.")} == {"scaler.scale", "scaler.growth_tracker"}
    for name in ("scaler.scale", "scaler.growth_tracker"):
        with pytest.raises(CheckpointError, match="here lacks the loss scale of fp16"):
            trainer.stepper.restore({name: tensors[name]}, "here")


@pytest.mark.parametrize(("one", "other"), [("fp16", "bf16"), ("bf16", "fp16"), ("fp16", "float32"), ("bf16", "auto")])
def test_a_run_goes_on_in_another_precision(
    one: str, other: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fp16 with the loss scale that a run begins with."""
    monkeypatch.setattr("tandem.training.optimisation.precision.speedup", lambda narrow: 0.5)  # "auto" is float32 here
    before = trained(toy_recipe(updates=2, precision=one), prepared, tmp_path)
    recorder = Recorder()
    again = toy_trainer(toy_recipe(updates=4, precision=other), prepared, tmp_path, reporter=recorder)
    assert again.resume()
    weights = (model.state_dict().values() for model in (again.model, before.model))
    assert all(x.equal(y) for x, y in zip(*weights, strict=True))
    assert again.stepper.loss_scale == (65536.0 if other == "fp16" else None)
    again.train()
    assert [update for update, _ in recorder.updates] == [3, 4]
    progress, recipe = read_progress(tmp_path / "checkpoints/checkpoint-4.safetensors")
    assert (progress.precision, recipe["training"]["precision"]) == ("float32" if other == "auto" else other, other)


def test_all_batches_of_an_update_have_masks_of_their_own(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = toy_trainer(toy_recipe(model={"dropout": 0.5}), prepared, tmp_path)
    batch = collate(trainer.train_data, next(trainer.stream.plans(0)))
    losses = []
    whole = Objective.forward

    def watched(self: Objective, given: TrainingBatch) -> tuple[Tensor, Tensor]:
        found = whole(self, given)
        losses.append(float(found[0].detach()))
        return found

    monkeypatch.setattr(Objective, "forward", watched)
    update(trainer, [batch, batch])
    assert losses[0] != losses[1]


def test_recomputed_training_is_bit_equal(prepared: Path, tmp_path: Path) -> None:
    recipe, other = (toy_recipe(updates=5, recompute=wanted, precision="bf16") for wanted in (False, True))
    one, two = trained(recipe, prepared, tmp_path / "a"), trained(other, prepared, tmp_path / "b")
    assert all(x.equal(y) for x, y in zip(one.model.parameters(), two.model.parameters(), strict=True))


def test_deterministic_training(prepared: Path, tmp_path: Path) -> None:
    """The same weights; torch is told while it trains, and not any longer."""
    told: list[bool] = []
    recorder = Recorder({2: lambda: told.append(torch.are_deterministic_algorithms_enabled())})
    trainer = toy_trainer(toy_recipe(updates=3, deterministic=True), prepared, tmp_path / "a", reporter=recorder)
    trainer.train()
    assert told == [True]
    assert not torch.are_deterministic_algorithms_enabled()
    other = trained(toy_recipe(updates=3), prepared, tmp_path / "b")
    assert all(x.equal(y) for x, y in zip(trainer.model.parameters(), other.model.parameters(), strict=True))


@pytest.mark.parametrize("before", [None, ":16:8"])
def test_determinism_leaves_the_environment_as_it_was(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "CUBLAS_WORKSPACE_CONFIG"
    monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv(name, before)
    with determinism(True):
        assert os.environ[name] == (before or ":4096:8")
    assert os.environ.get(name) == before


def test_seeds_of_ranks_differ() -> None:
    seeds = {seed_of(1, rank, update) for rank in range(20) for update in (0, 100)}
    assert len(seeds) == 40
    assert all(0 <= seed < 2**63 for seed in seeds)
