"""The shipped recipes: all load and build, and those of the papers say what the papers say."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem import training
from tandem.models.architectures.protocol import ModelConfig
from tandem.models.architectures.registry import build_model
from tandem.models.config import to_mapping
from tandem.training.data.config import VocabularyConfig
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, merged_mapping, recipe_from_mapping, recipe_mapping
from tandem.training.recipe import load_recipe as read_recipe

RECIPES = Path(training.__file__).parent / "recipes"
SHIPPED = sorted(RECIPES.rglob("*.toml"))


@cache
def load_recipe(path: Path) -> Recipe:
    """A shipped recipe, read once."""
    return read_recipe(path)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_recipe(path: Path) -> None:
    """It loads, survives a checkpoint's JSON, and its limits fit the model's positions and one another."""
    recipe = load_recipe(path)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    config = recipe.model_config(*recipe.vocabulary_sizes())
    positions = to_mapping(config).get("max_positions", math.inf)
    assert positions >= max(
        recipe.data.max_source_tokens, recipe.data.max_target_tokens, recipe.decoding.max_length + 1
    )
    assert 2 * recipe.training.batch_tokens >= recipe.data.max_source_tokens + recipe.data.max_target_tokens
    assert all(corpus.licence and corpus.attribution for corpus in recipe.data.corpora)
    assert recipe.licence
    check_published(recipe.published)


@pytest.mark.parametrize(
    "path",
    # Every day those whose size is published: building all takes long, and most differ in what has no weights.
    [
        pytest.param(path, marks=[] if "\nparameters = " in path.read_text("utf-8") else pytest.mark.slow)
        for path in SHIPPED
    ],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_every_shipped_recipe_builds(path: Path) -> None:
    """A published size is that of the model while it trains, or after: with or without weight normalisation's gains."""
    recipe = load_recipe(path)
    training_size, final_size = sizes_of(recipe.architecture, recipe.model_config(*recipe.vocabulary_sizes()))
    assert training_size >= final_size > 0
    assert recipe.published.get("parameters", final_size) in (training_size, final_size)


def sizes_of(architecture: str, config: ModelConfig) -> tuple[int, int]:
    """Parameters while training and after; counting needs no memory."""
    with torch.device("meta"):
        model = build_model(architecture, config)
    training_size = sum(model.parameter_parts().values())
    model.prepare_for_inference()
    return training_size, sum(model.parameter_parts().values())


def test_what_one_large_gpu_makes_is_small_enough_to_ship() -> None:
    """A bundle has its weights in 16 bits: 60 MB of them at most, with vocabularies as large as are aimed at."""
    recipes = {path: load_recipe(path) for path in SHIPPED if path.stem.endswith("-gpu")}
    sizes = {
        path: 2 * sizes_of(recipe.architecture, recipe.model_config(*recipe.vocabulary_sizes()))[1]
        for path, recipe in recipes.items()
    }
    assert sizes
    assert not {path: size for path, size in sizes.items() if size > 60_000_000}


def check_published(published: dict[str, Any]) -> None:
    """A row of a table says which, and its numbers are scores in points of 100 or whole sizes."""
    assert not published or published["table"]
    for key, value in published.items():
        if key in ("parameters", "source_vocabulary", "target_vocabulary"):
            assert isinstance(value, int), key
        elif key == "printed_parameters":
            assert float(value.removesuffix("M")) * 1e6 == pytest.approx(published["parameters"], rel=0.005), value
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
        ("iwslt14-de-en/dpn", 31.99, 11_587_567, "11.57M"),
        ("iwslt14-de-en/cnn-deep", 30.70, 13_827_024, "13.82M"),
        ("iwslt14-de-en/cnn-wide", 30.63, 20_379_600, "20.37M"),
        ("iwslt14-de-en/san-deep", 31.43, 13_542_888, "13.54M"),
        ("iwslt14-de-en/san-wide", 31.29, 27_068_904, "27.06M"),
        ("iwslt14-de-en/layerwise", 35.07, 19_068_928, "19.07M"),
        ("nist-zh-en/memd-rnnsearch", 36.72, 53_719_856, "53.7M"),
        ("nist-zh-en/memd-2e1d", 37.24, 62_641_456, "62.6M"),
        ("nist-zh-en/memd-3e1d", 38.62, 73_399_600, "73.4M"),
        ("nist-zh-en/memd-3e3d", 39.05, 87_831_856, "87.8M"),
    ],
)
def test_rows_of_the_papers_tables(name: str, bleu: float, parameters: int, printed: str) -> None:
    """Our count at the published dictionaries, and what the paper prints."""
    recipe = load_recipe(RECIPES / f"{name}.toml")
    sizes = sizes_of(recipe.architecture, recipe.model_config(*recipe.vocabulary_sizes()))
    assert recipe.published["parameters"] == parameters
    assert parameters in sizes
    assert recipe.published["printed_parameters"] == printed
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
    assert recipe.model.get("attention_dropout", 0.0) == (0.0 if recipe.architecture == "convs2s" else 0.1)
    assert recipe.decoding.beam_size == 5
    assert recipe.data.vocabulary == VocabularyConfig(size=8848, target_size=6632, joint=False)
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
    assert (recipe.model["norm"], recipe.model["attention_dropout"]) == ("pre", 0.1)
    decoding = recipe.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.length_penalty_form) == (6, 1.1, "gnmt")
    assert (recipe.data.vocabulary.joint, recipe.data.vocabulary.size) == (True, 31_350)


