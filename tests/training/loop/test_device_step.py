"""An update on a device, without one: every tensor lies there, and nothing but the gradient's norm is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.architectures.protocol import Padded, feature_widths
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.loop.objective import Objective
from tandem.training.loop.stepping import Stepper
from tandem.training.loop.trainer import ALONE
from tandem.training.recipe import TrainingConfig
from tests.models.architectures.examples import FIRST_CASES, TARGET_TYPES, AnyModel, Case, first_cases
from tests.posing import DEVICE, Waits, no_autocast, posing
from tests.training.toy import toy_recipe, toy_trainer

__all__ = ["no_autocast"]
TRAINED = [case for case in FIRST_CASES if case.trainable]


def batch_of(model: AnyModel) -> TrainingBatch:
    """Two rows of which one is shorter, for a model's sources."""
    lengths = torch.tensor([5, 3])
    inside = torch.arange(5) < lengths[:, None]
    sources = tuple(
        Padded(torch.randn(2, 5, width) if width else torch.full((2, 5), 4) * inside, lengths)
        for width in feature_widths(model.config)
    )
    target = torch.full((2, 5), TARGET_TYPES - 1) * inside
    places = target.flatten().nonzero()[:, 0]
    return TrainingBatch(sources, target, target, places, int(lengths.sum()), int(lengths.sum()))


@contextmanager
def elsewhere(case: Case) -> Iterator[tuple[AnyModel, TrainingBatch]]:
    """A model whose tensors pose as a GPU's, and a batch that lies on the CPU."""
    model = case.build(torch.float32, dropout=0.1)
    batch = batch_of(model)
    with posing(model) as mode:
        yield model, batch._with(mode.from_tensor)


@pytest.mark.usefixtures("no_autocast")
@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_loss_and_gradients_are_computed_where_the_model_lies(case: Case) -> None:
    with elsewhere(case) as (model, batch):
        with Waits() as waits:
            loss, nll = Objective(model.train(), TrainingConfig(precision="float32"))(batch)
            loss.backward()
        assert not waits.counts
        assert (loss.device, nll.device, loss.dtype) == (DEVICE, DEVICE, torch.float64)
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert {gradient.device for gradient in gradients} == {DEVICE}
        assert len(gradients) > len(list(model.parameters())) / 2


@pytest.mark.usefixtures("no_autocast")
@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_a_validation_is_computed_where_the_model_lies(case: Case) -> None:
    with elsewhere(case) as (model, batch), torch.no_grad(), Waits() as waits:
        assert Objective(model.eval(), TrainingConfig(precision="float32"))(batch)[1].device == DEVICE
    assert not waits.counts


@pytest.mark.usefixtures("no_autocast")
@first_cases
def test_graphs_are_made_where_the_model_lies(case: Case) -> None:
    """Nothing is moved, and what they say of themselves is the same everywhere."""
    expected = TorchGraphs(case.build(torch.float32)).specs
    with elsewhere(case) as (model, _):
        graphs = TorchGraphs(model.eval())
        assert graphs.specs == expected
        assert next(model.parameters()).device == DEVICE


def test_a_model_in_training_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving it would take away what listens to its gradients, such as other processes."""
    model = TRAINED[0].build(torch.float32)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the model was moved")

    monkeypatch.setattr(torch.nn.Module, "_apply", refuse)
    TorchGraphs(model)


@pytest.mark.parametrize("further", [{}, {"ema_decay": 0.5}, {"precision": "bf16"}], ids=str)
def test_an_update_waits_for_the_norm_alone(further: dict[str, Any], prepared: Path, tmp_path: Path) -> None:
    trainer = toy_trainer(toy_recipe(accumulate=2, **further), prepared, tmp_path)
    plans = trainer.stream.plans(0)
    batches = [collate(trainer.train_data, next(plans)) for _ in range(2)]
    tokens = sum(batch.target_tokens for batch in batches)
    for _ in range(2):  # what is made once is there after the first
        with Waits() as waits:
            trainer.stepper.step(batches, tokens, 1e-3)
    assert waits.counts == {"_local_scalar_dense": 1}


@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_an_update_of_every_architecture_waits_for_the_norm_alone(case: Case) -> None:
    model = case.build(torch.float32, dropout=0.1)
    stepper, batch = Stepper(model, toy_recipe(), ALONE), batch_of(model)
    stepper.step((batch,), batch.target_tokens, 1e-3)
    with Waits() as waits:
        stepper.step((batch,), batch.target_tokens, 1e-3)
    assert waits.counts == {"_local_scalar_dense": 1}
