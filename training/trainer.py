"""The training loop: batches -> loss -> update -> validate -> checkpoint.

``--resume`` continues bit for bit (on a CPU): the batch plan is a function of seed and epoch, and a checkpoint holds
the optimiser's state, the random generator's and the place in the epoch.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch

from models.errors import CheckpointError, ConfigError
from models.layers.linear import unfolded
from models.loading import model_tensors
from models.protocol import Padded, Seq2SeqModel
from models.registry import build_model
from training.checkpoint import (
    Progress,
    checkpoints,
    load_into,
    read_progress,
    restore,
    save_checkpoint,
)
from training.data.batches import BatchPlan, TrainingBatch, collate, plan_epoch
from training.data.dataset import PreparedData
from training.data.prefetch import prefetch
from training.data.summary import PreparedSummary
from training.loss import smoothed_cross_entropy
from training.optim import build_optimiser, learning_rate
from training.recipe import Recipe, recipe_from_mapping, recipe_mapping


class Reporter(Protocol):
    """Where progress goes: a terminal, a log, event files."""

    def update(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Called every ``log_every`` updates with loss, learning rate, tokens/s and gradient norm."""

    def validation(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Called after every validation."""


Validator = Callable[[Seq2SeqModel[Any, Any]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Run:
    """Files of one training run."""

    folder: Path

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def best(self) -> Path:
        return self.checkpoints / "best.safetensors"


@dataclass(slots=True)
class _Window:
    """Losses since the last log line: single batches differ too much, being of one length each."""

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0

    def add(self, loss: float, nll: float, tokens: int) -> None:
        self.loss, self.nll, self.tokens = self.loss + loss, self.nll + nll, self.tokens + tokens

    def means(self) -> dict[str, float]:
        return {"loss": self.loss / self.tokens, "nll": self.nll / self.tokens}


class Trainer:
    """Trains one recipe on one prepared corpus.

    Args:
        recipe: what to train.
        data: the prepared folder.
        folder: where checkpoints go.
        device: "cpu" or "cuda".
        reporter: where progress goes.
        validator: decodes and scores; called after the validation loss, its values join that.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Path,
        folder: Path,
        *,
        device: str = "cpu",
        reporter: Reporter,
        validator: Validator | None = None,
    ) -> None:
        self.recipe, self.run, self.reporter, self.validator = recipe, Run(folder), reporter, validator
        self.device = torch.device(device)
        self.train_data = PreparedData.open(data, "train")
        self.valid_data = PreparedData.open(data, "valid")
        config = recipe.prepared_config(PreparedSummary.load(data))
        torch.manual_seed(recipe.training.seed)
        self.model = build_model(recipe.architecture, config).to(self.device)
        self.optimiser = build_optimiser(recipe.optimiser, self.model)
        self.progress = Progress()
        self._interrupted = False
        self._window = _Window()

    def initialise_from(self, tensors: Mapping[str, torch.Tensor], where: str) -> None:
        """Start from given weights, folded or not, instead of random ones (``--from``)."""
        load_into(self.model, unfolded(tensors, model_tensors(self.model)), where)

    def resume(self) -> bool:
        """Continue from the newest checkpoint; false where there is none.

        Raises:
            CheckpointError: the newest checkpoint belongs to another recipe.
        """
        found = checkpoints(self.run.checkpoints)
        if not found:
            return False
        _, recipe = read_progress(found[-1])
        with suppress(ConfigError):  # keys that were not known then had the values that are defaults now
            recipe = recipe_mapping(recipe_from_mapping(recipe, str(found[-1])))
        differing = _differences(recipe, recipe_mapping(self.recipe))
        if differing:
            raise CheckpointError(
                f"{found[-1]} was trained with other values of {', '.join(differing)}: "
                "use that recipe or another folder"
            )
        self.progress = restore(found[-1], self.model, self.optimiser)
        return True

    def train(self) -> Progress:
        """Train to the last update, a plateau's end, exhausted patience, or an interruption (then saved)."""
        started, previous = time.monotonic(), self.progress.seconds
        handlers = _on_interrupt(self._interrupt)
        try:
            for batches in self._updates():
                self._update(batches)
                self.progress = replace(self.progress, seconds=previous + time.monotonic() - started)
                if self._after_update() or self._interrupted:
                    break
            self._save()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return self.progress

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    def _updates(self) -> Iterator[list[TrainingBatch]]:
        """Groups of batches that make one update each, over as many epochs as it takes."""
        training = self.recipe.training
        group: list[TrainingBatch] = []  # may go on in the next epoch; it is empty whenever a checkpoint is written
        while self.progress.update < training.updates:
            plan = self._plan(self.progress.epoch)[self.progress.batch :]
            for batch in prefetch(partial(collate, self.train_data), plan):
                group.append(batch)
                self.progress = replace(self.progress, batch=self.progress.batch + 1)
                if len(group) == training.accumulate:
                    yield group
                    group = []
                if self.progress.update >= training.updates:
                    return
            self.progress = replace(self.progress, epoch=self.progress.epoch + 1, batch=0)

    def _plan(self, epoch: int) -> list[BatchPlan]:
        data = self.recipe.data
        return plan_epoch(
            self.train_data.source_lengths,
            self.train_data.target_lengths,
            epoch=epoch,
            seed=self.recipe.training.seed,
            max_tokens=self.recipe.training.batch_tokens,
            join_share=data.join_share,
            join_most=data.join_most,
            copy_share=data.copy_share,
            max_source_tokens=data.max_source_tokens,
            max_target_tokens=data.max_target_tokens,
        )

    def _update(self, batches: list[TrainingBatch]) -> None:
        self.model.train()
        optimiser, recipe = self.optimiser, self.recipe
        tokens = sum(batch.target_tokens for batch in batches)
        loss = nll = 0.0
        for batch in batches:
            smoothed, plain = self._loss(batch)
            (smoothed / tokens).backward()
            loss, nll = loss + smoothed.item(), nll + plain.item()
        rate = learning_rate(
            recipe.optimiser, self.progress.update + 1, recipe.training.updates, self.progress.plateaus
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        limit = recipe.optimiser.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit, foreach=True)
        if torch.isfinite(norm):
            optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        self.progress = replace(
            self.progress, update=self.progress.update + 1, target_tokens=self.progress.target_tokens + tokens
        )
        self._window.add(loss, nll, tokens)
        if self.progress.update % recipe.training.log_every == 0:
            self.reporter.update(self.progress, {**self._window.means(), "rate": rate, "gradient_norm": float(norm)})
            self._window = _Window()

    def _loss(self, batch: TrainingBatch) -> tuple[torch.Tensor, torch.Tensor]:
        low = self.recipe.training.precision == "bf16"
        device = self.device
        sources = tuple(Padded(s.values.to(device), s.lengths.to(device)) for s in batch.sources)
        with torch.autocast(device.type, torch.bfloat16, enabled=low):
            features = self.model.decode(batch.target_in.to(device), self.model.encode(sources))
        weight, bias = self.model.output_parameters()
        smoothing = self.recipe.training.label_smoothing if self.model.training else 0.0
        return smoothed_cross_entropy(
            features, weight, bias, batch.target_out.to(device), smoothing=smoothing, low_precision=low
        )

    def _after_update(self) -> bool:
        """Validate and save where due; true where training should end."""
        training, update = self.recipe.training, self.progress.update
        done = update >= training.updates
        stop = False
        if update % training.validate_every == 0 or done:
            stop = self._validate()
        if update % training.save_every == 0 and not done:
            self._save()
        return stop

    def validation_loss(self) -> float:
        """Mean negative log-likelihood per target symbol of the validation set."""
        self.model.eval()
        plan = plan_epoch(
            self.valid_data.source_lengths,
            self.valid_data.target_lengths,
            epoch=0,
            seed=0,
            max_tokens=self.recipe.training.batch_tokens,
            max_source_tokens=self.recipe.data.max_source_tokens,
            max_target_tokens=self.recipe.data.max_target_tokens,
        )
        total, tokens = 0.0, 0
        with torch.no_grad():
            for item in plan:
                batch = collate(self.valid_data, item)
                total += self._loss(batch)[1].item()
                tokens += batch.target_tokens
        return total / max(tokens, 1)

    def _validate(self) -> bool:
        random = torch.get_rng_state()
        values = {"loss": self.validation_loss()}
        if self.validator is not None:
            values |= self.validator(self.model.eval())
        torch.set_rng_state(random)
        metric = self.recipe.training.metric
        value = -values["loss"] if metric == "loss" else values[metric]
        improved = self.progress.best is None or value > self.progress.best
        config = self.recipe.optimiser
        stale = 0 if improved else self.progress.stale + 1
        plateaus = self.progress.plateaus + (0 if improved else int(config.schedule == "plateau"))
        self.progress = replace(
            self.progress, best=value if improved else self.progress.best, stale=stale, plateaus=plateaus
        )
        self.reporter.validation(self.progress, values)
        if improved:
            save_checkpoint(self.run.best, self.model, self.optimiser, self.progress, recipe_mapping(self.recipe))
        exhausted = bool(self.recipe.training.patience) and stale >= self.recipe.training.patience
        ended = config.schedule == "plateau" and config.learning_rate / config.decay**plateaus < config.stop_below
        return exhausted or ended

    def _save(self) -> None:
        path = self.run.checkpoints / f"checkpoint-{self.progress.update}.safetensors"
        save_checkpoint(path, self.model, self.optimiser, self.progress, recipe_mapping(self.recipe))
        for old in checkpoints(self.run.checkpoints)[: -self.recipe.training.keep]:
            old.unlink()


def _on_interrupt(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Let Ctrl-C and SIGTERM finish the running update and save; returns the handlers to put back."""
    try:
        return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: the caller interrupts
        return {}


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of the values that differ and matter: training may be lengthened, validated or batched otherwise."""
    free = {"data.join_share", "data.join_most", "data.copy_share"}
    free |= {"training.updates", "training.validate_every", "training.validation_sentences", "training.save_every"}
    free |= {"training.keep", "training.average", "training.log_every", "training.patience", "optimiser.cooldown"}
    found: list[str] = []
    for key in sorted({*old, *new}):
        name = f"{prefix}{key}"
        if name in free or key in ("decoding", "licence", "published"):
            continue
        left, right = old.get(key), new.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found += _differences(left, right, f"{name}.")
        elif left != right:
            found.append(name)
    return found
