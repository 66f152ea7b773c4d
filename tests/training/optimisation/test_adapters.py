"""Low-rank adapters: they alone learn, and what they have learnt is part of the weights in a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.errors import CheckpointError
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.training.loop.header import header
from tandem.training.loop.trainable import trainable_model
from tandem.training.loop.trainer import Trainer
from tandem.training.optimisation.adapters import add_adapters, with_adapters
from tests.models.architectures.examples import Case, batch, every_case_slowly, sentences, targets
from tests.training.toy import Recorder, bundle_without_graphs, toy_recipe, toy_trainer

RANK: dict[str, Any] = {"adapter_rank": 2, "adapter_alpha": 8.0}


def started(prepared: Path, folder: Path, updates: int = 4, **training: Any) -> Trainer:
    """A trainer with adapters beside the weights of another."""
    first = toy_trainer(toy_recipe(updates=2), prepared, folder.parent / "first")
    first.train()
    trainer = toy_trainer(toy_recipe(updates=updates, **RANK, **training), prepared, folder)
    trainer.initialise_from(model_tensors(first.model), "first")
    return trainer


@every_case_slowly
def test_nothing_is_added_at_first_and_what_was_learnt_is_folded_in(case: Case) -> None:
    model, made, target_BT = case.build(), sentences(case.build(), (3, 5, 2)), targets(3, 5)
    names = set(model_tensors(case.build()))
    before_BTV = model.score(target_BT, model.encode(batch(made)))
    add_adapters(model, 3, 6.0)
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    assert trained and {name.rpartition(".")[2] for name in trained} == {"up", "down"}
    torch.testing.assert_close(model.score(target_BT, model.encode(batch(made))), before_BTV, atol=1e-12, rtol=0)
    with torch.no_grad():
        for number, (name, one) in enumerate(trained.items()):
            if name.endswith("up"):
                one.copy_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(number)))
    after_BTV = model.score(target_BT, model.encode(batch(made)))
    assert not after_BTV.isclose(before_BTV).all()
    model.prepare_for_inference()
    torch.testing.assert_close(model.score(target_BT, model.encode(batch(made))), after_BTV, atol=1e-12, rtol=0)
    assert {name for name in model_tensors(model) if "adapter" in name} == set() and set(model_tensors(model)) <= names


def test_adapters_alone_learn_and_a_bundle_has_none(prepared: Path, tmp_path: Path) -> None:
    trainer = started(prepared, tmp_path / "run")
    before = {name: one.clone() for name, one in model_tensors(trainer.model).items()}
    assert "frozen)" in header(trainer)
    trainer.train()
    after = model_tensors(trainer.model)
    changed = {name for name, one in after.items() if not one.equal(before[name])}
    assert changed == {name for name in after if ".adapter." in name}
    bundle = bundle_without_graphs(trainer.model, trainer.recipe, prepared, tmp_path / "bundle")
    assert not any("adapter" in name for name in bundle.weights())
    trainer.model.prepare_for_inference()
    mine, exported = model_tensors(trainer.model), model_tensors(load_bundle_model(bundle))
    assert all(torch.allclose(one, exported[name], atol=2e-3) for name, one in mine.items())


def test_a_run_with_adapters_goes_on_bit_for_bit(prepared: Path, tmp_path: Path) -> None:
    whole = started(prepared, tmp_path / "whole", 6, save_every=3, ema_decay=0.9)
    whole.train()
    started(prepared, tmp_path / "parts", 3, ema_decay=0.9).train()
    rest = toy_trainer(toy_recipe(updates=6, save_every=3, ema_decay=0.9, **RANK), prepared, tmp_path / "parts")
    assert rest.resume()
    rest.train()
    mine = model_tensors(rest.model)
    assert all(one.equal(mine[name]) for name, one in model_tensors(whole.model).items())
    other = toy_trainer(toy_recipe(updates=8, adapter_rank=1), prepared, tmp_path / "parts", reporter=Recorder())
    with pytest.raises(CheckpointError, match=r"training\.adapter_rank is 1, but was 2"):
        other.resume()


def test_weights_of_another_model_are_refused(prepared: Path, tmp_path: Path) -> None:
    trainer = started(prepared, tmp_path / "run")
    tensors = model_tensors(trainer.model)
    given = {name: one for name, one in tensors.items() if ".adapter." not in name}
    assert with_adapters(given, trainer.model).keys() == tensors.keys()
    given.pop(next(iter(given)))
    with pytest.raises(CheckpointError, match="lacks"):
        trainer.initialise_from(given, "it")


def test_a_recipes_model_is_built_alike_everywhere(prepared: Path, tmp_path: Path) -> None:
    trainer = started(prepared, tmp_path / "run")
    model = trainable_model(trainer.recipe, trainer.model.config)
    assert model_tensors(model).keys() == model_tensors(trainer.model).keys()
    assert [one.requires_grad for one in model.parameters()] == [
        one.requires_grad for one in trainer.model.parameters()
    ]
