"""The shipped recipes: all load and build, and those of the papers say what the papers say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import training
from models.config import to_mapping
from models.protocol import ModelConfig
from models.registry import build_model
from training.corpora.table import CORPORA
from training.data.config import CorpusConfig, VocabularyConfig
from training.optim import OptimiserConfig
from training.recipe import load_recipe, merged_mapping, recipe_from_mapping, recipe_mapping

RECIPES = Path(training.__file__).parent / "recipes"
SHIPPED = sorted(RECIPES.rglob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_recipe(path: Path) -> None:
    """It loads, builds, survives a checkpoint's JSON, and its limits fit the model's positions and one another.

    A published size is that of the model while it trains, or after: with or without weight normalisation's gains.
    """
    recipe = load_recipe(path)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    config = recipe.model_config(*recipe.vocabulary_sizes())
    training_size, final_size = sizes_of(recipe.architecture, config)
    assert training_size >= final_size > 0
    assert recipe.published.get("parameters", final_size) in (training_size, final_size)
    positions = to_mapping(config).get("max_positions", math.inf)
    assert positions >= max(
        recipe.data.max_source_tokens, recipe.data.max_target_tokens, recipe.decoding.max_length + 1
    )
    assert 2 * recipe.training.batch_tokens >= recipe.data.max_source_tokens + recipe.data.max_target_tokens
    assert all(corpus.licence and corpus.attribution for corpus in recipe.data.corpora)
    assert recipe.licence
    check_published(recipe.published)
    for corpus in recipe.data.corpora:
        check_prepared(corpus)


def check_prepared(corpus: CorpusConfig) -> None:
    """Every file of a corpus that `tandem corpus` prepares is one that it writes, on the terms that it states."""
    folder = Path(corpus.target).parts[0]
    known = next((one for one in CORPORA if one.name == folder), None)
    if known is not None:
        splits = [name for name, _ in known.outputs]
        written = {f"{folder}/{split}.{field}{known.suffix}" for split in splits for field in known.fields}
        if known.features:
            written |= {f"{folder}/{split}.{known.features.name}.npy" for split in splits}
        assert {name for split in corpus.splits for name in corpus.paths(split)} <= written
        assert (corpus.licence, corpus.attribution) == (known.licence, known.attribution)


def sizes_of(architecture: str, config: ModelConfig) -> tuple[int, int]:
    """Parameters while training and after; counting needs no memory."""
    with torch.device("meta"):
        model = build_model(architecture, config)
    training_size = sum(model.parameter_parts().values())
    model.prepare_for_inference()
    return training_size, sum(model.parameter_parts().values())


def check_published(published: dict[str, Any]) -> None:
    """A row of a table says which, and its numbers are scores in points of 100 or whole sizes."""
    assert not published or published["table"]
    for key, value in published.items():
        if key in ("parameters", "source_vocabulary", "target_vocabulary"):
            assert isinstance(value, int), key
        elif key != "table":
            assert isinstance(value, float) and 0 < value < 100, key
    assert ("source_vocabulary" in published) == ("target_vocabulary" in published)


def test_recipes_have_names_of_their_own() -> None:
    """Runs and bundles lie in folders of these names."""
    names = [merged_mapping(path)["name"] for path in SHIPPED]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(
    ("name", "bleu", "parameters", "printed"),
    [
        ("iwslt14-de-en/dpn", 31.99, 11_587_567, 11.57),
        ("iwslt14-de-en/cnn-deep", 30.70, 13_827_024, 13.82),
        ("iwslt14-de-en/cnn-wide", 30.63, 20_379_600, 20.37),
        ("iwslt14-de-en/san-deep", 31.43, 13_542_888, 13.54),
        ("iwslt14-de-en/san-wide", 31.29, 27_068_904, 27.06),
        ("iwslt14-de-en/layerwise", 35.07, 19_068_416, 19.07),
        ("nist-zh-en/memd-rnnsearch", 36.72, 53_719_856, 53.7),
        ("nist-zh-en/memd-2e1d", 37.24, 62_641_456, 62.6),
        ("nist-zh-en/memd-3e1d", 38.62, 73_399_600, 73.4),
        ("nist-zh-en/memd-3e3d", 39.05, 87_831_856, 87.8),
    ],
)
def test_rows_of_the_papers_tables(name: str, bleu: float, parameters: int, printed: float) -> None:
    """The published size at the published dictionaries, within what the paper prints."""
    recipe = load_recipe(RECIPES / f"{name}.toml")
    sizes = sizes_of(recipe.architecture, recipe.model_config(*recipe.vocabulary_sizes()))
    assert recipe.published["parameters"] == parameters
    assert parameters in sizes
    assert parameters == pytest.approx(printed * 1e6, rel=0.005)
    assert recipe.published["bleu"] == bleu


@pytest.mark.parametrize("name", ["dpn", "dpn-m4", "san-wide", "san-deep", "cnn-wide", "cnn-deep"])
def test_the_training_that_song_et_al_tell(name: str) -> None:
    recipe = load_recipe(RECIPES / "iwslt14-de-en" / f"{name}.toml")
    assert recipe.optimiser == OptimiserConfig(
        "nag", 0.25, "plateau", warmup=0, decay=10.0, stop_below=1e-4, momentum=0.99, clip_norm=0.1
    )
    assert recipe.training.label_smoothing == 0.1
    assert recipe.training.metric == "loss"
    assert recipe.training.batch_tokens * 2 == 4000
    assert recipe.model["dropout"] == 0.1
    assert recipe.decoding.beam_size == 5
    assert (recipe.data.vocabulary.joint, recipe.data.vocabulary.size) == (True, 10_000)
    assert recipe.data.corpora[0].paths("valid") == ("iwslt14-de-en/valid.de", "iwslt14-de-en/valid.en")


@pytest.mark.parametrize("name", ["layerwise", "layerwise-no-sharing", "transformer"])
def test_the_training_that_he_et_al_tell(name: str) -> None:
    recipe = load_recipe(RECIPES / "iwslt14-de-en" / f"{name}.toml")
    rate = recipe.optimiser.learning_rate
    assert rate == pytest.approx((256 * 4000) ** -0.5, rel=0.005)
    expected = OptimiserConfig("adam", rate, warmup=4000, beta1=0.9, beta2=0.98, epsilon=1e-9, clip_norm=0.0)
    assert recipe.optimiser == expected
    assert recipe.training.batch_tokens * 2 == 4096
    assert (recipe.training.label_smoothing, recipe.model["dropout"]) == (0.1, 0.1)
    decoding = recipe.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.length_penalty_form) == (6, 1.1, "gnmt")
    assert (recipe.data.vocabulary.joint, recipe.data.vocabulary.size) == (True, 31_350)


@pytest.mark.parametrize("path", sorted((RECIPES / "nist-zh-en").glob("memd-*.toml")), ids=lambda path: path.stem)
def test_the_training_that_zhang_et_al_tell(path: Path) -> None:
    recipe = load_recipe(path)
    published = recipe.published
    assert published["bleu"] == pytest.approx(sum(published[f"mt0{n}"] for n in (3, 4, 5, 6)) / 4, abs=0.0051)
    assert recipe.optimiser == OptimiserConfig(
        "adadelta", 1.0, "constant", warmup=0, rho=0.95, epsilon=1e-6, clip_norm=1.0
    )
    assert recipe.training.label_smoothing == 0.0
    assert recipe.model["dropout"] == 0.5
    assert (recipe.decoding.beam_size, recipe.decoding.length_penalty) == (12, 1.0)
    assert (recipe.data.filters.max_source_words, recipe.data.filters.max_target_words) == (50, 50)
    assert recipe.data.vocabulary == VocabularyConfig("word", 30_000, joint=False)
    assert recipe.data.corpora[0].paths("train") == ("nist-zh-en/train.zh", "nist-zh-en/train.en")
    assert recipe.data.corpora[0].paths("valid") == ("nist-zh-en/mt02.zh", "nist-zh-en/mt02.en")


@pytest.mark.parametrize("folder", ["multi30k-de-en", "multi30k-defrcs-en", "wmt-ape-en-de-small"])
def test_compared_recipes_have_one_budget(folder: str) -> None:
    """Within a folder only the architecture differs, and the budget is the same in all folders."""
    recipes = [load_recipe(path) for path in sorted((RECIPES / folder).glob("*.toml"))]
    budget = load_recipe(RECIPES / "multi30k-de-en" / "transformer.toml")
    for recipe in recipes:
        assert (recipe.data, recipe.decoding) == (recipes[0].data, recipes[0].decoding)
        assert (recipe.training, recipe.optimiser) == (budget.training, budget.optimiser)
        assert recipe.decoding.beam_size == budget.decoding.beam_size


def test_vocabulary_sizes_are_the_papers_or_those_aimed_at() -> None:
    words = load_recipe(RECIPES / "wmt16-en-ro" / "convs2s-words.toml")
    assert words.vocabulary_sizes() == ((200_000,), 80_000)
    assert load_recipe(RECIPES / "multi30k-mmt" / "flat.toml").vocabulary_sizes() == ((20_000, 0), 20_000)
    assert load_recipe(RECIPES / "iwslt14-de-en" / "dpn.toml").vocabulary_sizes() == ((8848,), 6632)
    assert load_recipe(RECIPES / "multi30k-defrcs-en" / "flat.toml").vocabulary_sizes() == ((6000,) * 3, 6000)