EN_DE = [*[(512, 3)] * 10, *[(768, 3)] * 3, *[(2048, 1)] * 2]
EN_FR = [*[(512, 3)] * 6, *[(768, 3)] * 4, *[(1024, 3)] * 3, (2048, 1), (4096, 1)]
ABLATION = ([(512, 3)] * 13, [(512, 5)] * 5)
ENCODER_DEPTHS, DECODER_DEPTHS = (1, 3, 5, 9, 13, 17, 21, 25), (1, 2, 3, 5, 9, 13, 17, 21, 25)
CONVOLUTIONS: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {
    "gigaword/convs2s": ([(256, 3)] * 6, [(256, 3)] * 6),
    "wmt16-en-ro/convs2s": ([(512, 3)] * 20, [(512, 3)] * 20),
    "wmt16-en-ro/convs2s-words": ([(512, 3)] * 20, [(512, 3)] * 20),
    "wmt14-en-de/convs2s": (EN_DE, EN_DE),
    "wmt14-en-fr/convs2s": (EN_FR, EN_FR),
    "wmt14-en-fr/convs2s-en-de-size": (EN_DE, EN_DE),
    "wmt14-en-de/convs2s-ablation": ABLATION,
    **{
        f"wmt14-en-de/convs2s-encoder-kernel{kernel}-layers{layers}": ([(512, kernel)] * layers, ABLATION[1])
        for kernel, layers in product((3, 5, 7), (5, 9, 13))
    },
    **{
        f"wmt14-en-de/convs2s-decoder-kernel{kernel}-layers{layers}": (ABLATION[0], [(512, kernel)] * layers)
        for kernel, layers in product((3, 5, 7), (3, 5, 7))
    },
    # Figure 2, one side at a time.
    **{f"wmt14-en-de/convs2s-encoder-kernel3-layers{n}": ([(512, 3)] * n, ABLATION[1]) for n in ENCODER_DEPTHS},
    **{f"wmt14-en-de/convs2s-decoder-kernel5-layers{n}": (ABLATION[0], [(512, 5)] * n) for n in DECODER_DEPTHS},
    **{
        f"wmt14-en-de/convs2s-attention{layers}": ABLATION
        for layers in ("1", "2", "3", "4", "5", "12", "123", "1234", "135")
    },
    **{f"wmt14-en-de/convs2s-no-{side}positions": ABLATION for side in ("", "source-", "target-")},
}
"""Width and kernel of every layer, encoder and decoder."""


def test_every_convolutional_row_is_in_the_table() -> None:
    folders = ("gigaword", "wmt14-en-de", "wmt14-en-fr", "wmt16-en-ro")
    shipped = {f"{folder}/{path.stem}" for folder in folders for path in (RECIPES / folder).glob("convs2s*.toml")}
    assert shipped == set(CONVOLUTIONS)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_convolutions_of_gehring_et_al(name: str) -> None:
    model = load_recipe(RECIPES / f"{name}.toml").model
    encoder, decoder = CONVOLUTIONS[name]
    assert list(zip(model["encoder_widths"], model["encoder_kernels"], strict=True)) == encoder
    assert list(zip(model["decoder_widths"], model["decoder_kernels"], strict=True)) == decoder
    width = 256 if name.startswith("gigaword") else 512
    assert (model["embedding"], model["output_embedding"]) == (width, width)
    _, _, attending = name.partition("-attention")
    expected = [str(layer + 1) in attending for layer in range(len(decoder))] if attending else []
    assert model.get("attention", []) == expected
    missing = name.partition("-no-")[2]
    positions = (missing not in ("positions", "source-positions"), missing not in ("positions", "target-positions"))
    assert (model["source_positions"], model["target_positions"]) == positions


