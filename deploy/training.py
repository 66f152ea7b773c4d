"""`tandem prepare` and `tandem train`: they stand in deploy, since only it knows the service and the extras."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tandem.models.command import CorporaFolder, RecipeFile, RunFolder
from tandem.service.ports import extras, load
from tandem.service.runtimes.torch import device_search
from tandem.service.telemetry.cgroups import usable_cores
from tandem.training.data.ancestry import chosen_start
from tandem.training.data.prepare import BuildDictionary
from tandem.training.experiment import ExperimentOptions
from tandem.training.loop.commands import Means, TrainOptions, prepare_recipe, print_summary, run_folder
from tandem.training.loop.commands import train as train_prepared
from tandem.training.recipe import load_recipe


def prepare(
    recipe_file: RecipeFile,
    run: RunFolder = None,
    corpora: CorporaFolder = Path("corpora"),
    start: Annotated[
        Path | None, typer.Option("--from", help="Use this bundle's vocabularies. [the recipe's start]")
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace data that was prepared differently.")] = False,
    options: ExperimentOptions = ExperimentOptions(),
) -> None:
    """Turn corpora into batches' raw material: filter, train vocabularies, encode.

    Example: tandem prepare training/recipes/tatoeba-de-en/dpn.toml --corpora corpora
    """
    experiment = options.experiment()
    recipe = load_recipe(recipe_file, experiment.settings)
    out, begun = experiment.data_of(run_folder(recipe, run)), chosen_start(recipe.start, start)
    print_summary(prepare_recipe(recipe, corpora, out, begun, dictionary(), force=force))


def train(options: TrainOptions, changes: ExperimentOptions = ExperimentOptions()) -> None:
    """Train what `tandem prepare` has prepared. Ctrl-C saves a checkpoint first; `--resume` continues exactly.

    `torchrun --nproc-per-node 2 -m tandem train RECIPE` shares every update's batches between two processes; with
    `--device cuda` each has a GPU of its own. The first alone prints, validates and saves.

    Example: tandem train training/recipes/tatoeba-de-en/dpn.toml
    """
    train_prepared(options, changes, means())


def dictionary() -> BuildDictionary | None:
    """What aligns the words of word vocabularies here."""
    found: BuildDictionary | None = next((load(extra.dictionary) for extra in extras() if extra.dictionary), None)
    return found


def means() -> Means:
    """What trainings have here besides torch."""
    augmentation = next((load(extra.augmentation) for extra in extras() if extra.augmentation), None)
    selection = next((load(extra.selection) for extra in extras() if extra.selection), None)
    trackers = next((load(extra.trackers) for extra in extras() if extra.trackers), None)
    return Means(device_search("cuda"), augmentation, selection, trackers, usable_cores())
