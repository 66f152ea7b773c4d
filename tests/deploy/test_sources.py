"""Two texts and a feature matrix all the way: prepare, train, export, decode files, and what refuses them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.deploy.training import prepare
from tandem.models.bundle import Bundle
from tandem.models.config import to_mapping
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.models.steps.loading import load_bundle_model
from tandem.service.bundles.loading import build_engine
from tandem.service.runtimes import open_graphs
from tandem.service.settings import Settings
from tandem.training.data.features import read_columns
from tandem.training.export.exporting import export
from tandem.training.loop.commands import TrainOptions, train
from tandem.training.recipe import Recipe, load_recipe, recipe_from_mapping
from tests.command import fails, needs, succeeds
from tests.sharing import made_once
from tests.training.toy import without_graphs, written

RECIPE = """
name = "three"
task = "translate"
source_languages = ["de", "zxx", "fr"]
target_language = "en"
architecture = "multisource"

[data]
max_source_tokens = 6
max_target_tokens = 6
placeholder_share = 0.0

[[data.corpora]]
name = "toy"
source = ["toy/{split}.de", "toy/{split}.npy", "toy/{split}.fr"]
target = "toy/{split}.en"
licence = "CC0-1.0"
attribution = "made by the test"

[data.filters]
deduplicate = false

[data.vocabulary]
kind = "word"
size = 40
joint = false

[model]
features = [0, 7, 0]
embedding = 16
encoder_width = 16
attention_width = 16
decoder_width = 32
strategy = "flat"

[optimiser]
learning_rate = 1e-2
warmup = 20
cooldown = 60

[training]
updates = 140
batch_tokens = 200
validate_every = 70
validation_sentences = 12
save_every = 1000
precision = "float32"
metric = "bleu"

[decoding]
beam_size = 2
max_length = 6
"""
WORDS = 5
CLASSES = tuple(f"seen{number}" for number in range(WORDS))
TORCH: dict[str, Any] = {"runtime": "torch", "precision": "float32"}


def write_corpus(folder: Path) -> None:
    """A word of each text and a class of each of two vectors, in a fixed order: no source tells of another's words.

    The last two numbers of a vector say which of the two it is, as a place in an image would.
    """
    chance, noise = random.Random(5), np.random.default_rng(5)
    folder.mkdir(parents=True)
    for split, size in (("train", 300), ("valid", 12), ("test", 30)):
        numbers = [[chance.randrange(WORDS) for _ in range(4)] for _ in range(size)]
        columns = {
            "de": [f"de{a}" for a, *_ in numbers],
            "fr": [f"fr{d}" for *_, d in numbers],
            "en": [f"one{a} {CLASSES[b]} {CLASSES[c]} two{d}" for a, b, c, d in numbers],
        }
        for side, lines in columns.items():
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        features = noise.normal(0, 0.1, (size, 2, WORDS + 2)).astype(np.float32)
        for row, (_, b, c, _) in enumerate(numbers):
            features[row, 0, [b, WORDS]] += 1
            features[row, 1, [c, WORDS + 1]] += 1
        np.save(folder / f"{split}.npy", features)


@pytest.fixture(scope="module")
@made_once
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model, exported without graphs, and the corpus it learnt from."""
    folder = tmp_path_factory.mktemp("three")
    write_corpus(folder / "corpora/toy")
    (folder / "three.toml").write_text(RECIPE, encoding="utf-8")
    run = folder / "run"
    prepare(folder / "three.toml", run, folder / "corpora")
    train(TrainOptions(folder / "three.toml", run, threads=1))
    with without_graphs():
        export(run, folder / "bundle")
    return folder


@pytest.fixture(scope="module")
@made_once
def eight_bit(folder: Path) -> Path:
    """The same with its graphs."""
    export(folder / "run", folder / "eight-bit")
    return folder / "eight-bit"


