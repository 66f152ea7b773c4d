"""`tandem describe`: architecture, configuration and parameter counts of a recipe, a run or a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from tandem.models.architectures.registry import build_model, load_config
from tandem.models.bundle import Bundle, Manifest
from tandem.models.command import AsJson
from tandem.models.config import to_mapping
from tandem.models.errors import ConfigError
from tandem.training.checkpoint import read_progress
from tandem.training.data.summary import PreparedSummary
from tandem.training.loop.trainer import Run
from tandem.training.recipe import load_recipe, recipe_from_mapping


def describe(
    target: Annotated[
        Path, typer.Argument(metavar="RECIPE|RUN|BUNDLE", help="A recipe file, or the folder of a run or a bundle.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show architecture, configuration and parameter counts.

    Example: tandem describe training/recipes/iwslt14-de-en/dpn.toml --json
    """
    description = _describe_folder(target) if target.is_dir() else _describe_recipe(target)
    if as_json:
        print(json.dumps(description, indent=2, ensure_ascii=False))
        return
    console = Console()
    table = Table(title=f"{description['name']}: {description['architecture']}", show_header=False)
    for key, value in description["config"].items():
        table.add_row(key, str(value))
    console.print(table)
    for title, rows in _facts(description).items():
        facts = Table(title=title, show_header=False)
        for row in rows:
            facts.add_row(*row)
        console.print(facts)
    parts = Table(title="parameters")
    parts.add_column("part")
    parts.add_column("number", justify="right")
    for part, number in description["parameters"].items():
        parts.add_row(part, f"{number:,}")
    console.print(parts)


def _describe_recipe(path: Path) -> dict[str, Any]:
    """A recipe's model at the sizes that its data will have; of a paper's recipe, at the paper's dictionaries."""
    recipe = load_recipe(path)
    config = recipe.model_config(*recipe.vocabulary_sizes())
    description = _describe(recipe.name, recipe.architecture, to_mapping(config))
    return {**description, "task": recipe.task, "published": dict(recipe.published)}


def _describe_folder(path: Path) -> dict[str, Any]:
    """A bundle's, or that of a run: of its newest checkpoint's recipe."""
    newest = None if (path / "manifest.json").exists() else Run(path).newest
    if newest is None:
        return _describe_bundle(path)
    progress, mapping = read_progress(newest)
    recipe = recipe_from_mapping(mapping, str(newest))
    *sources, target = PreparedSummary.load(Run(path).data).vocabularies.values()
    config = to_mapping(recipe.model_config(tuple(sources), target))
    return {**_describe(recipe.name, recipe.architecture, config), "task": recipe.task, "updates": progress.update}


def _describe_bundle(path: Path) -> dict[str, Any]:
    if not (path / "manifest.json").exists():
        raise ConfigError(
            f"{path} is neither a recipe file nor a run nor a bundle: it has neither checkpoints nor a manifest.json"
        )
    manifest = Bundle.load(path).manifest
    description = _describe(manifest.name, manifest.architecture, dict(manifest.config))
    pairs = manifest.pairs or tuple((source, manifest.target_language) for source in manifest.source_languages)
    return {
        **description,
        "task": manifest.task,
        "languages": [f"{source} to {target}" for source, target in pairs],
        "licence": manifest.licence,
        "updates": manifest.training.updates,
        "corpora": to_mapping(manifest.training.corpora),
        "scores": to_mapping(manifest.scores),
    }


def _facts(description: dict[str, Any]) -> dict[str, list[list[str]]]:
    """What else is shown of a bundle or a run, and is worth more to most than its configuration."""
    if "updates" not in description:
        return {}
    if "corpora" not in description:
        return {"run": [["task", description["task"]], ["updates", f"{description['updates']:,}"]]}
    bundle = [
        ["task", description["task"]],
        ["languages", ", ".join(description["languages"])],
        ["licence", description["licence"]],
        ["updates", f"{description['updates']:,}"],
    ]
    corpora = [[one["name"], f"{one['segments']:,} segments", one["licence"]] for one in description["corpora"]]
    scores = [[one["test_set"], one["metric"], f"{one['value']:g}"] for one in description["scores"]]
    return {"bundle": bundle, "corpora": corpora, "scores": scores or [["not measured"]]}


def bundle_parameters(manifest: Manifest) -> int:
    """All parameters of a bundle's model, those that only training needs included."""
    total: int = _describe(manifest.name, manifest.architecture, dict(manifest.config))["parameters"]["total"]
    return total


def _describe(name: str, architecture: str, mapping: dict[str, Any]) -> dict[str, Any]:
    config = load_config(architecture, mapping, f"{name} [model]")
    with torch.device("meta"):  # counting needs no memory
        parts = build_model(architecture, config).parameter_parts()
    return {
        "name": name,
        "architecture": architecture,
        "config": mapping,
        "parameters": {**parts, "total": sum(parts.values())},
    }
