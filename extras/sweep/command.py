"""`tandem sweep`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tandem.deploy.training import dictionary, means
from tandem.extras.evaluation.significance import DRAWS
from tandem.extras.shared.report import console, say, table
from tandem.extras.sweep.grid import PlannedRun, planned
from tandem.extras.sweep.outcomes import Outcome, known_outcome, measured_outcome
from tandem.extras.sweep.table import Row, ranked
from tandem.models.command import AsJson, CorporaFolder, RecipeFile, report
from tandem.models.folders import write_text
from tandem.training.data.ancestry import chosen_start
from tandem.training.experiment import ExperimentOptions
from tandem.training.loop.commands import Device, TrainOptions, prepare_recipe, train_recipe
from tandem.training.loop.divergence import DivergenceError
from tandem.training.loop.trainer import Run, is_over
from tandem.training.recipe import Recipe, load_recipe

_INTERRUPTED = 130


def sweep(
    recipe_file: RecipeFile,
    folder: Annotated[Path, typer.Option("--run", help="Folder of the sweep: prepared data, a run for each.")],
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE", help="Values of a field of the recipe; of several each combination."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each combination, with seeds that follow each other.")] = 1,
    corpora: CorporaFolder = Path("corpora"),
    threads: Annotated[int, typer.Option(min=0, help="Threads of one computation (0 = as the library chooses).")] = 0,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.cpu,
    options: ExperimentOptions = ExperimentOptions(),
    as_json: AsJson = False,
) -> None:
    """Train a recipe with each combination of some values, one run after another, and say which is best.

    The data is prepared once, or is that of --data. Called again the same sweep goes on where it was interrupted, and
    leaves out runs that are over. The table has the best value of the recipe's selection metric, mean and deviation
    over seeds, and the scores of the validation's sentences, translated greedily by each run's best checkpoint, with
    the paired bootstrap of `tandem evaluate` against the best combination. FOLDER/results.json has the same.

    Example: tandem sweep mine.toml --run runs/rates --grid optimiser.learning_rate=1e-3,5e-4 --seeds 3
    """
    asked = options.experiment()
    data = asked.data_of(folder)
    runs = planned(recipe_file, asked, grid or (), seeds, folder, data)
    outcomes: dict[str, list[Outcome]] = {}
    how = TrainOptions(recipe_file, threads=threads, device=device)
    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # what training says is no JSON
        if not asked.data:
            base = load_recipe(recipe_file, asked.settings)
            prepare_recipe(base, corpora, data, chosen_start(base.start, None), dictionary())
        for number, run in enumerate(runs, start=1):
            place = f"run {number} of {len(runs)}: {run.combination}, seed {run.seed}"
            outcomes.setdefault(run.combination, []).append(_outcome(run, data, place, how))
    rows = ranked(outcomes, runs[0].recipe)
    text = json.dumps(_mapping(rows, runs[0].recipe, seeds), ensure_ascii=False, indent=1)
    write_text(folder / "results.json", text + "\n")
    if as_json:
        print(text)
    else:
        _show(rows, runs[0].recipe)


def _outcome(run: PlannedRun, data: Path, place: str, how: TrainOptions) -> Outcome:
    """What came of a run, which is trained where it is not over. Raises typer.Exit where it is interrupted."""
    if (known := known_outcome(run.folder, run.recipe)) is not None:
        report(f"{place}: is over")
        return known
    report(place)
    try:
        how = replace(how, resume=Run(run.folder).newest is not None)
        trainer = train_recipe(run.recipe, run.experiment, run.folder, how, means())
    except DivergenceError as error:
        report(str(error))
        outcome = Outcome(diverged=str(error))
        outcome.save(run.folder)
        return outcome
    if not is_over(run.recipe, trainer.progress):
        report(f"interrupted after update {trainer.progress.update}: the same command goes on")
        raise typer.Exit(_INTERRUPTED)
    return measured_outcome(run.folder, run.recipe, data, how.device.value)


def _mapping(rows: Sequence[Row], recipe: Recipe, seeds: int) -> dict[str, object]:
    return {"metric": recipe.training.metric, "seeds": seeds, "combinations": [row.mapping() for row in rows]}


def _show(rows: Sequence[Row], recipe: Recipe) -> None:
    shown = [
        {
            "combination": row.combination,
            recipe.training.metric: row.shown,
            "best update": ", ".join(f"{update:,}" for update in row.updates),
            "diverged": row.diverged or None,
            **{
                title: text
                for score in row.scores
                for title, text in ((score.metric, score.shown), (f"p ({score.metric})", score.p_shown))
            },
        }
        for row in rows
    ]
    columns = {title: title for row in shown for title in row}
    console().print(table(f"{recipe.name}: {recipe.training.metric} by combination", columns, shown))
    seeds = max(len(row.values) for row in rows)
    say(f"{recipe.training.metric}: of each run's best validation, mean and deviation over {seeds} seeds.")
    if (best := next((row for row in rows if row.scores), None)) is not None:
        against = f'paired bootstrap against "{best.combination}", {DRAWS:,} draws of sentences'
        say(
            f"Others: all seeds together, with half of the 95% bootstrap interval. p: {against}.",
            *(f"{score.metric}: {score.signature}" for score in best.scores),
        )
