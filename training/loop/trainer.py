"""The training loop: batches -> loss -> update -> validate -> checkpoint.

``--resume`` continues bit for bit (on a CPU): the batch plan is a function of seed and epoch, and a checkpoint holds
the optimiser's state, the random generators' and the place in the epoch.

Several processes run this same loop in step (:mod:`training.parallel`). An update is the same whatever their number:
they share its batches, and its loss is the mean over the target symbols of them all. Rank 0 alone validates, reports
and saves, and tells the others what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from tandem.models.architectures.layers.linear import unfolded
from tandem.models.architectures.protocol import Seq2SeqModel
from tandem.models.errors import ConfigError, DecodingError
from tandem.models.steps.loading import model_tensors
from tandem.training.checkpoint import (
    TrainingProgress,
    checkpoints,
    further_tensors,
    load_into,
    random_states,
    restore,
    save_checkpoint,
    set_random_states,
)
from tandem.training.data.batches import collate
from tandem.training.data.dataset import PreparedData, vocabulary_digest
from tandem.training.data.directions import NO_TAGS, SourceTags, source_tags
from tandem.training.data.plans import plan_epoch
from tandem.training.data.stream import Group, Stream, TextRewriting
from tandem.training.data.summary import PreparedSummary
from tandem.training.experiment import Experiment
from tandem.training.loop.divergence import diverged, fault_of, fault_of_search, fault_of_weights, set_aside
from tandem.training.loop.interruption import interruptible
from tandem.training.loop.objective import Objective, OpenSelection
from tandem.training.loop.reporting import Reporter, ShownSentence, TrainingClock, Window
from tandem.training.loop.resuming import (
    check_recipe,
    check_same_update,
    check_vocabularies,
    restore_own_states,
    seed_process,
    states_of_others,
)
from tandem.training.loop.stepping import Stepper
from tandem.training.loop.trainable import trainable_model
from tandem.training.loop.validation import Validated
from tandem.training.optimisation.adapters import with_adapters
from tandem.training.optimisation.determinism import determinism
from tandem.training.optimisation.optim import divisions, learning_rate, spent
from tandem.training.optimisation.precision import chosen, float32_products
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe, recipe_mapping

ALONE = Processes()


Validator = Callable[[Seq2SeqModel[Any, Any]], Validated]


@dataclass(frozen=True, slots=True)
class Run:
    """Files of one training run."""

    folder: Path

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def data(self) -> Path:
        """The prepared data, which it may share with other runs."""
        return Experiment.load(self.folder).data_of(self.folder)

    @property
    def best(self) -> Path:
        return self.checkpoints / "best.safetensors"

    @property
    def newest(self) -> Path | None:
        """The checkpoint to go on from: the best one where no other is left, which holds as much."""
        best = [self.best] if self.best.exists() else []
        return next(reversed(checkpoints(self.checkpoints) or best), None)


def training_stream(
    recipe: Recipe,
    data: PreparedData,
    processes: Processes,
    tags: SourceTags = NO_TAGS,
    rewriting: TextRewriting | None = None,
) -> Stream:
    """The batches that a recipe makes of its training data, and this process's share of them."""
    return Stream(
        data,
        recipe.training.accumulate,
        processes,
        tags,
        rewriting,
        seed=recipe.training.seed,
        max_tokens=recipe.training.batch_tokens,
        max_items=recipe.training.batch_sentences,
        join_share=recipe.data.join_share,
        join_most=recipe.data.join_most,
        copy_share=recipe.data.copy_share,
        max_source_tokens=recipe.data.max_source_tokens,
        max_target_tokens=recipe.data.max_target_tokens,
    )


