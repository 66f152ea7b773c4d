"""Recipes: one strict TOML file holds everything that makes a bundle.

A recipe names its task and languages and has the tables ``[data]``, ``[model]``, ``[optimiser]``, ``[training]`` and
``[decoding]``. Unknown keys are errors that list the known ones.

A recipe may start from another: ``base = "dpn.toml"``, a path relative to the recipe, takes over every key that the
recipe does not have itself. Tables are merged key by key, lists are replaced whole; but a corpus takes over the keys of
the base's corpus of its name. Two tables stay behind where they
would say something false: ``[published]``, since a score belongs to one recipe, and ``[model]`` where the recipe names
another architecture. A base may have a base. What is kept in checkpoints and bundles is the merged recipe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tandem.models.architectures.protocol import ModelConfig, feature_widths, max_positions
from tandem.models.architectures.registry import load_config
from tandem.models.bundle.manifest import check_name
from tandem.models.config import bounded, load_dataclass, merged, to_mapping
from tandem.models.errors import ConfigError
from tandem.models.search.options import SearchOptions
from tandem.training.data.config import FEATURES, NO_LANGUAGE, DataConfig
from tandem.training.data.directions import translated_pairs
from tandem.training.data.summary import PreparedSummary
from tandem.training.experiment import with_settings
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.optimisation.precision import AskedPrecision


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How long and with what numbers a model trains.

    Attributes:
        updates: last update.
        batch_tokens: padded source plus target symbols of a batch, at most twice this.
        batch_sentences: most pairs of a batch, for batches that are counted in sentences; 0 = as many as fit.
        accumulate: batches whose gradients make one update, over all processes that train together.
        selection: vocabulary selection: the output layer of an update has, for every source word of its batch, so
            many targets that it is aligned to, its copy, the ``selection_common`` most frequent targets and the batch's
            own. 0 = the whole vocabulary. Validation always has the whole.
        selection_common: most frequent targets that every selection has.
        label_smoothing: probability mass spread over the vocabulary.
        precision: "float32", or "bf16" or "fp16" for narrow products with float32 master weights; "auto" is "float32"
            or "bf16", whose products are faster where a run is started. "fp16" scales the loss so that small gradients
            survive, for GPUs without bfloat16. "tf32" is float32 whose factors a GPU may shorten to 10 bits behind the
            point; "float32" never does.
        max_skipped: updates in a row that may be skipped since their gradient is not finite; one more ends training
            with an error.
        recompute: keep only what goes into each layer and compute the rest again in the backward pass (gradient
            checkpointing): less memory, about a third more time, the same weights.
        compile: compile the model with torch.compile, once for all sizes of batches, which takes a minute at the
            start. For GPUs: a CPU gains nothing. Not for models that go position by position, nor with ``recompute``.
        deterministic: have torch use only algorithms that give the same result every time. A CPU does so anyway.
        seed: of initialisation, batches and dropout.
        validate_every: updates between validations.
        validation_sentences: sentences decoded for the validation metric (0 = validate by loss only).
        metric: what decides which checkpoint is best: "loss", "bleu", "chrf" or "rouge".
        patience: validations without improvement after which training stops (0 = never).
        save_every: updates between checkpoints.
        keep: checkpoints kept, the best one not counted.
        average: newest checkpoints averaged into the exported weights (1 = the newest alone).
        ema_decay: decay of the exponential moving average of the weights, updated after every update, which is then
            what is validated and exported; 0 = none. After n updates it is at most (1 + n) / (10 + n), so that
            early weights are soon forgotten. Needs average = 1, since one average of the weights is enough.
        start_share: share of the weights that the run began from (``start``) in those that are exported: what that
            bundle knew then suffers less from text of another kind. (Wortsman et al. 2022, "Robust fine-tuning of
            zero-shot models", equation 1, with alpha = 1 - start_share.)
        freeze: parts of the model that stay as they are: names of parts or parameters, such as "encoder" or
            "*embedding*". For fine-tuning.
        adapter_rank: rank of what is learnt beside every linear map, all else staying as it is; 0 = the weights
            themselves are trained. For fine-tuning, with less memory and less to forget, usually at a higher rate.
            (Hu et al. 2022, "LoRA"; folded into the weights at export.)
        adapter_alpha: what is learnt there is multiplied by this over the rank.
        log_every: updates between log lines.
    """

    updates: int = bounded(10_000, at_least=1)
    batch_tokens: int = bounded(3500, at_least=1)
    batch_sentences: int = bounded(0, at_least=0)
    accumulate: int = bounded(1, at_least=1)
    selection: int = bounded(0, at_least=0)
    selection_common: int = bounded(2000, at_least=0)
    label_smoothing: float = bounded(0.1, at_least=0.0, at_most=0.9)
    precision: AskedPrecision = "auto"
    max_skipped: int = bounded(25, at_least=0)
    recompute: bool = False
    compile: bool = False
    deterministic: bool = False
    seed: int = bounded(1, at_least=0, at_most=2**32 - 1)  # sentencepiece's has 32 bits
    validate_every: int = bounded(1000, at_least=1)
    validation_sentences: int = bounded(500, at_least=0)
    metric: Literal["loss", "bleu", "chrf", "rouge"] = "loss"
    patience: int = bounded(0, at_least=0)
    save_every: int = bounded(500, at_least=1)
    keep: int = bounded(5, at_least=1)
    average: int = bounded(1, at_least=1)
    ema_decay: float = bounded(0.0, at_least=0.0, at_most=0.999999)
    start_share: float = bounded(0.0, at_least=0.0, at_most=1.0)
    freeze: tuple[str, ...] = ()
    adapter_rank: int = bounded(0, at_least=0)
    adapter_alpha: float = bounded(16.0, at_least=0.001)
    log_every: int = bounded(50, at_least=1)

    def __post_init__(self) -> None:
        if self.average > self.keep:
            raise ConfigError(f"average must be at most keep ({self.keep}), but is {self.average}")
        if self.ema_decay and self.average > 1:
            raise ConfigError(
                f"average must be 1 where ema_decay is above 0, but is {self.average}: choose one of them"
            )
        if self.compile and self.recompute:
            raise ConfigError(
                "compile and recompute cannot both be true: what is compiled decides by itself what to keep"
            )
        if self.metric != "loss" and not self.validation_sentences:
            raise ConfigError(f"metric = {self.metric!r} needs validation_sentences of at least 1, but it is 0")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A whole recipe.

    Attributes:
        name: of the run and of the bundle.
        task: "translate", "summarize" or "postedit".
        source_languages: language code of each source.
        target_language: language code of the target.
        licence: under which a bundle's weights may be used.
        about: what the model is for and where it fails, for its card; Markdown.
        start: folder of the bundle whose vocabularies `tandem prepare` uses and whose weights `tandem train` begins
            from; empty = vocabularies of its own and random weights.
        data: corpora, filters, vocabulary.
        architecture: a name of the registry.
        model: the architecture's own keys.
        optimiser: optimiser and schedule.
        training: length, batches, validation, checkpoints.
        decoding: the bundle's decoding defaults.
        published: scores the paper prints, for recipes of a paper's table row.
    """

    name: str
    task: Literal["translate", "summarize", "postedit"]
    source_languages: tuple[str, ...]
    target_language: str
    data: DataConfig
    architecture: str
    licence: str = ""
    about: str = ""
    start: str = ""
    model: dict[str, Any] = field(default_factory=dict)
    optimiser: OptimiserConfig = OptimiserConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: SearchOptions = SearchOptions()
    published: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)
        metrics = ("loss", "rouge") if self.task == "summarize" else ("loss", "bleu", "chrf")
        if self.training.metric not in metrics:
            raise ConfigError(
                f"training metric must be one of {', '.join(metrics)} for the task {self.task!r},"
                f" but is {self.training.metric!r}"
            )

        if self.data.target_form == "edits":
            self._check_edits()
        if self.data.tagged and self.task != "translate":
            raise ConfigError(f"data tagged = true needs the task 'translate', but it is {self.task!r}")
        translated_pairs(self.data, self.languages)

    @property
    def languages(self) -> tuple[str, ...]:
        """Of each source in order, and of the target."""
        return (*self.source_languages, self.target_language)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """As a bundle's manifest has them: every direction, those into the target language first; none without tags."""
        pairs = translated_pairs(self.data, self.languages)
        return tuple(sorted(pairs, key=lambda pair: pair[1] != self.target_language))

    def _check_edits(self) -> None:
        if self.task != "postedit":
            raise ConfigError(f"data target_form = 'edits' needs the task 'postedit', but it is {self.task!r}")
        for name in ("no_repeat_ngram_size", "max_rounds"):
            if value := getattr(self.decoding, name):
                raise ConfigError(f"decoding {name} must be 0 for edits, most of which are equal, but is {value}")

    def model_config(self, source_vocabularies: tuple[int, ...] = (), target_vocabulary: int = 0) -> ModelConfig:
        """The architecture's configuration, with the vocabulary sizes of the prepared data where the recipe has none.

        Raises:
            ConfigError: a key is unknown or out of bounds, or the recipe's sizes contradict the data's.
        """
        keys = dict(self.model)
        for key, size in (("source_vocabularies", list(source_vocabularies)), ("target_vocabulary", target_vocabulary)):
            if keys.get(key) in (0, [0] * len(source_vocabularies)):
                del keys[key]
            if size and keys.setdefault(key, size) != size:
                raise ConfigError(f"{self.name} [model] {key} is {keys[key]}, but the prepared data has {size}")
        return load_config(self.architecture, keys, f"{self.name} [model]")

    def prepared_config(self, summary: PreparedSummary) -> ModelConfig:
        """The architecture's configuration for prepared data.

        Raises:
            ConfigError: as :meth:`model_config`, the data's sources have other features than the model reads, or its
                vocabulary lacks tokens that decoding names.
        """
        *sources, target = summary.vocabularies.values()
        config = self.model_config(tuple(sources), target)
        found, expected = summary.feature_widths, feature_widths(config)
        if found != expected:
            raise ConfigError(
                f"{self.name} [model] reads sources with the feature widths {list(expected)} (0 for text), but the"
                f" prepared data has {list(found)}"
            )
        if beyond := self.decoding.beyond(target):
            raise ConfigError(f"{self.name} [decoding] must name token ids below {target}, but names {beyond}")
        return config

    def vocabulary_sizes(self) -> tuple[tuple[int, ...], int]:
        """Each source's types and the target's: the paper's where they are published, else what preparation aims at.

        Sources of feature vectors have none.
        """
        vocabulary = self.data.vocabulary
        source = self.published.get("source_vocabulary", vocabulary.size)
        target = self.published.get("target_vocabulary", vocabulary.target_size or vocabulary.size)
        return tuple(0 if matrix else source for matrix in self.data.feature_sources), target


