"""Parts that training leaves as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.errors import CheckpointError, ConfigError
from tandem.training.loop.trainer import Trainer
from tests.training.toy import toy_recipe, toy_trainer


def parameters(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


@pytest.mark.parametrize(
    ("patterns", "frozen"),
    [
        (("source_embedding", "target_embedding*"), {"source_embedding", "target_embedding"}),
        (("cnn_encoder", "*gain"), None),
        (("*bias",), None),
    ],
)
@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_what_is_frozen_stays_bit_for_bit_and_all_else_learns(
    patterns: tuple[str, ...], frozen: set[str] | None, optimiser: str, prepared: Path, tmp_path: Path
) -> None:
    recipe = toy_recipe(updates=4, freeze=patterns)
    object.__setattr__(recipe.optimiser, "name", optimiser)
    trainer = toy_trainer(recipe, prepared, tmp_path)
    before = parameters(trainer)
    trainer.train()
    same = {name for name, tensor in parameters(trainer).items() if tensor.equal(before[name])}
    asked = {name for name, parameter in trainer.model.named_parameters() if not parameter.requires_grad}
    assert same == asked and same < before.keys()
    assert frozen is None or asked == frozen


def test_a_run_with_frozen_parts_goes_on_bit_for_bit(prepared: Path, tmp_path: Path) -> None:
    named: dict[str, Any] = {"freeze": ("source_embedding",), "save_every": 3}
    whole = toy_trainer(toy_recipe(updates=6, **named), prepared, tmp_path / "whole")
    whole.train()
    toy_trainer(toy_recipe(updates=3, **named), prepared, tmp_path / "parts").train()
    rest = toy_trainer(toy_recipe(updates=6, **named), prepared, tmp_path / "parts")
    assert rest.resume()
    rest.train()
    mine = parameters(rest)
    assert all(tensor.equal(mine[name]) for name, tensor in parameters(whole).items())
    other = toy_trainer(toy_recipe(updates=8), prepared, tmp_path / "parts")
    with pytest.raises(CheckpointError, match=r"training\.freeze\.0 is None, but was 'source_embedding'"):
        other.resume()


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        (("encoders", "*embeding"), "but 'encoders', '\\*embeding' name none: its parts are source_embedding"),
        (("*",), "must leave something to train, but \\* freezes all of it"),
    ],
)
def test_patterns_that_name_nothing_or_all_are_refused(
    patterns: tuple[str, ...], said: str, prepared: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        toy_trainer(toy_recipe(freeze=patterns), prepared, tmp_path)