@pytest.fixture(params=["torch", pytest.param("onnx", marks=pytest.mark.slow)])
def shipped(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The bundle and what runs it."""
    return (folder / "bundle", TORCH) if request.param == "torch" else (request.getfixturevalue("eight_bit"), {})


def sources(folder: Path) -> list[Path]:
    return [folder / "corpora/toy" / f"test.{side}" for side in ("de", "npy", "fr")]


def test_every_source_tells_its_words(folder: Path, shipped: tuple[Path, dict[str, Any]]) -> None:
    """Features alone determine the two words in the middle."""
    bundle = Bundle.load(shipped[0])
    graphs = open_graphs(bundle, **shipped[1])
    found = written(bundle, graphs, read_columns(sources(folder), bundle.feature_widths))
    expected = (folder / "corpora/toy/test.en").read_text(encoding="utf-8").splitlines()
    assert len(found) == len(expected) == 30
    assert sum(one == other for one, other in zip(found, expected, strict=True)) >= 28


def test_the_manifest_says_which_sources_are_features(folder: Path) -> None:
    bundle = Bundle.load(folder / "bundle")
    vocabularies = bundle.manifest.vocabularies
    assert vocabularies.features == bundle.feature_widths == (0, 7, 0)
    assert [one.file for one in vocabularies.sources] == ["source0.words", "source1.words"]
    assert [one is None for one in bundle.sources] == [False, True, False]
    assert bundle.sources[2] is bundle.source_vocabularies[1]
    assert "source 2 is a matrix of vectors of width 7" in (folder / "bundle/MODEL_CARD.md").read_text("utf-8")


@needs("evaluate")
def test_evaluate_takes_matrices(folder: Path, shipped: tuple[Path, dict[str, Any]]) -> None:
    bundle, runtime = shipped
    texts = [option for path in sources(folder) for option in ("--source", path)]
    how = [option for name, value in runtime.items() for option in (f"--{name}", value)]
    gold = folder / "corpora/toy/test.en"
    result = json.loads(succeeds("evaluate", bundle, *texts, "--references", gold, *how, "--limit", "10", "--json"))
    assert result["segments"] == 10
    assert result["scores"]["three"][0]["value"] > 80


def test_what_does_not_fit_the_sources_is_refused(folder: Path) -> None:
    german, features, french = sources(folder)
    bundle = Bundle.load(folder / "bundle")
    np.save(folder / "wide.npy", np.zeros((30, 2, 8), np.float32))
    for files, fault in (
        ((features, german, french), r"test\.npy: text is expected here, not feature vectors"),
        ((german, french, german), r"test\.fr: not a readable .npy array"),
        ((german, folder / "wide.npy", french), r"wide\.npy: feature vectors must have the width 7, but have 8"),
    ):
        with pytest.raises(CorpusError, match=fault):
            read_columns(files, bundle.feature_widths)


@needs("verify")
def test_a_proof_of_matrices_needs_them(folder: Path) -> None:
    assert "reads feature matrices: give --text for each source" in fails("verify", folder / "bundle", status=2)


def test_no_request_can_hold_a_matrix(folder: Path) -> None:
    with pytest.raises(BundleError, match="reads feature matrices, which no request can hold"):
        build_engine(Settings(bundles=(folder / "bundle",)))


def test_manifest_and_model_must_agree(folder: Path) -> None:
    bundle = Bundle.load(folder / "bundle")
    other = replace(bundle.manifest, config=bundle.manifest.config | {"features": [0, 9, 0]})
    with pytest.raises(BundleError, match=r"widths \[0, 9, 0\], but its manifest's vocabularies say \[0, 7, 0\]"):
        load_bundle_model(replace(bundle, manifest=other))
    with pytest.raises(ConfigError, match="one 0 for each of the 2 text sources, but has 1"):
        replace(bundle.manifest.vocabularies, features=(0, 7))


def changed(recipe: Recipe, **model: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = to_mapping(recipe)
    mapping["model"] |= model
    return mapping


def test_recipe_data_and_model_must_agree(folder: Path) -> None:
    recipe = load_recipe(folder / "three.toml")
    for widths in ([0, 0, 7], []):
        with pytest.raises(ConfigError, match=r"features must give a width for every source whose path ends in \.npy"):
            recipe_from_mapping(changed(recipe, features=widths), "recipe")
    with pytest.raises(ConfigError, match="the language of feature vectors is 'zxx', but is 'it'"):
        recipe_from_mapping(changed(recipe) | {"source_languages": ["de", "it", "fr"]}, "recipe")
    wider = recipe_from_mapping(changed(recipe, features=[0, 8, 0]), "recipe")
    (folder / "wider.toml").write_text(RECIPE.replace("[0, 7, 0]", "[0, 8, 0]"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"widths \[0, 8, 0\] \(0 for text\), but the prepared data has \[0, 7, 0\]"):
        train(TrainOptions(folder / "wider.toml", folder / "run", resume=True, threads=1))
    with pytest.raises(CorpusError, match=r"train\.npy|valid\.npy"):
        prepare(folder / "wider.toml", folder / "other", folder / "corpora")
    assert wider.vocabulary_sizes()[0] == (40, 0, 40)
