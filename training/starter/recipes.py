"""The recipes that `tandem new` begins with: a model from scratch, or a bundle that goes on learning.

They are written from a template, ``recipe.toml.jinja``: files that people read and change.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from models.bundle import Bundle
from models.errors import ConfigError
from models.registry import ARCHITECTURES
from training.data.config import CorpusConfig
from training.recipe import Recipe, recipe_from_mapping
from training.starter import sizes
from training.starter.sizes import Amount, Schedule
from training.starter.text import LONGEST, RATIO, Screened

ARCHITECTURE = "convs2s"
"""Learns most from few updates, and trains and decodes fastest (docs/results.md)."""
_KNOWN = (ARCHITECTURE, "dpn", "transformer")
RATE, TUNING_RATE = 1e-3, 3e-4
TUNING_PASSES = 4
_SHORT = 12  # words of a mean sentence, below which longer lines are a thing to learn


@dataclass(frozen=True, slots=True)
class RecipeRequest:
    """What a recipe is to be for.

    Attributes:
        corpus: the own corpus, as a recipe names it.
        languages: of source and target.
        updates: last update; None for what the amount of text suggests.
        architecture: for a model from scratch.
        licence: of the text, and so of the weights; empty where nothing is said of it.
        seed: of training.
    """

    corpus: CorpusConfig
    languages: tuple[str, str]
    updates: int | None = None
    architecture: str = ARCHITECTURE
    licence: str = ""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class DraftRecipe:
    """A recipe as its file has it, as it is read, and how often it goes over the text."""

    text: str
    recipe: Recipe
    passes: float


def recipe_from_scratch(wish: RecipeRequest, amount: Amount, screened: Screened) -> DraftRecipe:
    """A recipe for a translator that learns from this text alone.

    Args:
        wish: what it is for.
        amount: of training text.
        screened: what the text is like.

    Raises:
        ConfigError: an architecture that no sizes are known for.
    """
    if wish.architecture not in _KNOWN:
        raise ConfigError(f"architecture must be one of {', '.join(_KNOWN)}, but is {wish.architecture!r}")
    tokens, wide = sizes.batch_tokens(amount), sizes.wide(amount)
    schedule = _schedule(wish, amount, tokens, sizes.passes(amount), cooldown=0.3)
    return _draft(
        wish,
        amount,
        schedule,
        start=None,
        corpus=corpora_toml(wish.corpus),
        architecture=wish.architecture,
        licence=wish.licence or wish.corpus.licence,
        tokens=tokens,
        rate=RATE / 2 if wide else RATE,
        longest=LONGEST,
        short=amount.words < _SHORT,
        ratio=RATIO if screened.has_words else None,
        vocabulary=sizes.vocabulary(amount),
        width=512 if wide else 256,
        dropout=sizes.dropout(schedule.passes),
    )


def recipe_from_bundle(wish: RecipeRequest, amount: Amount, bundle: Bundle) -> DraftRecipe:
    """A recipe with which a bundle goes on learning: its architecture, data and decoding keys, a lower rate.

    Raises:
        ConfigError: the bundle is not of one model that reads one text and writes text of these languages, or says
            nothing of how it was trained.
    """
    base = base_recipe(bundle, wish.languages)
    manifest, tokens = bundle.manifest, base.training.batch_tokens
    sized = ("source_vocabularies", "target_vocabulary")
    old = [replace(corpus, splits=("train",), repeat=1, test_split="test") for corpus in base.data.corpora]
    start = {
        "name": manifest.name,
        "data": tomlkit.dumps({"data": _changed(replace(base.data, rewriting_from=0), "corpora")}),
        "corpora": corpora_toml(*old),
        "model": tomlkit.dumps({"model": {key: value for key, value in manifest.config.items() if key not in sized}}),
        "training": base.training,
        "decoding": tomlkit.dumps({"decoding": _changed(manifest.decoding)}),
    }
    return _draft(
        wish,
        amount,
        _schedule(wish, amount, tokens, TUNING_PASSES, cooldown=0.5),
        start=start,
        corpus=corpora_toml(replace(wish.corpus, both_ways=base.data.tagged)),
        architecture=manifest.architecture,
        licence=" AND ".join(dict.fromkeys(one for one in (manifest.licence, wish.licence) if one)),
        tokens=tokens,
        rate=TUNING_RATE,
    )


def base_recipe(bundle: Bundle, languages: tuple[str, str]) -> Recipe:
    """The recipe that a bundle was made with.

    Raises:
        ConfigError: it cannot go on learning from one text and its translation in these languages.
    """
    manifest, name = bundle.manifest, bundle.manifest.name
    if manifest.architecture not in ARCHITECTURES or not ARCHITECTURES[manifest.architecture][1].trainable:
        raise ConfigError(f"{name} cannot be trained further: it is of the architecture {manifest.architecture!r}")
    if len(bundle.sources) != 1 or bundle.sources[0] is None or manifest.target_form != "text":
        raise ConfigError(f"{name} cannot learn from two files: it must read one text and write text")
    known = manifest.pairs or tuple((source, manifest.target_language) for source in manifest.source_languages)
    if languages not in known:
        listed = ", ".join(f"{source} to {target}" for source, target in known)
        raise ConfigError(f"{name} is from {listed}, but the text is from {languages[0]} to {languages[1]}")
    if not manifest.training.recipe:
        raise ConfigError(f"{name} does not say what recipe it was trained with, so none can be made for more of it")
    return recipe_from_mapping(manifest.training.recipe, f"the recipe of {name}")


def corpora_toml(*corpora: CorpusConfig) -> str:
    """The tables ``[[data.corpora]]`` of a recipe, one below the other."""
    return "\n".join(f"[[data.corpora]]\n{tomlkit.dumps(_changed(corpus))}" for corpus in corpora)


def _changed(value: Any, *without: str) -> dict[str, Any]:
    """A configuration's plain form but for what is left at its default."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default and field.name not in without:
            found[field.name] = _changed(item) if dataclasses.is_dataclass(item) else item
    return found


def _schedule(wish: RecipeRequest, amount: Amount, tokens: int, passes: int, cooldown: float) -> Schedule:
    updates = wish.updates or max(100, round(passes * amount.tokens / tokens / 100) * 100)
    return Schedule.of(amount, tokens, updates=updates, cooldown=cooldown)


def _draft(wish: RecipeRequest, amount: Amount, schedule: Schedule, **values: Any) -> DraftRecipe:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["toml"] = lambda text: tomlkit.item(text).as_string()
    template = templates.get_template("recipe.toml.jinja")
    text = template.render(wish=wish, amount=amount, schedule=schedule, **values).rstrip() + "\n"
    return DraftRecipe(text, recipe_from_mapping(tomllib.loads(text), wish.corpus.name), schedule.passes)
