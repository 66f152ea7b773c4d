"""What every bundle of the repository must be: whole, small, proven, measured, and named where people look."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tandem.models.bundle import Bundle
from tandem.training.recipe import merged_mapping
from tests.shipped import ROOT

SHIPPED = sorted(path.parent for path in (ROOT / "bundles").glob("*/manifest.json"))
MOST, MOST_BYTES = 4, 64_000_000


@pytest.fixture(params=SHIPPED, ids=lambda path: path.name)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return Bundle.load(request.param, weights=True)  # which compares the hash of every file


@cache
def recipes() -> dict[str, dict[str, Any]]:
    """The shipped recipes by their names, which differ."""
    found = map(merged_mapping, (ROOT / "training/recipes").rglob("*.toml"))
    return {recipe["name"]: recipe for recipe in found}


def test_a_few_small_ones() -> None:
    assert 0 < len(SHIPPED) <= MOST


def test_its_size(bundle: Bundle) -> None:
    assert sum((bundle.path / name).stat().st_size for name in bundle.manifest.files) <= MOST_BYTES
    assert bundle.path.name == bundle.manifest.name


def test_its_graphs_are_proven_and_quantised_ones_lose_little(bundle: Bundle) -> None:
    proof = bundle.manifest.proof
    assert proof["passed"] and proof["command"].startswith(f"tandem verify bundles/{bundle.manifest.name} ")
    for one in proof["quantised"]:
        assert one["value"] >= one["float32_value"] - 0.2


def test_its_scores_come_with_their_commands(bundle: Bundle) -> None:
    scores = bundle.manifest.scores
    assert {score.metric for score in scores} & {"BLEU", "ROUGE-1"}
    card = (bundle.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    for score in scores:
        assert score.command.startswith(f"tandem evaluate bundles/{bundle.manifest.name} ") and score.command in card
        assert "/test" in score.test_set and f"{score.value:.2f}".rstrip("0").rstrip(".") in card


def test_its_card_says_what_it_is_for_as_its_recipe_does(bundle: Bundle) -> None:
    about = recipes()[bundle.manifest.name]["about"]
    assert about == bundle.manifest.about
    assert about in (bundle.path / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_a_shortlist_loses_little(bundle: Bundle) -> None:
    found = {(score.metric, score.test_set): score.value for score in bundle.manifest.scores}
    beside = {key: value for key, value in found.items() if key[0] == "BLEU" and key[1].endswith(", with shortlist")}
    assert bool(beside) == bool(bundle.manifest.shortlist)
    for (metric, name), value in beside.items():
        assert value >= found[metric, name.removesuffix(", with shortlist")] - 0.2


def test_the_readme_names_it_with_its_corpora(bundle: Bundle) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        f"| `bundles/{bundle.manifest.name}` |" in readme
        and f"(bundles/{bundle.manifest.name}/MODEL_CARD.md)" in readme
    )
    attribution = readme.split("## Licence and attribution")[1]
    (line,) = (line for line in attribution.splitlines() if f"`{bundle.manifest.name}`" in line)
    assert "CC" in line
