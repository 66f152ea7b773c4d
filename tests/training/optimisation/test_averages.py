"""The moving average of the weights: its formula, what is validated, saved and exported, and going on bit for bit."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.errors import CheckpointError, ConfigError
from tandem.training.checkpoint import average, checkpoints, load_model_tensors
from tandem.training.loop.trainer import Trainer
from tandem.training.loop.validation import Validated
from tandem.training.recipe import TrainingConfig
from tests.training.loop.test_trainer import assert_identical, resumed, trained
from tests.training.toy import Recorder, toy_recipe, toy_trainer


def averages(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.stepper.best.named_parameters()}


def test_the_formula(prepared: Path, tmp_path: Path) -> None:
    """The first weights as they are, then d average + (1 - d) weights, d = min(decay, (1 + n) / (10 + n))."""
    seen: list[dict[str, torch.Tensor]] = []
    recorder = Recorder({n: lambda: seen.append(weights()) for n in range(1, 13)})
    trainer = toy_trainer(toy_recipe(ema_decay=0.5), prepared, tmp_path, reporter=recorder)

    def weights() -> dict[str, torch.Tensor]:
        return {name: p.detach().clone().double() for name, p in trainer.model.named_parameters()}

    trainer.train()
    expected = seen[0]
    for n, new in enumerate(seen[1:], start=1):
        d = min(0.5, (1 + n) / (10 + n))
        expected = {name: d * tensor + (1 - d) * new[name] for name, tensor in expected.items()}
    for name, tensor in averages(trainer).items():
        torch.testing.assert_close(tensor.double(), expected[name], atol=1e-6, rtol=1e-5)
    assert not averages(trainer)["target_embedding"].equal(dict(trainer.model.named_parameters())["target_embedding"])


def test_training_itself_is_as_without(prepared: Path, tmp_path: Path) -> None:
    one, other = (trained(toy_recipe(ema_decay=decay), prepared, tmp_path / str(decay)) for decay in (0.0, 0.99))
    assert one.progress.best != other.progress.best  # of the validation, which is the average's
    one.progress = replace(one.progress, best=other.progress.best)
    assert_identical(one, other)


def test_it_is_what_is_validated_saved_as_best_and_exported(prepared: Path, tmp_path: Path) -> None:
    validated: list[Any] = []

    def validator(model: Any) -> Validated:
        validated.append(model)
        return Validated({"bleu": 1.0})

    recipe = toy_recipe(updates=4, ema_decay=0.9)
    trainer = toy_trainer(recipe, prepared, tmp_path, validator=validator)
    trainer.train()
    assert validated == [trainer.stepper.best]
    assert trainer.stepper.best is not trainer.model
    for path in (trainer.run.best, checkpoints(trainer.run.checkpoints)[-1]):
        exported = average([path])
        assert exported.keys() == load_model_tensors(path).keys()
        assert all(
            tensor.equal(averages(trainer)[name]) for name, tensor in exported.items() if name in averages(trainer)
        )


def test_stopped_and_resumed_is_bit_equal(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=9, ema_decay=0.9, recompute=True, precision="fp16")
    whole = trained(recipe, prepared, tmp_path / "whole")
    stop = partial(os.kill, os.getpid(), signal.SIGTERM)
    trained(recipe, prepared, tmp_path / "parts", {4: stop})
    again = resumed(recipe, prepared, tmp_path / "parts")
    assert again.progress.update == 4
    again.train()
    assert_identical(again, whole)
    assert all(tensor.equal(averages(whole)[name]) for name, tensor in averages(again).items())
    assert again.stepper.loss_scale == whole.stepper.loss_scale


def test_a_run_without_one_cannot_be_resumed_with_one(prepared: Path, tmp_path: Path) -> None:
    trained(toy_recipe(updates=2), prepared, tmp_path)
    with pytest.raises(CheckpointError, match=r"training\.ema_decay is 0\.9, but was 0\.0"):
        toy_trainer(toy_recipe(updates=4, ema_decay=0.9), prepared, tmp_path).resume()


def test_one_average_of_the_weights_is_enough(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="average must be 1 where ema_decay is above 0, but is 3"):
        TrainingConfig(average=3, ema_decay=0.999)
    trainer = trained(toy_recipe(updates=4, save_every=2, ema_decay=0.9), prepared, tmp_path)
    with pytest.raises(CheckpointError, match=r"2 were asked for, and .*checkpoint-4\.safetensors has them: average 1"):
        average(checkpoints(trainer.run.checkpoints))
