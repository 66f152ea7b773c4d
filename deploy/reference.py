"""Writes the two reference pages from the code they describe: ``python -m deploy.reference``.

``docs/configuration.md`` comes from the service's settings, ``docs/recipes.md`` from the recipe's dataclasses; a test
fails when a page no longer matches.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from pathlib import Path
from typing import Any

from models.registry import ARCHITECTURES
from models.search import SearchOptions
from service.settings import Settings
from training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from training.optim import OptimiserConfig
from training.recipe import Recipe, TrainingConfig

_TABLES: tuple[tuple[str, str, type[Any]], ...] = (
    ("(top level)", "Name, task and languages.", Recipe),
    ("[data]", "What to train on.", DataConfig),
    ("[[data.corpora]]", "One parallel corpus.", CorpusConfig),
    ("[data.filters]", "Which pairs are left out.", FilterConfig),
    ("[data.vocabulary]", "How the vocabularies are made.", VocabularyConfig),
    *((f'[model] of architecture = "{name}"', "", config) for name, (config, _) in ARCHITECTURES.items()),
    ("[optimiser]", "How parameters are updated.", OptimiserConfig),
    ("[training]", "How long and with what numbers.", TrainingConfig),
    ("[decoding]", "The bundle's decoding defaults.", SearchOptions),
)


def configuration_page() -> str:
    """Every setting of the service as a table."""
    lines = [
        "# Settings of the service",
        "",
        "`tandem serve` reads them from the environment. Values out of bounds are refused at start. This page is",
        "written by `python -m deploy.reference`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, tuple):
            default = ":".join(str(item) for item in default)
        lines.append(f"| `TANDEM_{name.upper()}` | `{default}` | {field.description} |")
    return "\n".join(lines) + "\n"


def recipes_page() -> str:
    """Every key of a recipe as tables."""
    lines = [
        "# Keys of a recipe",
        "",
        "A recipe is one TOML file (examples under `training/recipes/`). Unknown keys are errors that list the known",
        "ones. This page is written by `python -m deploy.reference`.",
    ]
    for title, text, config in _TABLES:
        lines += ["", f"## `{title}`", "", *([text, ""] if text else []), "| key | type | default | meaning |"]
        lines.append("|---|---|---|---|")
        meanings = attribute_docs(config)
        for field in dataclasses.fields(config):
            kind = _type_name(typing.get_type_hints(config)[field.name])
            meaning = meanings.get(field.name, "")
            lines.append(f"| `{field.name}` | {kind} | {_default(field)} | {meaning} |")
    return "\n".join(lines) + "\n"


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
    """Write both pages."""
    docs = Path(__file__).resolve().parent.parent / "docs"
    (docs / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    (docs / "recipes.md").write_text(recipes_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
