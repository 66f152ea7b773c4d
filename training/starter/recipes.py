"""The recipes that `tandem new` begins with: a model from scratch, or a bundle that goes on learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.bundle import Bundle
from models.errors import ConfigError
from models.registry import ARCHITECTURES, FORMER
from models.search import SearchOptions
from training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from training.optim import OptimiserConfig
from training.recipe import Recipe, TrainingConfig, recipe_from_mapping
from training.starter import sizes
from training.starter.sizes import Amount, Schedule
from training.starter.text import LONGEST, RATIO, Screened
from training.starter.toml import Remarks, corpora_toml

ARCHITECTURE = "convs2s"
"""Learns most from few updates, and trains and decodes fastest (docs/results.md)."""
RATE, TUNING_RATE = 1e-3, 3e-4
TUNING_PASSES = 4
_SHORT = 12  # words of a mean sentence, below which longer lines are a thing to learn
_SUPPRESSED = (0, 1, 2)  # padding, unknown, start: never written


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
    """A recipe, what to remark on it, and how long it trains."""

    recipe: Recipe
    remarks: Remarks
    schedule: Schedule


def recipe_from_scratch(wish: RecipeRequest, amount: Amount, screened: Screened) -> DraftRecipe:
    """A recipe for a translator that learns from this text alone.

    Args:
        wish: what it is for.
        amount: of training text.
        screened: what the text is like.
    """
    tokens = sizes.batch_tokens(amount)
    updates = wish.updates or max(100, round(sizes.passes(amount) * amount.tokens / tokens / 100) * 100)
    schedule = Schedule.of(amount, tokens, updates=updates, cooldown=0.3)
    short = amount.words < _SHORT
    rate = RATE / 2 if sizes.wide(amount) else RATE
    recipe = Recipe(
        name=wish.corpus.name,
        task="translate",
        source_languages=wish.languages[:1],
        target_language=wish.languages[1],
        architecture=wish.architecture,
        licence=wish.licence or wish.corpus.licence,
        data=DataConfig(
            (wish.corpus,),
            filters=FilterConfig(max_length_ratio=RATIO if screened.has_words else None),
            vocabulary=VocabularyConfig(size=sizes.vocabulary(amount)),
            join_share=0.08 if short else 0.0,
            join_most=8 if short else 4,
        ),
        model=model_keys(wish.architecture, amount, sizes.dropout(schedule.passes)),
        optimiser=_optimiser(rate, schedule),
        training=_training(schedule, tokens, wish.seed),
        decoding=SearchOptions(max_length=LONGEST - 1, max_length_ratio=2.5, max_rounds=2, suppressed=_SUPPRESSED),
    )
    return DraftRecipe(recipe, {**_SCRATCH_REMARKS, **_remarks(amount, schedule, short=short)}, schedule)


def recipe_from_bundle(wish: RecipeRequest, amount: Amount, bundle: Bundle) -> DraftRecipe:
    """A recipe with which a bundle goes on learning: its architecture, data and decoding keys, a lower rate.

    Raises:
        ConfigError: the bundle is not of one model that reads one text and writes text of these languages, or says
            nothing of how it was trained.
    """
    base = base_recipe(bundle, wish.languages)
    manifest, tokens = bundle.manifest, base.training.batch_tokens
    updates = wish.updates or max(100, round(TUNING_PASSES * amount.tokens / tokens / 100) * 100)
    schedule = Schedule.of(amount, tokens, updates=updates, cooldown=0.5)
    sized = ("source_vocabularies", "target_vocabulary")
    recipe = replace(
        base,
        name=wish.corpus.name,
        source_languages=wish.languages[:1],
        target_language=wish.languages[1],
        architecture=manifest.architecture,
        licence=" AND ".join(dict.fromkeys(one for one in (manifest.licence, wish.licence) if one)),
        data=replace(base.data, corpora=(replace(wish.corpus, both_ways=base.data.tagged),), rewriting_from=0),
        model={key: value for key, value in manifest.config.items() if key not in sized},
        optimiser=_optimiser(TUNING_RATE, schedule),
        training=replace(
            _training(schedule, tokens, wish.seed),
            label_smoothing=base.training.label_smoothing,
            precision=base.training.precision,
        ),
        decoding=manifest.decoding,
        published={},
    )
    return DraftRecipe(recipe, {**_TUNING_REMARKS, **_remarks(amount, schedule), **_old_corpora(base)}, schedule)


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
    recipe, former = manifest.training.recipe, FORMER.get(manifest.architecture)
    if former is not None:  # a manifest has every key that the model had when it was written
        own = {key: manifest.config.get(key, value) for key, value in former.keys.items()}
        recipe = recipe | {"model": own | recipe.get("model", {})}
    return recipe_from_mapping(recipe, f"the recipe of {name}")


def model_keys(architecture: str, amount: Amount, dropout: float) -> dict[str, Any]:
    """The ``[model]`` table of a model of a size that suits the text.

    Raises:
        ConfigError: an architecture that no sizes are known for.
    """
    width = 512 if sizes.wide(amount) else 256
    positions = 2 * LONGEST
    heads = {"width": width, "hidden": 4 * width, "heads": width // 64}
    own: dict[str, dict[str, Any]] = {
        "convs2s": {
            "embedding": width,
            "output_embedding": width,
            "encoder_widths": [width] * 4,
            "encoder_kernels": [3] * 4,
            "decoder_widths": [width] * 3,
            "decoder_kernels": [3] * 3,
        },
        "dpn": {**heads, "cnn_layers": 4, "san_layers": 2},
        "transformer": {**heads, "encoder_layers": 4, "decoder_layers": 4, "tied": "all"},
    }
    if architecture not in own:
        raise ConfigError(f"architecture must be one of {', '.join(own)}, but is {architecture!r}")
    return {**own[architecture], "max_positions": positions, "dropout": dropout}


def _optimiser(rate: float, schedule: Schedule) -> OptimiserConfig:
    """Adam whose rate rises, stays and falls to zero: good for any length, so that the length may be changed."""
    return OptimiserConfig(learning_rate=rate, schedule="constant", warmup=schedule.warmup, cooldown=schedule.cooldown)


def _training(schedule: Schedule, tokens: int, seed: int) -> TrainingConfig:
    return TrainingConfig(
        updates=schedule.updates,
        batch_tokens=tokens,
        seed=seed,
        validate_every=schedule.every,
        validation_sentences=200,
        save_every=schedule.every,
        keep=3,
    )


def _remarks(amount: Amount, schedule: Schedule, *, short: bool = False) -> dict[str, str]:
    found = {
        "data.corpora": f"{amount.pairs:,} training pairs, about {amount.tokens:,} tokens a side.",
        "training.updates": f"About {schedule.passes:.1f} passes over the text.",
    }
    if short:
        found["data.join_share"] = (
            f"Sentences have {amount.words:.1f} words on average: some items are several in a row, so that longer lines"
            " are translated whole."
        )
    return found


def _old_corpora(base: Recipe) -> Mapping[str, str]:
    """The corpora that the bundle was trained on, to be mixed in."""
    corpora = [replace(corpus, splits=("train",), repeat=1, test_split="test") for corpus in base.data.corpora]
    intro = (
        "A model forgets what it no longer sees. Where the text that the bundle was trained on is at hand, mix it in\n"
        "(`repeat` of the own corpus says how much more often its pairs are seen):\n"
    )
    return {"data.corpora+": f"{intro}\n{corpora_toml(corpora)}"}


_SCRATCH_REMARKS = {
    "data.max_source_tokens": "Longer pairs are left out.",
    "data.max_target_tokens": "",
    "data.filters.max_length_ratio": "Pairs whose longer side has more than so many times the words are left out.",
    "data.vocabulary.size": "Of both sides together: 7 times the root of the number of tokens, about.",
    "model.dropout": "Against learning by heart: 0.1, from 8 passes over the text on 0.2, from 16 on 0.3.",
    "optimiser.learning_rate": "Lower it where training diverges, raise it a little with larger batches.",
    "optimiser.warmup": "",
    "optimiser.cooldown": "The last updates, in which the rate falls to zero and the model settles.",
    "training.batch_tokens": "Target tokens of an update, about. A GPU has room for 10,000 and more.",
    "training.validate_every": "",
    "decoding.max_rounds": "The same words at most so often in a row, unless the source has them more often.",
}
_TUNING_REMARKS = {
    "data.vocabulary": "Only said for the record: `tandem prepare --from` takes the bundle's vocabularies.",
    "model": "The bundle's, since its weights go in here; dropout may be changed.",
    "optimiser.learning_rate": "A third of what models start with: higher learns the own text faster and forgets more.",
    "optimiser.warmup": "",
    "optimiser.cooldown": "The last updates, in which the rate falls to zero and the model settles.",
    "training.batch_tokens": "",
    "training.validate_every": "",
}
