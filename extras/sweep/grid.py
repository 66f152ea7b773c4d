"""Which runs a sweep has: each combination of values, with each seed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tandem.models.errors import ConfigError
from tandem.training.data.summary import differences, identity_of, listed_differences
from tandem.training.experiment import Experiment
from tandem.training.recipe import Recipe, load_recipe

AS_IT_IS = "recipe"
"""The one combination of a sweep over seeds alone."""

_OUTSIDE = re.compile(r""",(?![^\[]*\])(?=(?:[^"]*"[^"]*")*[^"]*$)""")  # commas that stand in no list and no string
_SAME = ("task", "target_language")  # of all recipes, or their scores cannot be compared
_SAME_TRAINING = ("metric", "validation_sentences")


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        combination: what is set, as it is shown.
        seed: of training.
        experiment: what is set beside the recipe, the seed included.
        recipe: with all that.
        folder: of the run.
    """

    combination: str
    seed: int
    experiment: Experiment
    recipe: Recipe
    folder: Path


def planned(
    file: Path, asked: Experiment, grids: Sequence[str], seeds: int, folder: Path, data: Path
) -> tuple[PlannedRun, ...]:
    """All runs in order, those of one combination together; every recipe is checked.

    Args:
        file: the recipe.
        asked: what is set in all runs.
        grids: ``KEY=VALUE,VALUE`` each.
        seeds: of each combination: the recipe's, and those that follow it.
        folder: of the sweep.
        data: the prepared folder that all share.

    Raises:
        ConfigError: there is nothing to compare; a grid or a recipe is wrong; two combinations are the same, or they
            need other prepared data or other validations than the rest.
    """
    axes = [axis(grid) for grid in grids]
    if not axes and seeds < 2:
        raise ConfigError("a sweep needs a --grid KEY=VALUE,VALUE, or --seeds of at least 2")
    first = load_recipe(file, asked.settings).training.seed
    runs = []
    for chosen in product(*axes):
        combination = ", ".join(chosen) or AS_IT_IS
        for seed in range(first, first + seeds):
            experiment = Experiment((*asked.settings, *chosen, f"training.seed={seed}"), str(data.resolve()))
            recipe = load_recipe(file, experiment.settings)
            place = folder / "runs" / file_name(combination) / f"seed-{seed}"
            runs.append(PlannedRun(combination, seed, experiment, recipe, place))
    _check(runs)
    return tuple(runs)


def axis(grid: str) -> tuple[str, ...]:
    """The settings of ``KEY=VALUE,VALUE``, one for each value.

    Raises:
        ConfigError: it is not of that form, or has a value twice.
    """
    key, equals, text = grid.partition("=")
    values = [value.strip() for value in _OUTSIDE.split(text)]
    if not equals or not key.strip() or not all(values):
        raise ConfigError(f"--grid must be KEY=VALUE,VALUE, such as optimiser.learning_rate=1e-3,5e-4, but is {grid!r}")
    if len(set(values)) < len(values):
        raise ConfigError(f"--grid {grid}: every value must be different")
    return tuple(f"{key.strip()}={value}" for value in values)


def file_name(combination: str) -> str:
    """A combination as a folder is called."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", combination)


def _check(runs: Sequence[PlannedRun]) -> None:
    folders = [run.folder for run in runs]
    if twice := [run.combination for run in runs if folders.count(run.folder) > 1]:
        raise ConfigError(f"every combination needs a folder of its own, but these have one: {'; '.join(twice)}")
    first = runs[0]
    for run in runs[1:]:
        if found := differences(_shared(first.recipe), _shared(run.recipe)):
            raise ConfigError(
                f"the runs of a sweep share prepared data and validations, but with {run.combination}"
                f" {listed_differences(found)}: make a sweep of its own for it"
            )


def _shared(recipe: Recipe) -> dict[str, object]:
    """What must be the same in all runs."""
    own = {name: getattr(recipe, name) for name in _SAME}
    training = {f"training.{name}": getattr(recipe.training, name) for name in _SAME_TRAINING}
    return {**own, **training, **identity_of(recipe.data, recipe.languages, 0)}
