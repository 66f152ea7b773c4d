"""Recipes come back from their files as they were meant, for text of any amount and bundles of any kind."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.starter import sizes
from tandem.extras.starter.recipes import (
    DraftRecipe,
    StarterRequest,
    base_recipe,
    recipe_from_bundle,
    recipe_from_scratch,
)
from tandem.extras.starter.sizes import Amount
from tandem.extras.starter.text import Screened
from tandem.models.bundle import Bundle, Corpus, Training
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions
from tandem.training.data.config import NoiseConfig
from tandem.training.recipe import Recipe, load_recipe, recipe_from_mapping, recipe_mapping
from tests.service.support import tiny_bundle

WISH = StarterRequest(
    "mine",
    Path("mine.de"),
    Path("mine.en"),
    languages=("de", "en"),
    licence="ours",
    attribution='the "quoted" \\ \x7f firm',
)
AMOUNT = Amount(28_000, 366_000, 5.9, 90, 32_000)
SCREENED = Screened((), 0, {}, 1.2, 0.9)
SMALL = {"width": 16, "hidden": 24, "heads": 2, "cnn_layers": 1, "san_layers": 1, "max_positions": 64}
BASE: dict[str, Any] = {
    "name": "old",
    "task": "translate",
    "source_languages": ["de"],
    "target_language": "en",
    "architecture": "dpn",
    "data": {
        "corpora": [
            {
                "name": "one",
                "source": ["one/{split}.de"],
                "target": "one/{split}.en",
                "licence": "MIT",
                "attribution": "A",
            },
            {
                **{"name": "two", "source": ["two/{split}.de"], "target": "two/{split}.en", "licence": "CC0"},
                **{"attribution": "B", "repeat": 3},
            },
        ],
        "max_source_tokens": 41,
        "max_target_tokens": 41,
        "bpe_dropout_source": 0.05,
        "noise": {"typos": 0.1},
    },
    "model": SMALL,
    "training": {"batch_tokens": 1234, "label_smoothing": 0.2, "max_skipped": 7},
    "decoding": {"max_length": 40},
    "published": {"bleu": 1.0},
}


def written(draft: DraftRecipe, folder: Path) -> tuple[Recipe, str]:
    (folder / "mine.toml").write_text(draft.text, encoding="utf-8")
    return load_recipe(folder / "mine.toml"), draft.text


def bundle(folder: Path, **changes: Any) -> Bundle:
    corpora = (Corpus("one", "MIT", "A", "", 5),)
    fields = {
        "architecture": "dpn",
        "config": {**SMALL, "source_vocabularies": [330], "target_vocabulary": 330, "dropout": 0.1},
        "decoding": SearchOptions(beam_size=4, max_length=40, max_length_ratio=2.5, suppressed=(0, 1, 2)),
        "training": Training(corpora, changes.pop("recipe", BASE), 10, 100),
    }
    return tiny_bundle(folder, "old", **(fields | changes))


@pytest.mark.parametrize("architecture", ["convs2s", "dpn", "transformer"])
@pytest.mark.parametrize("tokens", [3_000, 366_000, 30_000_000])
def test_recipes_from_scratch_come_back(tmp_path: Path, architecture: str, tokens: int) -> None:
    amount = replace(AMOUNT, tokens=tokens)
    draft = recipe_from_scratch(replace(WISH, architecture=architecture), amount, SCREENED)
    read, text = written(draft, tmp_path)
    assert read == draft.recipe
    assert recipe_from_mapping(recipe_mapping(read), "again") == read
    assert max(map(len, text.splitlines())) <= 120 and "#  " not in text
    assert read.optimiser.warmup + read.optimiser.cooldown <= read.training.updates
    assert read.model_config((read.data.vocabulary.size,), read.data.vocabulary.size).source_vocabularies


def test_a_recipe_says_why(tmp_path: Path) -> None:
    _, text = written(recipe_from_scratch(WISH, AMOUNT, SCREENED), tmp_path)
    lines = text.splitlines()
    assert lines[:2] == ["# de to en:", "# written by `tandem new mine` for 28,000 training pairs."]
    assert "passes over the text" in lines[lines.index("updates = 3700") - 1]
    assert "join_share = 0.08" in lines, "sentences of six words"
    assert "precision" not in text, "defaults that nothing is said about are left out"


def test_text_without_spaces_is_not_judged_by_words(tmp_path: Path) -> None:
    recipe, _ = written(recipe_from_scratch(WISH, AMOUNT, replace(SCREENED, median_ratio=9.0)), tmp_path)
    assert recipe.data.filters.max_length_ratio is None


def test_a_length_that_is_asked_for_sets_the_schedule() -> None:
    short = recipe_from_scratch(replace(WISH, updates=600), AMOUNT, SCREENED).recipe
    assert (short.training.updates, short.optimiser.cooldown, short.model["dropout"]) == (600, 180, 0.1)


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of convs2s, dpn, transformer, but is 'memd'"):
        recipe_from_scratch(replace(WISH, architecture="memd"), AMOUNT, SCREENED)


def test_a_bundle_goes_on_learning_as_it_is(tmp_path: Path) -> None:
    old = bundle(tmp_path)
    draft = recipe_from_bundle(WISH, AMOUNT, old)
    recipe, _ = written(draft, tmp_path)
    assert recipe == draft.recipe
    assert (recipe.architecture, recipe.decoding, recipe.published) == ("dpn", old.manifest.decoding, {})
    assert recipe.model == {**SMALL, "dropout": 0.1}, "sizes of vocabularies come with the prepared data"
    assert (recipe.data.max_source_tokens, recipe.data.bpe_dropout_source) == (41, 0.05)
    assert recipe.data.noise == NoiseConfig(typos=0.1)
    assert (recipe.training.batch_tokens, recipe.training.label_smoothing) == (1234, 0.2)
    assert [corpus.name for corpus in recipe.data.corpora] == ["mine"]
    assert recipe.licence == "CC0-1.0 AND ours"
    assert (recipe.start, recipe.task, recipe.training.metric) == (str(old.path), "translate", "loss")
    assert recipe.optimiser.learning_rate < 1e-3


def test_a_bundle_of_large_batches_is_tuned_in_such_as_the_text_is_for(tmp_path: Path) -> None:
    trained = BASE | {"training": {"batch_tokens": 36_000}}
    draft = recipe_from_bundle(WISH, AMOUNT, bundle(tmp_path, recipe=trained))
    assert draft.recipe.training.batch_tokens == sizes.batch_tokens(AMOUNT) < 36_000
    assert draft.passes < 20


def test_the_old_corpora_can_be_mixed_in(tmp_path: Path) -> None:
    """By taking the marks off the lines that name them."""
    _, text = written(recipe_from_bundle(WISH, AMOUNT, bundle(tmp_path)), tmp_path)
    lines = text.splitlines()
    first = lines.index("# [[data.corpora]]")
    last = next(number for number in range(first, len(lines)) if not lines[number])
    lines[first:last] = [line.removeprefix("#").strip() for line in lines[first:last]]
    recipe = recipe_from_mapping(tomllib.loads("\n".join(lines)), "mixed")
    assert [(corpus.name, corpus.splits, corpus.repeat) for corpus in recipe.data.corpora] == [
        ("mine", ("train", "valid", "test"), 1),
        ("one", ("train",), 1),
        ("two", ("train",), 1),
    ]


def test_a_summarizer_stays_one(tmp_path: Path) -> None:
    """Its texts are cut as they were, and the best checkpoint is the one whose summaries are."""
    data = BASE["data"] | {"truncate_source": True}
    old = bundle(tmp_path, task="summarize", recipe=BASE | {"task": "summarize", "data": data})
    recipe, _ = written(recipe_from_bundle(WISH, AMOUNT, old), tmp_path)
    assert (recipe.task, recipe.training.metric, recipe.data.truncate_source) == ("summarize", "rouge", True)


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
def test_a_bundle_of_two_directions_keeps_both(tmp_path: Path, languages: tuple[str, str]) -> None:
    data = BASE["data"] | {"tagged": True, "corpora": [{**BASE["data"]["corpora"][0], "both_ways": True}]}
    both = bundle(tmp_path, recipe=BASE | {"data": data}, pairs=(("de", "en"), ("en", "de")))
    recipe, _ = written(recipe_from_bundle(replace(WISH, languages=languages), AMOUNT, both), tmp_path)
    assert recipe.data.tagged and recipe.data.corpora[0].both_ways
    assert (*recipe.source_languages, recipe.target_language) == languages
    assert set(recipe.pairs) == {("de", "en"), ("en", "de")}


def test_an_imported_model_goes_on_learning_though_it_has_no_recipe(tmp_path: Path) -> None:
    old = bundle(tmp_path, recipe={})
    recipe, text = written(recipe_from_bundle(WISH, AMOUNT, old), tmp_path)
    assert recipe.model == {**SMALL, "dropout": 0.1} and recipe.decoding == old.manifest.decoding
    assert (recipe.start, recipe.task, recipe.architecture) == (str(old.path), "translate", "dpn")
    assert recipe.data.max_source_tokens <= old.manifest.limits.max_source_tokens
    assert [corpus.name for corpus in recipe.data.corpora] == ["mine"] and "mix it in" not in text


@pytest.mark.parametrize(
    ("changes", "languages", "fault"),
    [
        ({}, ("fr", "en"), "old is from de to en, but the text is from fr to en"),
        ({"architecture": "ensemble"}, ("de", "en"), "cannot be trained further: .*'ensemble'"),
        ({"architecture": "other"}, ("de", "en"), "cannot be trained further: .*'other'"),
        (
            {"recipe": {}, "decoding": SearchOptions(max_length=20, prefix=(7,))},
            ("de", "en"),
            "its sources or targets begin with a tag",
        ),
        ({"recipe": {**BASE, "wrong": 1}}, ("de", "en"), "the recipe of old has no key 'wrong'"),
    ],
)
def test_bundles_that_cannot_go_on_are_refused(
    tmp_path: Path, changes: dict[str, Any], languages: tuple[str, str], fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        base_recipe(bundle(tmp_path, **changes), replace(WISH, languages=languages))
