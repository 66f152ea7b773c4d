"""What `tandem prepare` and `tandem train` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import torch
import typer
from rich.console import Console
from rich.progress import Progress as Bar

from tandem.models.architectures.protocol import feature_widths
from tandem.models.bundle import SCRATCH, Bundle
from tandem.models.command import RecipeFile, RunFolder
from tandem.models.errors import CheckpointError, ConfigError
from tandem.models.steps.device_search import OpenSearch
from tandem.training.checkpoint import read_progress
from tandem.training.data.ancestry import check_scratch, check_start, chosen_start, start_bundle, write_ancestry
from tandem.training.data.prepare import BuildDictionary
from tandem.training.data.prepare import prepare as prepare_data
from tandem.training.data.stream import TextRewriting
from tandem.training.data.summary import PreparedSummary, check_prepared
from tandem.training.experiment import Experiment, ExperimentOptions
from tandem.training.loop.header import header
from tandem.training.loop.locking import only_one, remove_unfinished
from tandem.training.loop.objective import OpenSelection
from tandem.training.loop.reporting import FindTrackers, OpenTracker, Reporter, Silent, TerminalReporter
from tandem.training.loop.trainer import Run, Trainer
from tandem.training.loop.validation import TextValidator
from tandem.training.optimisation.heap import keep_freed_memory
from tandem.training.optimisation.optim import spent
from tandem.training.optimisation.precision import flushed_denormals, slower
from tandem.training.parallel import Processes, joined
from tandem.training.recipe import Recipe, load_recipe, recipe_mapping

console = Console()
OpenAugmentation: TypeAlias = Callable[[Recipe, Path, int | None, int, Processes], TextRewriting]
"""What rewrites training pairs as a recipe asks for: given the recipe, the prepared data, how many processes of this
machine are to do so (None = as many as suit the device), the cores that may be used, and those that train together."""


class Device(StrEnum):
    """Where training runs."""

    cpu = "cpu"
    cuda = "cuda"


def prepare_recipe(
    recipe: Recipe,
    corpora: Path,
    out: Path,
    start: Path | None = None,
    dictionary: BuildDictionary | None = None,
    *,
    force: bool = False,
) -> PreparedSummary:
    """The data of a recipe in the folder ``out``, with a bar; with a bundle's vocabularies where it starts from one,
    and with what ``dictionary`` aligns where they are of words.

    Raises:
        TandemError: as :func:`training.data.prepare.prepare`, or the bundle is not sound.
    """
    vocabularies = None
    if start is not None:
        bundle = Bundle.load(start)
        vocabularies = (*bundle.source_vocabularies, bundle.target_vocabulary)
    with Bar(console=console, transient=True) as bar:
        tasks = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        return prepare_data(
            recipe.data,
            languages=recipe.languages,
            root=corpora,
            out=out,
            seed=recipe.training.seed,
            force=force,
            vocabularies=vocabularies,
            features=feature_widths(recipe.model_config()),
            dictionary=dictionary,
            progress=progress,
        )


def print_summary(summary: PreparedSummary) -> None:
    """Say on the terminal what was prepared."""
    for name, split in summary.splits.items():
        dropped = ", ".join(f"{count:,} by {reason}" for reason, count in split.dropped.items()) or "none"
        tokens = f"{sum(split.source_tokens):,} source and {split.target_tokens:,} target tokens"
        cut = f"; {split.truncated:,} sources cut" if split.truncated else ""
        said = f"{name}: {split.pairs:,} pairs, {tokens}; dropped: {dropped}{cut}"
        console.print(said, highlight=False, soft_wrap=True)
    sizes = ", ".join(f"{side} {size:,}" for side, size in summary.vocabularies.items())
    console.print(f"vocabularies: {sizes}; prepared in {summary.seconds} s", highlight=False)


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What to train, from where on and where."""

    recipe_file: RecipeFile
    run: RunFolder = None
    resume: Annotated[bool, typer.Option(help="Continue from the newest checkpoint of the run.")] = False
    start: Annotated[
        Path | None, typer.Option("--from", help="Start from this bundle's weights. [the recipe's start]")
    ] = None
    scratch: Annotated[
        bool, typer.Option("--scratch", help="Start from random weights, though the data has a bundle's vocabularies.")
    ] = False
    updates: Annotated[int | None, typer.Option(min=1, help="Train to this update instead of the recipe's.")] = None
    threads: Annotated[int, typer.Option(min=0, help="Threads of one computation (0 = as the library chooses).")] = 0
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.cpu
    rewriters: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes of this machine that rewrite text ahead (noise, augmentation, BPE dropout); 0 = a thread"
            " of the trainer. [0 on a CPU; with cuda what the cores allow, at most 16 a GPU]",
            show_default=False,
        ),
    ] = None
    track: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Report to this installed tracker too (tandem.trackers).")
    ] = None


