"""Recipes: every fault is named with its place, and every shipped recipe loads."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

import training
from models.config import to_mapping
from models.errors import ConfigError
from models.registry import build_model
from training.data.config import DataConfig
from training.optim import OptimiserConfig
from training.recipe import (
    Recipe,
    TrainingConfig,
    load_recipe,
    recipe_from_mapping,
    recipe_mapping,
    with_updates,
)

RECIPES = Path(training.__file__).parent / "recipes"
TEXT = """
name = "r"
task = "translate"
source_languages = ["de"]
target_language = "en"
architecture = "dpn"

[[data.corpora]]
name = "c"
source = ["c/{split}.de"]
target = "c/{split}.en"
licence = "CC0"
attribution = "nobody"

[model]
width = 32
"""


def load(tmp_path: Path, text: str) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    message = str(raised.value)
    return message.replace(str(tmp_path / "r.toml"), "r.toml")


def test_defaults(tmp_path: Path) -> None:
    recipe = load(tmp_path, TEXT)
    assert recipe.training == TrainingConfig()
    assert recipe.optimiser == OptimiserConfig()
    assert recipe.data.corpora[0].source == ("c/{split}.de",)
    assert recipe.licence == ""


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.toml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_recipe(path: Path) -> None:
    """It loads, builds, survives a checkpoint's JSON, and its limits fit the model's positions and one another."""
    recipe = load_recipe(path)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    size = recipe.data.vocabulary.size
    config = recipe.model_config(tuple(size for _ in recipe.source_languages), size)
    with torch.device("meta"):
        assert sum(build_model(recipe.architecture, config).parameter_parts().values()) > 0
    positions = to_mapping(config).get("max_positions", math.inf)
    assert positions >= max(
        recipe.data.max_source_tokens, recipe.data.max_target_tokens, recipe.decoding.max_length + 1
    )
    assert 2 * recipe.training.batch_tokens >= recipe.data.max_source_tokens + recipe.data.max_target_tokens
    assert all(corpus.licence and corpus.attribution for corpus in recipe.data.corpora)
    assert recipe.licence


@pytest.mark.parametrize(
    ("name", "bleu", "parameters"),
    [("dpn", 31.99, 11_587_567), ("san-wide", 31.29, 27_068_904), ("san-deep", 31.43, 13_542_888)],
)
def test_rows_of_the_papers_table(name: str, bleu: float, parameters: int) -> None:
    """Song et al. 2018, table 1: the published size at the published dictionaries, and the training that is told."""
    recipe = load_recipe(RECIPES / "iwslt14-de-en" / f"{name}.toml")
    published = recipe.published
    config = recipe.model_config((published["source_vocabulary"],), published["target_vocabulary"])
    torch.manual_seed(0)
    model = build_model(recipe.architecture, config)
    model.prepare_for_inference()
    assert sum(model.parameter_parts().values()) == published["parameters"] == parameters
    assert published["bleu"] == bleu
    assert recipe.optimiser == OptimiserConfig(
        "nag", 0.25, "plateau", warmup=0, decay=10.0, stop_below=1e-4, momentum=0.99, clip_norm=0.1
    )
    assert recipe.training.label_smoothing == 0.1
    assert recipe.training.metric == "loss"
    assert recipe.training.batch_tokens * 2 == 4000
    assert to_mapping(config)["dropout"] == 0.1
    assert recipe.decoding.beam_size == 5
    assert (recipe.data.vocabulary.joint, recipe.data.vocabulary.size) == (True, 10_000)
    assert recipe.data.corpora[0].paths("valid") == ("iwslt14-de-en/valid.de", "iwslt14-de-en/valid.en")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam = 1" + TEXT, "r.toml has no key 'nam': did you mean 'name'? known keys are architecture, data, decoding"),
        (
            TEXT + "[training]\nupdate = 3",
            "r.toml training has no key 'update': did you mean 'updates'? known keys are ",
        ),
        (TEXT + "[optimiser]\nlr = 3", "r.toml optimiser has no key 'lr': known keys are beta1, beta2, clip_norm"),
        (TEXT + "[decoding]\nbeam = 3", "r.toml decoding has no key 'beam': did you mean 'beam_size'? known keys are "),
        (TEXT + "[data.filters]\nx = 3", "r.toml data filters has no key 'x': known keys are deduplicate"),
        (TEXT + "depth = 3", "r [model] has no key 'depth': "),
        (
            TEXT + "max_positions = 64\n[data]\nmax_target_tokens = 64\n[decoding]\nmax_length = 64",
            "r.toml: the model has max_positions = 64, but data max_source_tokens needs 256, decoding max_length",
        ),
        (TEXT + "heads = 5", "r [model]: heads must divide width, but 32 is not a multiple of 5"),
        (TEXT.replace("dpn", "rnn"), "r [model]: unknown architecture 'rnn': known are dpn"),
        (TEXT.replace("translate", "speak"), "r.toml task must be one of 'translate', 'summarize', 'postedit'"),
        (TEXT.replace('["de"]', '["de", "fr"]'), "r.toml source_languages must name one language per source"),
        (TEXT.replace('name = "r"\n', ""), "r.toml lacks the key 'name'"),
        (TEXT + "[training]\nupdates = 'x'", "r.toml training updates must be of type int, but is 'x'"),
        (TEXT + "[training]\nkeep = 2\naverage = 3", "r.toml training: average must be at most keep (2), but is 3"),
        (
            TEXT + "[training]\nmetric = 'bleu'\nvalidation_sentences = 0",
            "r.toml training: metric = 'bleu' needs valid",
        ),
        (
            TEXT + "[training]\nmetric = 'rouge'",
            "r.toml: training metric must be one of loss, bleu for the task 'trans",
        ),
        (TEXT + "[decoding]\nbeam_size = 0", "r.toml decoding: beam_size must be a whole number, at least 1, but is 0"),
        (TEXT + "[model]\nx = 1", "r.toml: not valid TOML: Cannot declare ('model',) twice (at line 17, column 7)"),
        ("a = 1\n\nb ==", "r.toml: not valid TOML: Invalid value (at line 3, column 4)"),
    ],
)
def test_each_fault_is_named(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, TEXT + "[training]\nupdates = 0\nkeep = 0\nsed = 1\n[optimiser]\nname = 'sgd'")
    assert len(message.split("; ")) == 4


BOUNDS = [
    (table, field.name, bound, field.metadata[bound])
    for table, config in (("training", TrainingConfig), ("optimiser", OptimiserConfig))
    for field in dataclasses.fields(config)
    for bound in ("at_least", "at_most")
    if field.metadata.get(bound) is not None
]


@pytest.mark.parametrize(("table", "key", "bound", "value"), BOUNDS, ids=lambda value: str(value))
def test_every_bound_is_held(tmp_path: Path, table: str, key: str, bound: str, value: float) -> None:
    beyond = value - 1 if bound == "at_least" else value + 0.5
    message = refused(tmp_path, TEXT + f"[{table}]\n{key} = {beyond}")
    assert message == f"r.toml {table} {key} must be {bound.replace('_', ' ')} {value}, but is {beyond}"
    if isinstance(value, float):
        assert "but is nan" in refused(tmp_path, TEXT + f"[{table}]\n{key} = nan")


def test_every_number_is_bounded() -> None:
    for config in (TrainingConfig, OptimiserConfig):
        for field in dataclasses.fields(config):
            if field.type in ("int", "float") and field.name != "seed":
                assert field.metadata.get("at_least") is not None, field.name


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: cannot read the recipe: No such file"):
        load_recipe(tmp_path / "no.toml")
    path = tmp_path / "binary.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"binary\.toml: not valid TOML: it must be UTF-8"):
        load_recipe(path)


@pytest.mark.parametrize("sizes", ["", "source_vocabularies = [0]\ntarget_vocabulary = 0", "target_vocabulary = 90"])
def test_vocabulary_sizes_come_from_the_data(tmp_path: Path, sizes: str) -> None:
    recipe = load(tmp_path, TEXT + sizes)
    config: Any = recipe.model_config((80,), 90)
    assert (config.source_vocabularies, config.target_vocabulary) == ((80,), 90)


def test_vocabulary_sizes_that_contradict_the_data_are_refused(tmp_path: Path) -> None:
    recipe = load(tmp_path, TEXT + "source_vocabularies = [70]\ntarget_vocabulary = 90")
    with pytest.raises(
        ConfigError, match=r"r \[model\] source_vocabularies is \[70\], but the prepared data has \[80\]"
    ):
        recipe.model_config((80,), 90)
    with pytest.raises(ConfigError, match=r"r \[model\] target_vocabulary is 90, but the prepared data has 91"):
        recipe.model_config((70,), 91)


def test_a_recipe_survives_a_checkpoint(tmp_path: Path) -> None:
    text = TEXT + "[decoding]\nmax_length_ratio = 2\nsuppressed = [5]\n[published]\nbleu = 3.5\nrow = [1, 2]"
    recipe = load(tmp_path, text)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    assert recipe_mapping(recipe)["data"]["corpora"][0]["splits"] == ["train", "valid", "test"]


def test_with_updates_changes_nothing_else(tmp_path: Path) -> None:
    recipe = load(tmp_path, TEXT)
    longer = with_updates(recipe, 77)
    assert longer.training.updates == 77
    assert with_updates(longer, recipe.training.updates) == recipe


def test_the_readable_form_is_toml(tmp_path: Path) -> None:
    """What the tests load is what people write."""
    assert tomllib.loads(TEXT)["model"] == {"width": 32}
    assert isinstance(load(tmp_path, TEXT).data, DataConfig)