def load_recipe(path: Path, settings: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe, merged with its bases, with fields set as ``--set`` has them.

    Raises:
        ConfigError: the file or a base is missing, is not TOML, or the bases form a circle; or a key is unknown,
            missing, ill-typed or out of bounds.
    """
    return set_recipe(merged_mapping(path), settings, str(path))


def set_recipe(mapping: Mapping[str, Any], settings: Sequence[str], where: str) -> Recipe:
    """A recipe from its parsed form, with fields set as ``--set`` has them; messages name them too."""
    named = f" ({' '.join(f'--set {setting}' for setting in settings)})" if settings else ""
    return recipe_from_mapping(with_settings(mapping, settings), f"{where}{named}")


def merged_mapping(path: Path) -> dict[str, Any]:
    """The parsed form of a recipe file and its bases, not yet checked.

    Raises:
        ConfigError: the file or a base is missing or is not TOML, or the bases form a circle.
    """
    chain = [path]
    mapping = _parse(path, "")
    while (base := mapping.pop("base", None)) is not None:
        child = chain[-1]
        if not isinstance(base, str) or not base or "\0" in base:
            raise ConfigError(f"{child}: base must be the path of a recipe, but is {base!r}")
        chain.append(child.parent / base)
        if chain[-1].resolve() in [recipe.resolve() for recipe in chain[:-1]]:
            raise ConfigError(f"the bases form a circle: {' -> '.join(map(str, chain))}")
        mapping = _merge_recipes(_parse(chain[-1], f"{child}: base: "), mapping)
    return mapping


def _parse(path: Path, asked: str) -> dict[str, Any]:
    """One file; ``asked`` says in messages who needs it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{asked}{path}: cannot read the recipe: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{asked}{path}: not valid TOML: it must be UTF-8 ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{asked}{path}: not valid TOML: {error}") from error


def _merge_recipes(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    base.pop("published", None)
    if own.get("architecture", base.get("architecture")) != base.get("architecture"):
        base.pop("model", None)
    named = _named_corpora(base)
    for name, corpus in _named_corpora(own).items():
        corpus.update(merged(named.get(name, {}), corpus))
    return merged(base, own)


def _named_corpora(recipe: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The corpora by name; what is no table or no list is left for the check to refuse."""
    data = recipe.get("data")
    corpora = data.get("corpora") if isinstance(data, dict) else None
    tables = [corpus for corpus in corpora if isinstance(corpus, dict)] if isinstance(corpora, list) else []
    return {str(corpus.get("name")): corpus for corpus in tables}


def recipe_from_mapping(mapping: Mapping[str, Any], where: str) -> Recipe:
    """A recipe from its parsed form, as bundles and checkpoints keep it."""
    recipe = load_dataclass(Recipe, _without_r_drop(mapping), where)
    if len(recipe.source_languages) != len(recipe.data.corpora[0].source):
        raise ConfigError(f"{where} source_languages must name one language per source of the corpora")
    config = recipe.model_config()
    _check_features(recipe, config, where)
    # Not every architecture has positions. Decoding reads BOS on top of what it produces.
    positions = max_positions(config)
    needed = {
        "data max_source_tokens": recipe.data.max_source_tokens,
        "data max_target_tokens": recipe.data.max_target_tokens,
        "decoding max_length": recipe.decoding.max_length + 1,
    }
    faults = [f"{key} needs {count}" for key, count in needed.items() if positions and count > positions]
    if faults:
        raise ConfigError(
            f"{where}: the model has max_positions = {positions}, but {', '.join(faults)}: set these to fit (lengths"
            " that a recipe does not name are 256), or raise max_positions"
        )
    return recipe


def _without_r_drop(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was written while R-Drop could be asked for, and was not, says so with a key of its own."""
    training = mapping.get("training")
    if not isinstance(training, Mapping) or training.get("r_drop") != 0:
        return mapping
    return {**mapping, "training": {key: value for key, value in training.items() if key != "r_drop"}}


def _check_features(recipe: Recipe, config: ModelConfig, where: str) -> None:
    """Data, model and languages must agree on which sources are feature vectors."""
    files, widths = recipe.data.feature_sources, feature_widths(config)
    if (any(files) or any(widths)) and files != tuple(map(bool, widths)):
        raise ConfigError(
            f"{where}: [model] features must give a width for every source whose path ends in {FEATURES}, and 0 for the"
            f" others, but the sources are {list(recipe.data.corpora[0].source)} and the widths {list(widths)}"
        )
    for language, matrix in zip(recipe.source_languages, files, strict=True):
        if matrix and language != NO_LANGUAGE:
            raise ConfigError(f"{where}: the language of feature vectors is {NO_LANGUAGE!r}, but is {language!r}")


def recipe_mapping(recipe: Recipe) -> dict[str, Any]:
    """The plain form of a recipe: :func:`recipe_from_mapping` reads it back."""
    mapping = to_mapping(recipe)
    return {key: value for key, value in mapping.items() if value not in ({}, "")}