ONE_STACK = {"architecture": "layerwise", "share_weights": True, "mixed_attention": True, "side_embeddings": True}
ONE_STACK |= {"positions": "sinusoidal", "layers": 14}
CONCATENATED = {"strategy": "concatenation", "features": [0, 512], "decoder_width": 500}
FLAT, HIERARCHICAL = ({**CONCATENATED, "strategy": one, "decoder": "cgru"} for one in ("flat", "hierarchical"))
WORDS = {"vocabulary": VocabularyConfig("word", 30_000, joint=False), "min_length": 14}
PRINTED: dict[str, dict[str, Any]] = {
    "nist-zh-en/dpn": {"cnn_layers": 12, "san_layers": 6, "dropout": 0.2, "width": 256, "hidden": 1024}
    | {"learning_rate": 0.5, "momentum": 0.99, "beam_size": 10, "valid_split": "mt03"},
    "gigaword/dpn": {"cnn_layers": 4, "san_layers": 2, "width": 256, "learning_rate": 0.25, "beam_size": 5} | WORDS,
    "gigaword/convs2s": {"learning_rate": 0.25, "momentum": 0.99, "beam_size": 5} | WORDS,
    "multi30k-mmt/concatenation": CONCATENATED | {"decoder": "gru"},
    **{
        f"multi30k-mmt/{strategy['strategy']}{'-share' * share}{'-sentinel' * sentinel}": strategy
        | {"share_projections": share, "sentinel": sentinel}
        for strategy, share, sentinel in product((FLAT, HIERARCHICAL), (False, True), (False, True))
    },
    "multi30k-mmt/cgru-concatenation": CONCATENATED | {"decoder": "cgru"},
    "multi30k-mmt/gru-flat": FLAT | {"decoder": "gru"},
    "multi30k-mmt/gru-hierarchical": HIERARCHICAL | {"decoder": "gru"},
    "iwslt14-de-en/layerwise": ONE_STACK,
    **{f"iwslt14-de-en/layerwise-layers{layers}": ONE_STACK | {"layers": layers} for layers in (10, 14, 18, 22)},
    "iwslt14-de-en/layerwise-no-mixed": ONE_STACK | {"mixed_attention": False},
    "iwslt14-de-en/layerwise-no-positions": ONE_STACK | {"positions": "none"},
    "iwslt14-de-en/layerwise-no-sharing": ONE_STACK | {"share_weights": False},
    "iwslt14-de-en/layerwise-no-side-embeddings": ONE_STACK | {"side_embeddings": False},
    **{f"iwslt14-{pair}/layerwise": ONE_STACK for pair in ("es-en", "ro-en")},
    **{
        f"iwslt14-de-en/transformer-layers{layers}": {"encoder_layers": layers, "decoder_layers": layers}
        for layers in (4, 6, 8, 10)
    },
}
"""What the papers print of a recipe, by its key."""


@pytest.mark.parametrize("name", PRINTED)
def test_what_the_papers_print(name: str) -> None:
    """Values of a recipe's model, and of the tables beside it."""
    recipe = load_recipe(RECIPES / f"{name}.toml")
    corpus = {"valid_split": recipe.data.corpora[0].valid_split}
    around = {"architecture": recipe.architecture, "vocabulary": recipe.data.vocabulary} | corpus
    said = asdict(recipe.optimiser) | asdict(recipe.decoding) | dict(recipe.model) | around
    assert {key: said[key] for key in PRINTED[name]} == PRINTED[name]


_LAYERWISE = sorted(path for path in SHIPPED if path.stem in ("layerwise", "layerwise-base", "layerwise-big"))


