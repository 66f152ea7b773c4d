"""Our own trainer, and the same model trained as a first version would be written."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.training.work import RATE, SMOOTHING, Count, TrainingPass, TrainingWork, recipe_of
from models.layers.dropout import Dropout
from models.protocol import count_parameters
from training.data.batches import TrainingBatch
from training.data.stream import Stream
from training.optim import learning_rate
from training.reporting import Silent
from training.trainer import Trainer

CLIP = 1.0


def symbols(batch: TrainingBatch) -> Count:
    """Of a batch; feature vectors have none."""
    places = sum(source.values.numel() for source in batch.sources if not source.values.is_floating_point())
    return Count(batch.source_tokens, places, batch.target_tokens, batch.target_out.numel())


def timed(stream: Stream, step: Callable[[TrainingBatch], None], turn: int, warmup: int, updates: int) -> TrainingPass:
    """Updates of one batch each on the batches of an epoch of their own."""
    count, waited = Count(), 0.0
    with closing(stream.updates(epoch=turn)) as groups:
        for _ in range(warmup):
            step(next(groups).batches[0])
        started = time.perf_counter()
        for _ in range(updates):
            asked = time.perf_counter()
            (batch,) = next(groups).batches
            waited += time.perf_counter() - asked
            step(batch)
            count += symbols(batch)
        return TrainingPass(updates, time.perf_counter() - started, count, waited)


class Ours:
    """What ``tandem train`` runs: the trainer's stream and its stepper. Nothing is validated or saved."""

    def __init__(self, work: TrainingWork, architecture: str, attention_dropout: float) -> None:
        recipe = recipe_of(work, architecture, attention_dropout)
        self.name = f"tandem {architecture}"
        self.trainer = Trainer(recipe, work.folder, Path("nowhere"), reporter=Silent())
        self.parameters = count_parameters(self.trainer.model)
        self._updates = 0

    def step(self, batch: TrainingBatch) -> None:
        """One update."""
        recipe = self.trainer.recipe
        self._updates += 1
        rate = learning_rate(recipe.optimiser, self._updates, recipe.training.updates, 0)
        self.trainer.stepper.step((batch,), batch.target_tokens, rate)

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        return timed(self.trainer.stream, self.step, turn, warmup, updates)


class Plain:
    """The plain bf16 step: autocast, torch's dropout, cross-entropy over all logits in float32, Adam as it comes.

    The model is ours with torch's dropout, its residual stream left in float32; the batches are ours.
    """

    def __init__(self, work: TrainingWork, architecture: str, attention_dropout: float) -> None:
        trainer = Trainer(
            recipe_of(work, architecture, attention_dropout), work.folder, Path("nowhere"), reporter=Silent()
        )
        self.name = "plain bf16 step"
        self.model, self._stream = trainer.model, trainer.stream
        self.parameters = count_parameters(self.model)
        use_plain_dropout(self.model)
        self._optimiser = torch.optim.Adam(self.model.parameters(), lr=RATE / 1000, betas=(0.9, 0.98), eps=1e-9)

    def loss(self, batch: TrainingBatch) -> Tensor:
        """Mean over the target symbols."""
        # Ours narrows embeddings, and with them all that is added to them; this is a function of the model's module.
        whole = mock.patch(f"{type(self.model).__module__}.narrowed", lambda x: x)
        with whole, torch.autocast("cpu", torch.bfloat16):
            features = self.model.decode(batch.target_in, self.model.encode(batch.sources))
            logits = F.linear(features, *self.model.output_parameters())
        return F.cross_entropy(
            logits.float().flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=SMOOTHING
        )

    def step(self, batch: TrainingBatch) -> None:
        """One update."""
        self.model.train()
        loss = self.loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self._optimiser.step()
        self._optimiser.zero_grad()
        loss.item()

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        return timed(self._stream, self.step, turn, warmup, updates)


def use_plain_dropout(model: nn.Module) -> None:
    """Put torch's dropout in the place of ours."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, Dropout):
                setattr(module, name, nn.Dropout(child.rate))
