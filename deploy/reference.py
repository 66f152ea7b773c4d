"""Writes the reference pages from the code they describe: ``python -m deploy.reference``.

``docs/configuration.md`` comes from the service's settings, ``docs/api.md`` from its OpenAPI document,
``docs/recipes.md`` from the recipe's dataclasses and the recipes, ``docs/corpora.md`` from the table of corpora; and
``.env.example`` with the list of variables that the compose files pass on. A test fails when one no longer matches.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from pathlib import Path
from typing import Any

import training
from deploy.api_page import api_page
from deploy.env_example import env_example, passed_settings
from deploy.settings_page import configuration_page
from models.registry import ARCHITECTURES
from models.search import SearchOptions
from training.corpora.page import corpora_page
from training.data.config import CorpusConfig, DataConfig, FilterConfig, NoiseConfig, VocabularyConfig
from training.optim import OptimiserConfig
from training.recipe import Recipe, TrainingConfig, load_recipe

RECIPES = Path(training.__file__).parent / "recipes"
_TABLES: tuple[tuple[str, str, type[Any]], ...] = (
    ("(top level)", "Name, task and languages.", Recipe),
    ("[data]", "What to train on.", DataConfig),
    ("[[data.corpora]]", "One parallel corpus.", CorpusConfig),
    ("[data.filters]", "Which pairs are left out.", FilterConfig),
    ("[data.noise]", "What is done to some training sources.", NoiseConfig),
    ("[data.vocabulary]", "How the vocabularies are made.", VocabularyConfig),
    *(
        (f'[model] of architecture = "{name}"', "", config)
        for name, (config, model) in ARCHITECTURES.items()
        if model.trainable  # others are not made by a recipe
    ),
    ("[optimiser]", "How parameters are updated.", OptimiserConfig),
    ("[training]", "How long and with what numbers.", TrainingConfig),
    ("[decoding]", "The bundle's decoding defaults.", SearchOptions),
)


def recipes_page() -> str:
    """Every key of a recipe, and every recipe, as tables."""
    lines = [
        "# Recipes",
        "",
        "A recipe is one TOML file: everything that makes a bundle. This page has its keys, and at the end the recipes",
        "under `training/recipes/` with what the papers print. It is written by `python -m deploy.reference`.",
        "",
        'Unknown keys are errors that list the known ones. With `base = "dpn.toml"`, a path relative to the recipe, a',
        "recipe starts from another: it takes over every key that it does not have itself, tables key by key, lists",
        "whole. Two tables are not taken over: `[published]`, and `[model]` where the recipe names another",
        "architecture.",
    ]
    for title, text, config in _TABLES:
        lines += ["", f"## `{title}`", "", *([text, ""] if text else []), "| key | type | default | meaning |"]
        lines.append("|---|---|---|---|")
        meanings = attribute_docs(config)
        for field in dataclasses.fields(config):
            kind = _type_name(typing.get_type_hints(config)[field.name])
            meaning = meanings.get(field.name, "")
            lines.append(f"| `{field.name}` | {kind} | {_default(field)} | {meaning} |")
    return "\n".join([*lines, "", *_recipes_table()]) + "\n"


def _recipes_table() -> list[str]:
    lines = [
        "## The recipes",
        "",
        "Scores are those that the papers print, and so are sizes, at the papers' vocabularies (`tandem describe`",
        "counts any recipe's). Recipes without them are this project's own.",
        "",
        "| recipe | task | architecture | published in | scores | parameters |",
        "|---|---|---|---|---|--:|",
    ]
    for path in sorted(RECIPES.rglob("*.toml")):
        recipe = load_recipe(path)
        numbers = {key: value for key, value in recipe.published.items() if isinstance(value, float)}
        scores = ", ".join(f"{_score_name(key)} {value}" for key, value in numbers.items())
        parameters = f"{recipe.published['parameters']:,}" if "parameters" in recipe.published else ""
        task = f"{'+'.join(recipe.source_languages)} → {recipe.target_language}, {recipe.task}"
        cells = (task, recipe.architecture, recipe.published.get("table", ""), scores, parameters)
        lines.append(f"| `{path.relative_to(RECIPES).as_posix()}` | {' | '.join(cells)} |")
    return lines


def _score_name(key: str) -> str:
    """A published score as people call it: "bleu" is BLEU, "mt04" the set MT04, "duc2004_rouge1_recall" as it reads."""
    names = {"bleu": "BLEU", "meteor": "METEOR", "hter": "HTER", "duc2004": "DUC-2004"}
    names |= {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    return " ".join(names.get(word, word.upper() if word.startswith("mt") else word) for word in key.split("_"))


def attribute_docs(config: type[Any]) -> dict[str, str]:
    """What a class's docstring says under "Attributes:", by name; one entry may name several."""
    text = inspect.getdoc(config) or ""
    _, _, attributes = text.partition("Attributes:\n")
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?= {4}\S)", "\n" + attributes.split("\n\n")[0]):
        names, _, meaning = entry.strip().partition(":")
        for name in names.split(","):
            found[name.strip()] = " ".join(meaning.split()).replace("|", "\\|").replace("``", "`")
    return found


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(f"`{value!r}`" for value in typing.get_args(hint)).replace("'", '"')
    if dataclasses.is_dataclass(hint):
        return "table"
    name = getattr(hint, "__name__", str(hint)) if not typing.get_args(hint) else str(hint)
    plain = {"str": "string", "int": "whole number", "float": "number", "bool": "true or false"}
    if typing.get_origin(hint) is tuple:
        return f"list of {_type_name(typing.get_args(hint)[0])}s"
    if type(None) in typing.get_args(hint):
        return _type_name(next(item for item in typing.get_args(hint) if item is not type(None)))
    return "table" if typing.get_origin(hint) is dict else plain.get(name, name)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "required" if field.default_factory is dataclasses.MISSING else "empty"
    value = field.default
    if dataclasses.is_dataclass(value):
        return ""
    if value is None or value == "" or value == ():
        return "none"
    return f"`{str(list(value) if isinstance(value, tuple) else value).lower()}`"


def main() -> None:
    """Write the pages."""
    root = Path(__file__).resolve().parent.parent
    docs = root / "docs"
    (docs / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    (docs / "api.md").write_text(api_page(), encoding="utf-8")
    (docs / "recipes.md").write_text(recipes_page(), encoding="utf-8")
    (docs / "corpora.md").write_text(corpora_page(), encoding="utf-8")
    (root / ".env.example").write_text(env_example(), encoding="utf-8")
    (root / "deploy" / "docker" / "settings.env").write_text(passed_settings(), encoding="utf-8")


if __name__ == "__main__":
    main()