class Trainer:
    """Trains one recipe on one prepared corpus.

    Args:
        recipe: what to train.
        data: the prepared folder.
        folder: where checkpoints go; with several processes the same on every machine.
        processes: those that train together, and the device of this one.
        reporter: where progress goes; called by rank 0 alone.
        validator: decodes and scores; called by rank 0 after the validation loss, its values join that.
        rewriting: of training pairs, never of those of the validation; None = they stay as they are.
        select: makes the selection of words that the recipe may ask for; None = nothing can.

    Attributes:
        choice: the precision that the recipe asks for, or what its "auto" stands for here.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Path,
        folder: Path,
        *,
        processes: Processes = ALONE,
        reporter: Reporter,
        validator: Validator | None = None,
        rewriting: TextRewriting | None = None,
        select: OpenSelection | None = None,
    ) -> None:
        self.recipe, self.run, self.reporter, self.validator = recipe, Run(folder), reporter, validator
        self.processes, self.data = processes, data
        self.rewriters = 0 if rewriting is None else rewriting.processes
        self.choice = chosen(recipe.training.precision, processes)
        self._training = replace(recipe.training, precision=self.choice.precision)
        self.train_data = PreparedData.open(data, "train")
        self.valid_data = PreparedData.open(data, "valid")
        config = recipe.prepared_config(PreparedSummary.load(data))
        torch.manual_seed(recipe.training.seed)
        self.model = trainable_model(recipe, config).to(processes.device)
        selection = None
        if recipe.training.selection:
            if select is None:
                raise ConfigError(
                    "training selection needs the extra 'refining': its folder, extras/refining, is not there; bring it"
                    " back, or set selection = 0"
                )
            selection = select(self.train_data, data, recipe.training)
        self.stepper = Stepper(self.model, replace(recipe, training=self._training), processes, selection)
        seed_process(recipe.training.seed, processes)
        tagged = recipe.data.rewrites or recipe.data.join_share
        tags = source_tags(recipe.data, recipe.languages, data) if tagged else NO_TAGS
        self.stream = training_stream(recipe, self.train_data, processes, tags, rewriting)
        self.progress = TrainingProgress(vocabularies=vocabulary_digest(data), precision=self.choice.precision)
        self._window = Window()
        self._watch = TrainingClock(0.0)
        self._begun = False

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """The optimiser of the model's weights."""
        return self.stepper.optimiser

    def initialise_from(self, tensors: Mapping[str, torch.Tensor], where: str) -> None:
        """Start from given weights, folded or not, instead of random ones (``--from``)."""
        load_into(self.model, with_adapters(unfolded(tensors, model_tensors(self.model)), self.model), where)

    def resume(self) -> bool:
        """Continue from the newest checkpoint, on any number of processes; false where there is none.

        Raises:
            CheckpointError: the newest checkpoint belongs to another recipe or other vocabularies, or is not the same
                for every process.
        """
        found = self.run.newest
        if found is not None:
            check_recipe(found, self.recipe)
            check_vocabularies(found, self.data)
            further = further_tensors(found)
            restored = restore(found, self.model, self.optimiser)
            own = self.progress
            self.progress = replace(restored, vocabularies=own.vocabularies, precision=own.precision)
            self.stepper.restore(further, str(found))
            restore_own_states(further, self.recipe.training.seed, self.processes, self.progress.update)
        check_same_update(self.processes, self.progress.update)
        return found is not None

    def train(self) -> TrainingProgress:
        """Train to the last update, a plateau's end, exhausted patience, or an interruption (then saved).

        Raises:
            ConfigError: training diverged: more updates in a row than the recipe allows had gradients that are not
                finite, a validation found no number, or weights are none. What may have gone wrong before is set aside.
        """
        self._watch = TrainingClock(self.progress.seconds)
        training = self.recipe.training
        groups = self.stream.updates(self.progress.epoch, self.progress.batch, self.progress.shards)
        self.reporter.moved(self.progress)
        with interruptible(self.processes.launched) as interruption, closing(groups):
            while not is_over(self.recipe, self.progress):
                group = next(groups)
                own = sum(batch.target_tokens for batch in group.batches)
                tokens, interrupted = self.processes.total(own, interruption.asked)
                if interrupted:
                    break
                with determinism(training.deterministic):
                    self._update(group, int(tokens))
                with self._watch.paused():
                    self._after_update()
            self._save()
        return self.progress

    def _update(self, group: Group, tokens: int) -> None:
        recipe, done = self.recipe, self.progress
        plateaus = divisions(recipe.optimiser, done.plateaus, epochs=group.epoch - done.epoch)
        done = replace(done, plateaus=plateaus)
        rate = learning_rate(recipe.optimiser, done.update + 1, recipe.training.updates, done.plateaus)
        step = self.stepper.step(group.batches, tokens, rate)
        self.progress = replace(
            done,
            update=done.update + 1,
            epoch=group.epoch,
            batch=group.batch,
            shards=group.shards,
            target_tokens=done.target_tokens + tokens,
            seconds=self._watch.seconds,
            skipped=done.skipped + (not step.applied),
            skipped_last=0 if step.applied else done.skipped_last + 1,
        )
        if self.progress.skipped_last > recipe.training.max_skipped:
            # What was saved stays: such updates changed nothing.
            raise diverged(_skipped_too_often(self.progress, recipe), self.progress, recipe, self.run.newest)
        self._window.add(step.loss, step.nll, tokens)
        self._report(rate, step.norm)

    def _report(self, rate: float, norm: float) -> None:
        """What is due after an update: the first one shows that it learns."""
        update = self.progress.update
        due, early = update % self.recipe.training.log_every == 0, not self._begun
        self._begun = True
        if due or early:
            values = {**self._window.means(self.processes), "rate": rate, "gradient_norm": norm}
            if self.progress.skipped:
                values["skipped"] = self.progress.skipped
            if self.stepper.loss_scale is not None:
                values["loss_scale"] = self.stepper.loss_scale
            if self.processes.first:  # the means above are taken by all of them
                (self.reporter.update if due else self.reporter.begun)(self.progress, values)
        if due:
            self._window = Window()
        self.reporter.moved(self.progress)

    def _after_update(self) -> None:
        """Validate and save where due."""
        training, update = self.recipe.training, self.progress.update
        done = is_over(self.recipe, self.progress)
        if update % training.validate_every == 0 or done:
            self._validate()
        if update % training.save_every == 0 and not done:
            self._save()

    def validation_loss(self) -> float:
        """Mean negative log-likelihood per target symbol of the validation set, of the weights to be exported."""
        objective = Objective(self.stepper.best.eval(), self._training)  # in evaluation mode nothing is compiled
        plan = plan_epoch(
            self.valid_data.source_lengths,
            self.valid_data.target_lengths,
            epoch=0,
            seed=0,
            max_tokens=self.recipe.training.batch_tokens,
            max_source_tokens=self.recipe.data.max_source_tokens,
            max_target_tokens=self.recipe.data.max_target_tokens,
        )
        total, tokens = torch.zeros((), dtype=torch.float64, device=self.processes.device), 0
        with torch.no_grad(), float32_products(self._training.precision):
            for item in plan:
                batch = collate(self.valid_data, item)
                total += objective(batch)[1]
                tokens += batch.target_tokens
        return float(total) / max(tokens, 1)

    def _validate(self) -> None:
        training, config = self.recipe.training, self.recipe.optimiser
        values, examples, fault = self._validation_values() if self.processes.first else ({}, (), "")
        value = -values.get("loss", 0.0) if training.metric == "loss" else values.get(training.metric, 0.0)
        (value,) = self.processes.of_first(math.nan if fault else value)
        if not math.isfinite(value):
            if self.processes.first:
                self.reporter.validation(self.progress, values, examples)
            self._give_up(fault)
        # So written that a NaN, which earlier versions took for the best, is not kept.
        improved = self.progress.best is None or not value <= self.progress.best
        stale = 0 if improved else self.progress.stale + 1
        plateaus = divisions(config, self.progress.plateaus, stale=not improved)
        self.progress = replace(
            self.progress,
            best=value if improved else self.progress.best,
            stale=stale,
            plateaus=plateaus,
            validated=self.progress.update,
        )
        if self.processes.first:
            self.reporter.validation(self.progress, values, examples)
        if improved:
            self._write(self.run.best)

    def _validation_values(self) -> tuple[dict[str, float], tuple[ShownSentence, ...], str]:
        """Loss and scores, examples, and what is wrong with them; random numbers drawn meanwhile leave no trace."""
        random = random_states()
        values = {"loss": self.validation_loss()}
        examples: tuple[ShownSentence, ...] = ()
        fault = fault_of(values, "loss")
        if self.validator is not None and not fault:
            try:
                found = self.validator(self.stepper.best.eval())
                values, examples = {**values, **found.scores}, found.examples
                fault = fault_of(values, self.recipe.training.metric)
            except DecodingError as error:
                fault = fault_of_search(error)
        set_random_states(random)
        return values, examples, fault

    def _give_up(self, fault: str) -> NoReturn:
        """End a training that diverged; the newest checkpoint then is one that had not."""
        if self.processes.first:
            set_aside(self.run.checkpoints, self.progress.validated)
        raise diverged(fault or "the validation failed", self.progress, self.recipe, self.run.newest)

    def _save(self) -> None:
        if fault := fault_of_weights(self.model):  # the same in every process
            self._give_up(fault)
        self._write(self.run.checkpoints / f"checkpoint-{self.progress.update}.safetensors")
        if self.processes.first:
            for old in checkpoints(self.run.checkpoints)[: -self.recipe.training.keep]:
                old.unlink()

    def _write(self, path: Path) -> None:
        """Called by every process, since each has random numbers of its own; the first writes the file."""
        further = {**self.stepper.tensors(), **states_of_others(self.processes)}
        if self.processes.first:
            recipe = recipe_mapping(self.recipe)
            save_checkpoint(path, self.model, self.optimiser, self.progress, recipe, further)


def is_over(recipe: Recipe, progress: TrainingProgress) -> bool:
    """Whether training is over, by what is known of it: also of a run that may be resumed."""
    training = recipe.training
    exhausted = bool(training.patience) and progress.stale >= training.patience
    return exhausted or progress.update >= training.updates or spent(recipe.optimiser, progress.plateaus)


def _skipped_too_often(progress: TrainingProgress, recipe: Recipe) -> str:
    most = recipe.training.max_skipped
    return f"the gradient was not finite in {progress.skipped_last} updates in a row (max_skipped is {most})"
