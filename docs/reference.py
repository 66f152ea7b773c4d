"""Writes what the reference pages take from the code: ``python -m docs.reference``.

A page is written by hand but for its blocks, which lie between two lines with "written by python -m docs.reference"
and "until here". A test fails where a page no longer matches the code.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tandem import training
from tandem.models.architectures.registry import ARCHITECTURES
from tandem.models.search import SearchOptions
from tandem.service.app import create_app
from tandem.service.configuration import flag_of, is_secret, plain_default, variable_of
from tandem.service.http.openapi import FORM
from tandem.service.http.parts import dialect_of
from tandem.service.settings import Settings
from tandem.training.data.config import (
    AugmentationConfig,
    CorpusConfig,
    DataConfig,
    FilterConfig,
    NoiseConfig,
    VocabularyConfig,
)
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, TrainingConfig, load_recipe

ROOT = Path(__file__).resolve().parent.parent
RECIPES = Path(training.__file__).parent / "recipes"
_TABLES: tuple[tuple[str, str, type[Any]], ...] = (
    ("(top level)", "Name, task and languages.", Recipe),
    ("[data]", "What to train on.", DataConfig),
    ("[[data.corpora]]", "One parallel corpus.", CorpusConfig),
    ("[data.filters]", "Which pairs are left out.", FilterConfig),
    ("[data.noise]", "What is done to some training sources.", NoiseConfig),
    ("[data.augmentation]", "What is done to both sides of some training pairs.", AugmentationConfig),
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
# Settings that the image makes, since folders, address and port inside a container are nobody's choice.
OF_THE_IMAGE = ("config", "bundles", "data", "host", "port")
# What uvicorn and OpenTelemetry read themselves; not OTEL_RESOURCE_ATTRIBUTES, which `docker` sets for itself.
OF_LIBRARIES = (
    "FORWARDED_ALLOW_IPS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
)
PAGES = ("docs/configuration.md", "docs/api.md", "docs/recipes.md", ".env.example", "deploy/docker/settings.env")
_BLOCK = re.compile(r"(^[^\n]*written by python -m docs\.reference: (\w+)[^\n]*\n).*?(^[^\n]*until here)", re.M | re.S)


def pages(root: Path = ROOT, names: Sequence[str] = PAGES) -> dict[str, str]:
    """Pages as they should be, by their paths below ``root``; raises KeyError for a block that nothing writes."""
    return {name: _BLOCK.sub(_written, (root / name).read_text(encoding="utf-8")) for name in names}


def _written(block: re.Match[str]) -> str:
    gap = "\n" if block[1].startswith("<!--") else ""  # Markdown wants a blank line around a table
    return f"{block[1]}{gap}" + "\n".join(_BLOCKS[block[2]]()) + f"\n{gap}{block[3]}"


def openapi_document() -> dict[str, Any]:
    """What a server with default settings says of itself, whatever the environment is."""
    return create_app(Settings.model_construct()).openapi()


def _routes() -> Iterator[str]:
    yield from ("| route | does | key |", "|---|---|---|")
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            text = " ".join(str(operation.get("description") or operation["summary"]).split("\n\n")[0].split())
            kinds = operation["security"]
            key = "" if not kinds else "where asked for" if {} in kinds else "admin" if len(kinds) == 1 else "needed"
            yield f"| `{method.upper()} {path}` | {_cell(text)} | {key} |"


def _errors() -> Iterator[str]:
    """Every status that some route answers, with an example; routes of dialects word theirs otherwise."""
    yield from ("| status | of routes as | meaning | example |", "|---|---|---|---|")
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for path, operations in openapi_document()["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                example = response.get("content", {}).get("application/json", {}).get("example", {})
                if not status.startswith("2") and example:
                    dialect = dialect_of(path)
                    fault = example["error"] if isinstance(example.get("error"), dict) else example
                    message = fault["error"] if dialect is None else fault["message"]
                    said = f"`{fault['code']}`: {message}" if "code" in fault else message
                    found.setdefault((dialect.name if dialect else "", status), (response["description"], said))
    for (name, status), (meaning, said) in sorted(found.items()):
        yield f"| {status} | {name} | {_cell(meaning)} | {_cell(said)} |"


def _objects() -> Iterator[str]:
    """Every object that a request or reply holds; those of forms are the same as those of JSON."""
    for name, schema in sorted(openapi_document()["components"]["schemas"].items()):
        if schema.get("properties") and not name.endswith(FORM):
            yield from (f"### {name}", "", " ".join(schema.get("description", "").split()), "")
            yield from ("| field | type | default | meaning |", "|---|---|---|---|")
            for field, about in schema["properties"].items():
                default = "required" if field in schema.get("required", ()) else _json(about.get("default"))
                meaning = _cell(about.get("description", ""))
                yield f"| `{field}` | {_cell(_schema_type(about))} | {default} | {meaning} |"
            yield ""


def _schema_type(schema: dict[str, Any]) -> str:
    """A value's type with its bounds, as JSON Schema names them, and links to objects."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_schema_type(kind) for kind in schema["anyOf"] if kind.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return " or ".join(map(_json, schema.get("enum") or [schema["const"]]))
    kind = str(schema.get("type", "anything"))
    inner = schema.get("items") or schema.get("additionalProperties")
    bounds = [
        f"{name} {value}" for name, value in schema.items() if re.fullmatch(r"(exclusive)?(max|min)\w+", name, re.I)
    ]
    return (
        kind
        + (f" of {_schema_type(inner)}" if isinstance(inner, dict) else "")
        + (f" ({', '.join(bounds)})" if bounds else "")
    )


