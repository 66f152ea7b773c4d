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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from sys import stderr
from typing import Any

from tandem.deploy.training import prepare
from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.evaluation.significance import Counts
from tandem.extras.evaluation.systems import decode_system
from tandem.extras.papers.claims.agreement import Agreement, agreement
from tandem.extras.papers.claims.compared import RECIPES, Family, families
from tandem.extras.papers.claims.learning import draw_learning
from tandem.extras.papers.claims.options import ClaimsOptions
from tandem.extras.papers.claims.printing import markdown
from tandem.extras.shared.outputs import check_folder
from tandem.extras.shared.report import environment, names, say, show_environment
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.training.checkpoint import checkpoints, read_progress
from tandem.training.data.corpus import read_parallel
from tandem.training.data.dataset import side_names, text_path
from tandem.training.export.exporting import export
from tandem.training.loop.commands import TrainOptions, train
from tandem.training.loop.reporting import read_metrics
from tandem.training.loop.trainer import Run
from tandem.training.quality.metrics import corpus_metrics
from tandem.training.recipe import Recipe, load_recipe


def measure(options: ClaimsOptions) -> dict[str, Any]:
    """Train, export and score what has no score yet, until a run is interrupted.

    Raises:
        ConfigError: an unknown family or row, a folder of another recipe, or scores after other numbers of updates.
        CorpusError: the small recipes' corpora are missing.
    """
    check_folder(options.curves, "--curves")
    chosen = _chosen(options)
    if not options.no_train:
        for name, family in chosen.items():
            if not _made(family, name, options):
                break
    drawn = [] if options.curves is None else _drawn(chosen, options, options.curves)
    tables = {name: {"small": one.small, **_table(name, one, options)} for name, one in chosen.items()}
    return {
        "environment": environment(options.threads),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        "families": tables,
        "drawn": [str(file) for file in drawn],
        "complete": all(len(row["values"]) == options.seeds for one in tables.values() for row in one["rows"]),
    }


def _chosen(options: ClaimsOptions) -> dict[str, Family]:
    """The families that are asked for, with the rows that are; without those that have none of them."""
    known = families()
    chosen = {name: known[name] for name in names(options.families, "--families", tuple(known)) or known}
    rows = tuple(dict.fromkeys(row for family in chosen.values() for row in family.rows()))
    if not (asked := names(options.rows, "--rows", rows)):
        return chosen
    return {name: narrow for name, family in chosen.items() if (narrow := family.only(asked)).published}


def _drawn(chosen: Mapping[str, Family], options: ClaimsOptions, folder: Path) -> list[Path]:
    """Figures of how the rows learnt."""
    seeds = range(1, options.seeds + 1)
    found = []
    for name, family in chosen.items():
        runs = {row: [options.runs / _run_name(name, row, seed) for seed in seeds] for row in family.rows()}
        found += draw_learning(name, runs, folder)
    return found


def _made(family: Family, name: str, options: ClaimsOptions) -> bool:
    """Whether all runs of a family have their score now."""
    with redirect_stdout(stderr):  # standard output is for the result
        shared = options.runs / Path(family.small).parent  # recipes of a folder have the same data
        for recipe, folder in _runs(family, name, options):
            if _kept(folder.name, options) is None:
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


def _kept(name: str, options: ClaimsOptions) -> dict[str, Any] | None:
    """What a run gave, where it has its score.

    Raises:
        ConfigError: it was trained for another number of updates.
    """
    kept = _scores(options).get(name)
    if kept is not None and kept.get("updates") != options.updates:
        raise ConfigError(
            f"{_score_file(options)} has {name} after {kept.get('updates', 'all')} updates, not after"
            f" {options.updates or 'all'}: ask for as many, or name another file with --scores"
        )
    return None if kept is None else dict(kept)


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
    *sources, gold = _test_text(recipe, data)
    system = decode_system(recipe.name, bundle, sources, Decoding(threads=threads, segments=True))
    counts = Counts(corpus_metrics(recipe.task, recipe.target_language), {recipe.name: system.texts}, gold)
    scores = counts.compare(recipe.name)[recipe.name]
    return {
        "scores": {score.metric: score.value for score in scores},
        "intervals": {score.metric: score.interval for score in scores},
        "perplexity": _last_perplexity(folder),
        "tokens_per_second": system.training_speed,
        "parameters": system.parameters,
        "seconds": round(progress.seconds),
    }


def _test_text(recipe: Recipe, data: Path) -> list[list[str]]:
    """Sources and references of all corpora with a test set, one after another."""
    sides, tested = side_names(len(recipe.source_languages)), [c for c in recipe.data.corpora if "test" in c.splits]
    found = [read_parallel([text_path(data, corpus.name, "test", side) for side in sides]) for corpus in tested]
    return [list(chain.from_iterable(columns)) for columns in zip(*found, strict=True)]


def _last_perplexity(folder: Path) -> float:
    """Of the validation after the last update, whose weights are those that are scored."""
    lines = [line for line in read_metrics(folder / "metrics.jsonl") if line["group"] == "valid"]
    return round(float(lines[-1]["perplexity"]), 3)


def _table(family: str, one: Family, options: ClaimsOptions) -> dict[str, Any]:
    """The rows, and how far our means order them as the paper does."""
    rows = [_row(family, name, published, options) for name, published in one.rows().items()]
    return {
        "rows": rows,
        "order": asdict(_order(rows, "paper", "ours")),
        "perplexity_order": asdict(_order(rows, "paper_perplexity", "perplexity")),
    }


def _order(rows: Sequence[Mapping[str, Any]], theirs: str, ours: str) -> Agreement:
    return agreement([(row[theirs], row[ours]) for row in rows if None not in (row[theirs], row[ours])])


def _row(family: str, name: str, published: Recipe, options: ClaimsOptions) -> dict[str, Any]:
    runs = [_run_name(family, name, seed) for seed in range(1, options.seeds + 1)]
    found = [kept for run in runs if (kept := _kept(run, options)) is not None]
    values = [one["scores"]["BLEU"] for one in found]
    return {
        "name": name,
        "table": published.published["table"],
        "paper": published.published.get("bleu"),
        "paper_interval": published.published.get("bleu_interval"),
        "paper_perplexity": published.published.get("perplexity"),
        "ours": statistics.mean(values) if values else None,
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "values": values,
        "interval": _mean(one["intervals"]["BLEU"] for one in found if "intervals" in one),
        "perplexity": _mean(one["perplexity"] for one in found if "perplexity" in one),
        "tokens_per_second": _mean(one["tokens_per_second"] for one in found if "tokens_per_second" in one),
        "parameters": found[0]["parameters"] if found else None,
        "seconds": sum(one["seconds"] for one in found),
    }


def _mean(values: Iterable[float]) -> float | None:
    """Of the runs that have a value: those of earlier versions have scores alone."""
    found = list(values)
    return statistics.mean(found) if found else None


def show(result: Mapping[str, Any]) -> None:
    """The tables of docs/papers.md."""
    say(show_environment(result["environment"]))
    for name, family in result["families"].items():
        say("", *markdown(name, family))
    say(*(f"drawn: {file}" for file in result["drawn"]))