@pytest.mark.parametrize(
    "path",
    [path for path in _LAYERWISE if load_recipe(path).published],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_layer_wise_coordination_and_its_baseline_drop_alike(path: Path) -> None:
    """He et al. 2018 vary the architecture alone."""
    baseline = load_recipe(path.with_name(path.name.replace("layerwise", "transformer")))
    rates = [(one.model["dropout"], one.model["attention_dropout"]) for one in (load_recipe(path), baseline)]
    assert rates == [(0.3 if path.stem.endswith("big") else 0.1, 0.1)] * 2


@pytest.mark.parametrize("path", sorted((RECIPES / "nist-zh-en").glob("memd-*.toml")), ids=lambda path: path.stem)
def test_the_training_that_zhang_et_al_tell(path: Path) -> None:
    recipe = load_recipe(path)
    published = recipe.published
    assert published["bleu"] == pytest.approx(sum(published[f"mt0{n}"] for n in (3, 4, 5, 6)) / 4, abs=0.0051)
    assert recipe.optimiser == OptimiserConfig(
        "adadelta", 1.0, "constant", warmup=0, rho=0.95, epsilon=1e-6, clip_norm=1.0
    )
    assert (recipe.training.batch_sentences, recipe.training.label_smoothing) == (80, 0.0)
    assert recipe.model["dropout"] == 0.5
    assert (recipe.decoding.beam_size, recipe.decoding.length_penalty) == (12, 1.0)
    assert (recipe.data.filters.max_source_words, recipe.data.filters.max_target_words) == (50, 50)
    assert recipe.data.vocabulary == VocabularyConfig("word", 30_000, joint=False)
    assert recipe.data.corpora[0].paths("train") == ("nist-zh-en/train.zh", "nist-zh-en/train.en")
    assert recipe.data.corpora[0].paths("valid") == ("nist-zh-en/mt02.zh", "nist-zh-en/mt02.en")


@pytest.mark.parametrize("folder", ["multi30k-de-en", "multi30k-defrcs-en", "wmt-ape-en-de-small"])
def test_compared_recipes_have_one_budget(folder: str) -> None:
    """Within a folder only the architecture differs, and the budget is the same in all folders; a GPU's is its own."""
    paths = sorted((RECIPES / folder).glob("*.toml"))
    recipes = [load_recipe(path) for path in paths if not path.stem.endswith("-gpu")]
    budget = load_recipe(RECIPES / "multi30k-de-en" / "transformer.toml")
    for recipe in recipes:
        assert (recipe.data, recipe.decoding) == (recipes[0].data, recipes[0].decoding)
        assert (recipe.training, recipe.optimiser) == (budget.training, budget.optimiser)
        assert recipe.decoding.beam_size == budget.decoding.beam_size


@pytest.mark.parametrize("name", ["dpn", "layerwise", "memd"])
def test_wider_text_trains_the_same_models(name: str) -> None:
    """Models, search and rates are those of Multi30k's comparison; text, vocabulary and budget are one for all."""
    wide, small = (
        load_recipe(RECIPES / f"open-de-en-small/{name}.toml"),
        load_recipe(RECIPES / f"multi30k-de-en/{name}.toml"),
    )
    first = load_recipe(RECIPES / "open-de-en-small" / "dpn.toml")
    assert (wide.architecture, wide.model, wide.decoding) == (small.architecture, small.model, small.decoding)
    assert (wide.data, wide.training, wide.optimiser) == (first.data, first.training, first.optimiser)
    assert wide.optimiser == replace(small.optimiser, warmup=800, cooldown=1000)
    assert [corpus.name for corpus in wide.data.corpora] == ["tatoeba-de-en", "open-de-en"]


@pytest.mark.parametrize(
    ("task", "other", "widths"), [("multi30k-mmt", "meteor", {0.7, 0.8}), ("wmt-ape-en-de", "hter", {0.5, 0.6})]
)
def test_the_intervals_that_libovicky_and_helcl_print(task: str, other: str, widths: set[float]) -> None:
    """Every score of table 1 has one, and no other row."""
    rows = {path.stem: load_recipe(path).published for path in (RECIPES / task).glob("*.toml")}
    printed = {name: row for name, row in rows.items() if row["table"].endswith("table 1")}
    assert len(printed) == 9
    assert all({"bleu_interval", f"{other}_interval"} <= set(row) for row in printed.values())
    assert {row["bleu_interval"] for row in printed.values()} == widths
    assert not any("bleu_interval" in row for name, row in rows.items() if name not in printed)


def test_vocabulary_sizes_are_the_papers_or_those_aimed_at() -> None:
    words = load_recipe(RECIPES / "wmt16-en-ro" / "convs2s-words.toml")
    assert words.vocabulary_sizes() == ((200_000,), 80_000)
    assert load_recipe(RECIPES / "multi30k-mmt" / "flat.toml").vocabulary_sizes() == ((20_000, 0), 20_000)
    assert load_recipe(RECIPES / "iwslt14-de-en" / "dpn.toml").vocabulary_sizes() == ((8848,), 6632)
    assert load_recipe(RECIPES / "multi30k-defrcs-en" / "flat.toml").vocabulary_sizes() == ((6000,) * 3, 6000)
