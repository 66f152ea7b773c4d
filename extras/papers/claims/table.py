"""`tandem bench claims`: tables of the papers beside small runs, which differ in nothing but what the rows compare.

``claims.toml`` lists the tables. A run is a folder as `tandem train` makes it, with its recipe and its bundle in it.
What is stopped goes on where it was, and a run that has its score is not made again, even where its folder has gone:
scores stand in a file of their own, those of docs/papers.md in ``claims.json``. Every row gets its first seed before
any has its second, so that what is there can be compared.
"""

from __future__ import annotations

import json
import os
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from sys import stderr
from typing import Any

from tandem import training
from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.evaluation.systems import decode_system
from tandem.extras.papers.claims.options import ClaimsOptions
from tandem.extras.shared.report import environment, names, say, show_environment
from tandem.models.bundle import Bundle
from tandem.models.config import load_dataclass
from tandem.models.errors import ConfigError
from tandem.training.checkpoint import checkpoints, read_progress
from tandem.training.data.corpus import read_parallel
from tandem.training.data.dataset import side_names, text_path
from tandem.training.export.exporting import export
from tandem.training.loop.commands import TrainOptions, prepare, train
from tandem.training.loop.trainer import Run
from tandem.training.quality.metrics import task_scores
from tandem.training.recipe import Recipe, load_recipe

RECIPES = Path(training.__file__).parent / "recipes"
TABLE = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True, slots=True)
class Family:
    """One table of a paper.

    Attributes:
        small: the recipe that every variant starts from.
        published: the recipes of the table's rows, as patterns.
        keys: what a variant takes over of its published recipe's ``[model]``.
        model: what all variants have otherwise than the small recipe.
    """

    small: str
    published: tuple[str, ...]
    keys: tuple[str, ...]
    model: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> dict[str, Recipe]:
        """The published recipes by name, the plainest first."""
        paths = {path for pattern in self.published for path in RECIPES.glob(pattern)}
        return {path.stem: load_recipe(path) for path in sorted(paths, key=lambda path: (len(path.stem), path.stem))}

    def text(self, name: str, published: Recipe, settings: Mapping[str, Any]) -> str:
        """A variant's recipe, as TOML: of strings, numbers, truth values and lists of them JSON is."""
        model = self.model | {key: published.model[key] for key in self.keys if key in published.model}
        head = {"base": str((RECIPES / self.small).resolve()), "name": name}
        tables = [("", head), ("[model]", model), ("[training]", settings)]
        return "\n".join(
            f"{title}\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
            for title, table in tables
        ).lstrip()