def train(
    options: TrainOptions,
    changes: ExperimentOptions = ExperimentOptions(),
    means: Means | None = None,
) -> None:
    """Train what `tandem prepare` has prepared, as `tandem train` does.

    Args:
        options: what and where.
        changes: of the recipe.
        means: what there is besides torch; None = nothing.
    """
    experiment, recipe, folder = _experiment(options.recipe_file, options.run, changes.experiment(), options.resume)
    if options.updates is not None:
        recipe = _lasting(recipe, options.updates)
    if recipe.optimiser.cooldown > recipe.training.updates:
        fall = f"cooldown is {recipe.optimiser.cooldown:,}, more than the {recipe.training.updates:,} updates"
        note = f"note: {fall}: the learning rate falls from the beginning, and never reaches what the recipe says"
        console.print(note, highlight=False, soft_wrap=True)
    if Run(folder).newest is not None and not options.resume:
        raise CheckpointError(f"{folder} already holds checkpoints: add --resume, or choose another folder with --run")
    trainer = train_recipe(recipe, experiment, folder, options, means or Means())
    _say(trainer.processes, f"{_ending(trainer)}: {folder}")


@dataclass(frozen=True, slots=True)
class Means:
    """What a training has that this package does not know: of the service, and of extras.

    Attributes:
        search: with which validation decodes on a GPU; None = the general one.
        augmentation: what rewrites training pairs; None = nothing can.
        selection: what makes selections of words; None = nothing can.
        trackers: what finds places for progress besides the terminal; None = there are none.
        cores: of this machine that may be used.
    """

    search: OpenSearch | None = None
    augmentation: OpenAugmentation | None = None
    selection: OpenSelection | None = None
    trackers: FindTrackers | None = None
    cores: int = 1


def train_recipe(recipe: Recipe, experiment: Experiment, folder: Path, how: TrainOptions, means: Means) -> Trainer:
    """Train a run to its end, or until it is interrupted, and say on the terminal how it goes.

    Args:
        recipe: with what is set.
        experiment: what is set, which the run's folder keeps.
        folder: of the run.
        how: what else was asked for; recipe, folder and the last update are those above.
        means: what there is besides torch.

    Raises:
        TandemError: what was given does not fit together, or training diverged.
    """
    begun = chosen_start(recipe.start, how.start)
    open_tracker = _tracker(how.track or (), means)
    keep_freed_memory()
    if how.device is Device.cuda and not torch.cuda.is_available():
        raise ConfigError("--device cuda: no GPU is visible to PyTorch here; leave the option out to train on the CPU")
    with flushed_denormals(), joined(how.device.value) as processes, ExitStack() as stack:
        if how.threads:
            torch.set_num_threads(how.threads)
        if processes.first:
            stack.enter_context(only_one(folder))
            remove_unfinished(Run(folder).checkpoints)
        reporter: Reporter = Silent()
        if processes.first:
            trackers = None if open_tracker is None else open_tracker(folder, recipe_mapping(recipe), console.print)
            reporter = stack.enter_context(TerminalReporter(recipe.training.updates, folder, console, trackers))
            PreparedSummary.load(experiment.data_of(folder)).check_files(experiment.data_of(folder))
        trainer = _trainer(recipe, experiment.data_of(folder), folder, processes, reporter, how.rewriters, means)
        _say_precision(trainer)
        _say(processes, header(trainer))
        resumed = how.resume and trainer.resume()
        summary = PreparedSummary.load(trainer.data)
        check_prepared(summary, recipe.data, recipe.languages, trainer.data)
        if resumed:
            if how.start is not None:
                check_start(folder, Bundle.load(how.start))
            _say(processes, f"continuing after update {trainer.progress.update}")
        else:
            check_scratch(trainer.data, summary.vocabularies_given, begun, how.scratch)
            _begin(trainer, begun, folder)
        if processes.first:
            experiment.save(folder)
        trainer.train()
    return trainer


def _tracker(names: Sequence[str], means: Means) -> OpenTracker | None:
    """What opens the trackers of a run. Raises ConfigError where one that is asked for is unknown."""
    if means.trackers is not None:
        return means.trackers(names)
    if names:
        raise ConfigError(
            f"--track {names[0]}: needs the extra 'tracking': its folder, extras/tracking, is not there; bring it back"
        )
    return None