def _json(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _settings() -> Iterator[str]:
    yield from ("| setting, key of the file | variable | flag | default | meaning |", "|---|---|---|---|---|")
    for name, field in Settings.model_fields.items():
        flag = "" if is_secret(name) else f"`{flag_of(name)}`"
        default = plain_default(field.default) or "none"
        yield f"| `{name}` | `{variable_of(name)}` | {flag} | `{default}` | {_cell(field.description or '')} |"


def _environment() -> Iterator[str]:
    """Every setting that a container takes, as a comment that can be uncommented."""
    for name, field in Settings.model_fields.items():
        if name not in OF_THE_IMAGE:
            meaning = f"{field.description} Secret." if is_secret(name) else field.description or ""
            yield ""
            yield from textwrap.wrap(meaning, 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
            yield f"#{variable_of(name)}={plain_default(field.default)}"
    yield ""


def _passed() -> list[str]:
    """Names of the variables that reach the service's container."""
    return [*(variable_of(name) for name in Settings.model_fields if name not in OF_THE_IMAGE), *OF_LIBRARIES]


def _keys() -> Iterator[str]:
    """Every key of a recipe, a table for each of its tables."""
    for title, text, config in _TABLES:
        yield from (f"## `{title}`", "", *([text, ""] if text else []))
        yield from ("| key | type | default | meaning |", "|---|---|---|---|")
        meanings = attribute_docs(config)
        for field in dataclasses.fields(config):
            kind = _type_name(typing.get_type_hints(config)[field.name])
            yield f"| `{field.name}` | {kind} | {_default(field)} | {meanings.get(field.name, '')} |"
        if config is not _TABLES[-1][2]:
            yield ""


def _recipes() -> Iterator[str]:
    yield "| recipe | task | architecture | published in | scores | printed size | our count |"
    yield "|---|---|---|---|---|--:|--:|"
    for path in sorted(RECIPES.rglob("*.toml")):
        recipe = load_recipe(path)
        numbers = {key: value for key, value in recipe.published.items() if isinstance(value, float)}
        scores = ", ".join(
            f"{_score_name(key)} {value}" + (f" ± {numbers[one]}" if (one := f"{key}_interval") in numbers else "")
            for key, value in numbers.items()
            if not key.endswith("_interval")
        )
        counted = f"{recipe.published['parameters']:,}" if "parameters" in recipe.published else ""
        sizes = (recipe.published.get("printed_parameters", ""), counted)
        task = f"{'+'.join(recipe.source_languages)} → {recipe.target_language}, {recipe.task}"
        cells = (task, recipe.architecture, recipe.published.get("table", ""), scores, *sizes)
        yield f"| `{path.relative_to(RECIPES).as_posix()}` | {' | '.join(cells)} |"


_BLOCKS: dict[str, Callable[[], Iterator[str] | list[str]]] = {
    "routes": _routes,
    "errors": _errors,
    "objects": _objects,
    "settings": _settings,
    "environment": _environment,
    "passed": _passed,
    "keys": _keys,
    "recipes": _recipes,
}


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


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