def families() -> dict[str, Family]:
    """All of them, by name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: load_dataclass(Family, one, f"{TABLE.name} [{name}]") for name, one in table.items()}


def measure(options: ClaimsOptions) -> dict[str, Any]:
    """Train, export and score what has no score yet, until a run is interrupted.

    Raises:
        ConfigError: an unknown family, or a folder of another recipe.
        CorpusError: the small recipes' corpora are missing.
    """
    known = families()
    chosen = {name: known[name] for name in names(options.families, "--families", tuple(known)) or known}
    complete = all(_made(family, name, options) for name, family in chosen.items())
    return {
        "environment": environment(options.threads),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        "families": {name: {"small": one.small, **_table(name, one, options)} for name, one in chosen.items()},
        "complete": complete,
    }


def _made(family: Family, name: str, options: ClaimsOptions) -> bool:
    """Whether all runs of a family have their score now."""
    with redirect_stdout(stderr):  # standard output is for the result
        shared = options.runs / Path(family.small).parent  # recipes of a folder have the same data
        for recipe, folder in _runs(family, name, options):
            kept = _scores(options).get(folder.name)
            if kept is not None and kept.get("updates") != options.updates:
                raise ConfigError(
                    f"{_score_file(options)} has {folder.name} after {kept.get('updates', 'all')} updates, not after"
                    f" {options.updates or 'all'}: ask for as many, or name another file with --scores"
                )
            if kept is None:
                prepare(RECIPES / family.small, run=shared, corpora=options.corpora)
                found = _run(recipe, folder, shared / "data", options.threads)
                if found is None:
                    return False
                _keep(folder.name, found, options)
    return True


def _runs(family: Family, name: str, options: ClaimsOptions) -> Iterator[tuple[Path, Path]]:
    """Recipe and folder of every run, seed by seed; the recipes are written where they are missing."""
    given = _given(options)
    for seed in range(1, options.seeds + 1):
        for row, published in family.rows().items():
            folder = options.runs / _run_name(name, row, seed)
            recipe, text = folder / "recipe.toml", family.text(folder.name, published, {"seed": seed, **given})
            if recipe.exists() and recipe.read_text(encoding="utf-8") != text:
                raise ConfigError(f"{folder} was made with another recipe.toml: choose another folder with --runs")
            folder.mkdir(parents=True, exist_ok=True)
            recipe.write_text(text, encoding="utf-8")
            yield recipe, folder


def _given(options: ClaimsOptions) -> dict[str, Any]:
    """What the runs are asked to do otherwise than the small recipe."""
    return {key: value for key in ("updates", "precision") if (value := getattr(options, key)) is not None}


def _run_name(family: str, row: str, seed: int) -> str:
    return f"{family}-{row}-{seed}"


def _score_file(options: ClaimsOptions) -> Path:
    return options.scores or options.runs / "scores.json"


def _scores(options: ClaimsOptions) -> dict[str, Any]:
    """What was found so far, by the name of the run.

    Raises:
        ConfigError: the file is no such file.
    """
    file = _score_file(options)
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON ({error}): name the file that this command wrote, or none") from error
    return dict(found)


def _keep(name: str, found: Mapping[str, Any], options: ClaimsOptions) -> None:
    """Write down what a run gave, beside what other processes have written since: a line for each."""
    scores = _scores(options) | {name: {**found, **_given(options)}}
    lines = ",\n".join(f" {json.dumps(run)}: {json.dumps(scores[run])}" for run in sorted(scores))
    file = _score_file(options)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    unfinished.replace(file)


def _run(recipe_file: Path, folder: Path, data: Path, threads: int) -> dict[str, Any] | None:
    """One run to its score; None if it was interrupted."""
    recipe = load_recipe(recipe_file)
    say(f"{recipe.name} ...", error=True)
    if not (folder / "data").exists():
        (folder / "data").unlink(missing_ok=True)  # folders were moved
        (folder / "data").symlink_to(data.resolve(), target_is_directory=True)
    train(TrainOptions(recipe_file, run=folder, resume=True, threads=threads))
    progress, _ = read_progress(checkpoints(Run(folder).checkpoints)[-1])
    if progress.update < recipe.training.updates:
        return None
    export(folder, out=folder / "bundle", force=True)
    bundle = Bundle.load(folder / "bundle")
    sides = side_names(len(recipe.source_languages))
    *sources, gold = read_parallel([text_path(data, recipe.data.corpora[0].name, "test", side) for side in sides])
    system = decode_system(recipe.name, bundle, sources, Decoding(threads=threads, segments=True))
    scores = {
        score.metric: score.value for score in task_scores(recipe.task, recipe.target_language, system.texts, gold)
    }
    return {"scores": scores, "parameters": system.parameters, "seconds": round(progress.seconds)}


def _table(family: str, one: Family, options: ClaimsOptions) -> dict[str, Any]:
    """The rows, and how many pairs of them our means order as the paper does."""
    rows = [_row(family, name, published, options) for name, published in one.rows().items()]
    told = [(row["paper"], row["ours"]) for row in rows if row["ours"] is not None]
    pairs = [(p - q) * (a - b) for (p, a), (q, b) in combinations(told, 2) if p != q]
    return {"rows": rows, "pairs": len(pairs), "alike": sum(product > 0 for product in pairs)}


def _row(family: str, name: str, published: Recipe, options: ClaimsOptions) -> dict[str, Any]:
    runs, scores = [_run_name(family, name, seed) for seed in range(1, options.seeds + 1)], _scores(options)
    found = [scores[run] for run in runs if run in scores]
    values = [one["scores"]["BLEU"] for one in found]
    return {
        "name": name,
        "table": published.published["table"],
        "paper": published.published["bleu"],
        "ours": statistics.mean(values) if values else None,
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "values": values,
        "parameters": found[0]["parameters"] if found else None,
        "seconds": sum(one["seconds"] for one in found),
    }


def show(result: Mapping[str, Any]) -> None:
    """The tables of docs/papers.md."""
    say(show_environment(result["environment"]))
    for name, family in result["families"].items():
        say("", *markdown(name, family))


def markdown(name: str, family: Mapping[str, Any]) -> Sequence[str]:
    lines = [f"| {name} | published in | paper's BLEU | ours | runs | parameters |", "|---|---|--:|--:|--:|--:|"]
    for row in family["rows"]:
        ours = "–" if row["ours"] is None else f"{row['ours']:.2f}"
        if row["deviation"] is not None:
            ours += f" ± {row['deviation']:.2f}"
        size = "–" if row["parameters"] is None else f"{row['parameters']:,}"
        cells = (row["name"], row["table"], f"{row['paper']:.2f}", ours, str(len(row["values"])), size)
        lines.append(f"| {' | '.join(cells)} |")
    notes = []
    if family["pairs"]:
        notes.append(f"{family['alike']} of {family['pairs']} pairs of rows are in the paper's order.")
    if any(row["deviation"] is not None for row in family["rows"]):
        notes.append("±: standard deviation over the runs, one for each seed.")
    return [*lines, *(["", " ".join(notes)] if notes else [])]