def _lasting(recipe: Recipe, updates: int) -> Recipe:
    """The recipe with another number of updates. A cooldown ends there, and is no larger a share of them than before:
    else a short try would have the rate fall from its first update on.
    """
    planned, cooldown = recipe.training.updates, recipe.optimiser.cooldown
    if updates < planned and cooldown:
        cooldown = cooldown * updates // planned
        note = (
            f"note: cooldown is {cooldown:,} instead of {recipe.optimiser.cooldown:,}: the recipe's is for {planned:,}"
        )
        console.print(f"{note} updates, and these are {updates:,}", highlight=False, soft_wrap=True)
    training, optimiser = replace(recipe.training, updates=updates), replace(recipe.optimiser, cooldown=cooldown)
    return replace(recipe, training=training, optimiser=optimiser)


def _ending(trainer: Trainer) -> str:
    """How a training has ended, and where its best model is where that is not the end."""
    training, progress = trainer.recipe.training, trainer.progress
    if progress.update > training.updates:
        return f"nothing was trained: update {progress.update} is past the {training.updates} asked for (--updates)"
    if progress.update == training.updates:
        return f"trained after update {progress.update}"
    if training.patience and progress.stale >= training.patience:
        why = f"{training.metric} has not improved in {progress.stale} validations (patience = {training.patience})"
    elif spent(trainer.recipe.optimiser, progress.plateaus):
        why = f"the learning rate has fallen below stop_below = {trainer.recipe.optimiser.stop_below:g}"
    else:
        return f"stopped and saved after update {progress.update}"
    best, _ = read_progress(trainer.run.best)
    return f"ended after update {progress.update}: {why}; the best was update {best.update}, {trainer.run.best.name}"


def _experiment(file: Path, run: Path | None, asked: Experiment, resume: bool) -> tuple[Experiment, Recipe, Path]:
    """What is set, the recipe with it, and the run's folder. A run that goes on keeps what was set when it began."""
    recipe = load_recipe(file, asked.settings)
    folder = run_folder(recipe, run)
    if not resume:
        return asked, recipe, folder
    experiment = Experiment.load(folder).then(asked)
    return experiment, load_recipe(file, experiment.settings), folder


def _trainer(
    recipe: Recipe,
    data: Path,
    folder: Path,
    processes: Processes,
    reporter: Reporter,
    rewriters: int | None,
    means: Means,
) -> Trainer:
    validates = recipe.training.validation_sentences and processes.first
    return Trainer(
        recipe,
        data,
        folder,
        processes=processes,
        reporter=reporter,
        validator=TextValidator(recipe, data, means.search) if validates else None,
        rewriting=_rewriting(recipe, data, processes, rewriters, means) if recipe.data.rewrites else None,
        select=means.selection,
    )


def _rewriting(recipe: Recipe, data: Path, processes: Processes, rewriters: int | None, means: Means) -> TextRewriting:
    if means.augmentation is None:
        raise ConfigError(
            "data: bpe_dropout, noise and augmentation need the extra 'augmentation': its folder, extras/augmentation,"
            " is not there; bring it back, or leave them out of the recipe"
        )
    return means.augmentation(recipe, data, rewriters, means.cores, processes)


def _say(processes: Processes, line: str) -> None:
    if processes.first:
        console.print(line, highlight=False, soft_wrap=True)


def _say_precision(trainer: Trainer) -> None:
    choice, processes = trainer.choice, trainer.processes
    if choice.reason:
        _say(processes, f"precision: {choice.precision} ({choice.reason})")
    elif processes.first and (line := slower(choice.precision, processes.device)):
        _say(processes, line)


def _begin(trainer: Trainer, start: Path | None, folder: Path) -> None:
    """Begin from a bundle, or with the weights that the model has."""
    bundle = None if start is None else start_bundle(start, trainer.data, trainer.model.config)
    if bundle is None and trainer.recipe.training.adapter_rank:
        raise ConfigError(
            "training adapter_rank is for fine-tuning: name the bundle to begin from with --from, or as start in the"
            " recipe, or leave adapter_rank out"
        )
    if bundle is not None:
        tensors = {name: torch.from_numpy(array.copy()) for name, array in bundle.weights().items()}
        trainer.initialise_from(tensors, str(start))
    if trainer.processes.first:
        write_ancestry(folder, bundle.manifest.training if bundle else SCRATCH)


def run_folder(recipe: Recipe, run: Path | None) -> Path:
    """The folder of a run; None = as its recipe is named."""
    return run or Path("runs") / recipe.name
