"""An update on a device, without one: every tensor lies there, and nothing but the gradient's norm is waited for.

Tensors that pose as a device's have shapes and types, and no values: an operation on tensors of two devices is an
error, and so is looking at a value. The device is one that every build of torch knows enough of for a backward pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from models.graphs import TorchGraphs
from models.protocol import Padded, feature_widths
from tests.models.architectures import FIRST_CASES, KINDS, TARGET_TYPES, AnyModel, Case, cases, two_kinds
from tests.training.toy import toy_recipe, toy_trainer
from training.data.batches import TrainingBatch, collate
from training.objective import Objective
from training.recipe import TrainingConfig
from training.stepping import Stepper
from training.trainer import ALONE

DEVICE = torch.device("lazy:0")
TRAINED = [case for case in FIRST_CASES if case.trainable]
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal")
"""Operations for which a GPU has to be waited for."""


class Waits(TorchDispatchMode):
    """Counts the operations that would wait for a GPU; a mask as an index is one of them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        indices = args[1] if name in ("index", "index_put_", "_index_put_impl_") else ()
        if name in WAITS or any(x is not None and x.dtype == torch.bool for x in indices):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


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
def posing(case: Case) -> Iterator[tuple[AnyModel, TrainingBatch]]:
    """A model whose tensors pose as a GPU's, and a batch that lies on the CPU."""
    model = case.build(torch.float32, dropout=0.1)
    batch = batch_of(model)
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        made: dict[int, Tensor] = {}  # what is shared stays so
        for module in model.modules():
            for own in (module._parameters, module._buffers):
                for name, tensor in own.items():
                    if tensor is not None and id(tensor) not in made:
                        there = torch.empty(tensor.shape, dtype=tensor.dtype, device=DEVICE)
                        made[id(tensor)] = nn.Parameter(there) if tensor.requires_grad else there
                    own[name] = None if tensor is None else made[id(tensor)]  # type: ignore[assignment]
        assert {tensor.device for tensor in (*model.parameters(), *model.buffers())} == {DEVICE}
        yield model, batch._with(mode.from_tensor)


@pytest.fixture
def no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch knows no narrow types for the device that is posed as."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)


@pytest.mark.usefixtures("no_autocast")
@cases(TRAINED, KINDS)
def test_loss_and_gradients_are_computed_where_the_model_lies(case: Case) -> None:
    with posing(case) as (model, batch):
        loss, nll = Objective(model.train(), TrainingConfig(precision="float32"))(batch)
        assert (loss.device, nll.device, loss.dtype) == (DEVICE, DEVICE, torch.float64)
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert {gradient.device for gradient in gradients} == {DEVICE}
        assert len(gradients) > len(list(model.parameters())) / 2


@pytest.mark.usefixtures("no_autocast")
@cases(TRAINED, KINDS)
def test_a_validation_is_computed_where_the_model_lies(case: Case) -> None:
    with posing(case) as (model, batch), torch.no_grad():
        assert Objective(model.eval(), TrainingConfig(precision="float32"))(batch)[1].device == DEVICE


@pytest.mark.usefixtures("no_autocast")
@two_kinds
def test_graphs_are_made_where_the_model_lies(case: Case) -> None:
    """Nothing is moved, and what they say of themselves is the same everywhere."""
    expected = TorchGraphs(case.build(torch.float32)).specs
    with posing(case) as (model, _):
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


def test_what_waits_is_seen() -> None:
    """The count itself: a value, a mask as an index, and the places of what is true."""
    with Waits() as waits:
        x = torch.ones(3)
        float(x[0])
        x[x > 0]
        x.nonzero()
    assert waits.counts == {"_local_scalar_dense": 1, "index": 1, "nonzero": 1}
