"""The recipes that `tandem new` begins with: a model from scratch, or a bundle that goes on learning.

They are written from a template, ``recipe.toml.jinja``: files that people read and change.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tomlkit
import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tandem.extras.starter import sizes
from tandem.extras.starter.sizes import Amount, Schedule
from tandem.extras.starter.text import LONGEST, RATIO, Screened
from tandem.models.architectures.registry import ARCHITECTURES, FORMER
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.training.data.config import CorpusConfig
from tandem.training.data.corpus import file_names
from tandem.training.recipe import Recipe, recipe_from_mapping

ARCHITECTURE = "convs2s"
"""Learns most from few updates, and trains and decodes fastest (docs/results.md)."""
_KNOWN = (ARCHITECTURE, "dpn", "transformer")
UNSTATED = "not stated"
RATE, TUNING_RATE = 1e-3, 3e-4
TUNING_PASSES = 4
_SIZES = ("source_vocabularies", "target_vocabulary")
_DROPOUT, _BATCH = 0.1, 8_192  # of imported models, which say nothing of either
READ = 256
"""Tokens that a summarizer from scratch reads of a text."""
_COPIED = 0.1  # of a summarizer's items: spans of their texts are to be written
_SHORT = 12  # words of a mean sentence, below which longer lines are a thing to learn


@dataclass(frozen=True, slots=True)
class StarterRequest:
    """What to make of what, as `tandem new` is told it.

    Attributes:
        languages: of source and target.
        bundle: that is to go on learning; None for a model from scratch.
    """

    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the corpus, the recipe, the run and the bundle.")]
    source: Annotated[Path, typer.Option(help="Your texts, one segment a line (plain, .xz, .gz, .bz2; UTF-8).")]
    target: Annotated[Path | None, typer.Option(help="Their translations, line by line.", show_default=False)] = None
    corpora: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora")
    recipe: Annotated[Path | None, typer.Option(help="Recipe to write. [NAME.toml]")] = None
    task: Annotated[
        Literal["translate", "summarize"] | None,
        typer.Option(help="What --target holds. [summaries where both are of one language]", show_default=False),
    ] = None
    architecture: Annotated[str, typer.Option(help="convs2s, dpn or transformer, for a model from scratch.")] = (
        ARCHITECTURE
    )
    valid: Annotated[int | None, typer.Option(min=1, help="Pairs held out for validation. [by amount]")] = None
    test: Annotated[int | None, typer.Option(min=1, help="Pairs held out for the test. [by amount]")] = None
    updates: Annotated[int | None, typer.Option(min=1, help="Length of the training. [by amount]")] = None
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of what is held out, and of the training.")] = 1
    licence: Annotated[str, typer.Option(help="Of the text, for the bundle's manifest.")] = ""
    attribution: Annotated[str, typer.Option(help="Whom to name there.")] = ""
    force: Annotated[bool, typer.Option(help="Replace an earlier corpus and recipe of this name.")] = False
    languages: tuple[str, str] = ("", "")
    bundle: Bundle | None = None

    @property
    def texts(self) -> tuple[Path, Path]:
        """The two files. Raises ConfigError where the second one is not given."""
        if self.target is None:
            raise ConfigError("--target is needed, with the translations of --source")
        return self.source, self.target

    @property
    def summarizes(self) -> bool:
        """Whether a model from scratch is to summarize."""
        return (self.task or ("summarize" if self.languages[0] == self.languages[1] else "translate")) == "summarize"

    @property
    def recipe_file(self) -> Path:
        """The file to write."""
        return self.recipe or Path(f"{self.name}.toml")

    @property
    def corpus(self) -> CorpusConfig:
        """The own corpus, as a recipe names it."""
        source, target = (f"{self.name}/{{split}}.{ending}" for ending in file_names(self.languages))
        return CorpusConfig(self.name, (source,), target, self.licence or UNSTATED, self.attribution or UNSTATED)


@dataclass(frozen=True, slots=True)
class DraftRecipe:
    """A recipe as its file has it, as it is read, and how often it goes over the text."""

    text: str
    recipe: Recipe
    passes: float


def recipe_from_scratch(job: StarterRequest, amount: Amount, screened: Screened) -> DraftRecipe:
    """A recipe for a translator, or a summarizer, that learns from this text alone.

    Args:
        job: what is to be made.
        amount: of training text.
        screened: what the text is like.

    Raises:
        ConfigError: an architecture that no sizes are known for.
    """
    if job.architecture not in _KNOWN:
        raise ConfigError(f"architecture must be one of {', '.join(_KNOWN)}, but is {job.architecture!r}")
    tokens, wide = sizes.batch_tokens(amount), sizes.wide(amount)
    schedule = _schedule(job, amount, tokens, sizes.passes(amount), cooldown=0.3)
    return _draft(
        job,
        amount,
        schedule,
        start=None,
        task="summarize" if job.summarizes else "translate",
        metric="rouge" if job.summarizes else "loss",
        corpus=corpora_toml(job.corpus),
        architecture=job.architecture,
        licence=job.licence or job.corpus.licence,
        tokens=tokens,
        rate=RATE / 2 if wide else RATE,
        longest=LONGEST,
        short=amount.words < _SHORT and not job.summarizes,
        ratio=RATIO if screened.has_words and not job.summarizes else None,
        read=READ if job.summarizes else LONGEST,
        copied=_COPIED,
        vocabulary=sizes.vocabulary(amount),
        width=512 if wide else 256,
        dropout=sizes.dropout(schedule.passes),
    )


def recipe_from_bundle(job: StarterRequest, amount: Amount, bundle: Bundle) -> DraftRecipe:
    """A recipe with which a bundle goes on learning: its architecture, data and decoding keys, a lower rate.

    Raises:
        ConfigError: the bundle is not of one model that reads one text and writes text of these languages.
    """
    base = base_recipe(bundle, job)
    # A GPU may have trained it in batches that are larger than this text.
    manifest, tokens = bundle.manifest, min(base.training.batch_tokens, sizes.batch_tokens(amount))
    own = [corpus for corpus in base.data.corpora if corpus != job.corpus]
    old = [replace(corpus, splits=("train",), repeat=1, test_split="test") for corpus in own]
    config = {key: value for key, value in {**manifest.config, **base.model}.items() if key not in _SIZES}
    start = {
        "name": manifest.name,
        "bundle": str(bundle.path),
        "data": tomlkit.dumps({"data": _changed(replace(base.data, rewriting_from=0), "corpora")}),
        "corpora": corpora_toml(*old),
        "model": tomlkit.dumps({"model": config}),
        "training": base.training,
        "decoding": tomlkit.dumps({"decoding": _changed(manifest.decoding)}),
    }
    return _draft(
        job,
        amount,
        _schedule(job, amount, tokens, TUNING_PASSES, cooldown=0.5),
        start=start,
        task=base.task,
        # Summaries that say the same in other words have another loss; ROUGE is at least what they are scored by.
        metric="rouge" if base.task == "summarize" else base.training.metric,
        corpus=corpora_toml(replace(job.corpus, both_ways=base.data.tagged)),
        architecture=manifest.architecture,
        licence=" AND ".join(dict.fromkeys(one for one in (manifest.licence, job.licence) if one)),
        tokens=tokens,
        rate=TUNING_RATE,
    )


def base_recipe(bundle: Bundle, job: StarterRequest) -> Recipe:
    """The recipe that a bundle was made with; of an imported model, which has none, one that fits it.

    Raises:
        ConfigError: it cannot go on learning from one text and its translation in these languages.
    """
    manifest, name, languages = bundle.manifest, bundle.manifest.name, job.languages
    if manifest.architecture not in ARCHITECTURES or not ARCHITECTURES[manifest.architecture][1].trainable:
        raise ConfigError(f"{name} cannot be trained further: it is of the architecture {manifest.architecture!r}")
    if len(bundle.sources) != 1 or bundle.sources[0] is None or manifest.target_form != "text":
        raise ConfigError(f"{name} cannot learn from two files: it must read one text and write text")
    known = manifest.pairs or tuple((source, manifest.target_language) for source in manifest.source_languages)
    if languages not in known:
        listed = ", ".join(f"{source} to {target}" for source, target in known)
        raise ConfigError(f"{name} is from {listed}, but the text is from {languages[0]} to {languages[1]}")
    if not manifest.training.recipe:
        return _imported_recipe(bundle, job)
    recipe, former = manifest.training.recipe, FORMER.get(manifest.architecture)
    if former is not None:  # a manifest has every key that the model had when it was written
        own = {key: manifest.config.get(key, value) for key, value in former.keys.items()}
        recipe = recipe | {"model": own | recipe.get("model", {})}
    return recipe_from_mapping(recipe, f"the recipe of {name}")


def _imported_recipe(bundle: Bundle, job: StarterRequest) -> Recipe:
    """What an imported model could have been trained with, as far as its manifest tells.

    Raises:
        ConfigError: it has tags of its own for several targets, which training would not put before its sources.
    """
    manifest = bundle.manifest
    if manifest.pairs or manifest.decoding.prefix:
        raise ConfigError(f"{manifest.name} cannot learn from two files: its sources or targets begin with a tag")
    longest = min(LONGEST, manifest.limits.max_source_tokens, manifest.limits.max_target_tokens)
    mapping = {
        "name": job.name,
        "task": manifest.task,
        "source_languages": [job.languages[0]],
        "target_language": job.languages[1],
        "architecture": manifest.architecture,
        "data": {
            "max_source_tokens": longest,
            "max_target_tokens": longest,
            "truncate_source": manifest.task == "summarize",
            "corpora": [_changed(job.corpus)],
        },
        "model": {"dropout": _DROPOUT},
        "optimiser": {"learning_rate": TUNING_RATE},
        "training": {"batch_tokens": _BATCH},
        "decoding": {"max_length": longest - 1},
    }
    return recipe_from_mapping(mapping, f"a recipe for {manifest.name}")


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


def _schedule(job: StarterRequest, amount: Amount, tokens: int, passes: int, cooldown: float) -> Schedule:
    updates = job.updates or max(100, round(passes * amount.tokens / tokens / 100) * 100)
    return Schedule.of(amount, tokens, updates=updates, cooldown=cooldown)


def _draft(job: StarterRequest, amount: Amount, schedule: Schedule, **values: Any) -> DraftRecipe:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["toml"] = lambda text: tomlkit.item(text).as_string()
    template = templates.get_template("recipe.toml.jinja")
    text = template.render(job=job, amount=amount, schedule=schedule, **values).rstrip() + "\n"
    return DraftRecipe(text, recipe_from_mapping(tomllib.loads(text), job.corpus.name), schedule.passes)
