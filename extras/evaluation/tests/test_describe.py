"""`tandem describe`: of recipes, runs and bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tandem.training.checkpoint import load_model_tensors
from tandem.training.experiment import Experiment
from tandem.training.loop.trainer import Run
from tests.command import fails, succeeds
from tests.determinism import one_thread, seeded
from tests.shipped import ROOT, SHIPPED
from tests.training.conftest import prepared
from tests.training.toy import toy_recipe, toy_trainer

__all__ = ["one_thread", "prepared", "seeded"]
RECIPE = ROOT / "training" / "recipes" / "tatoeba-de-en" / "dpn.toml"


@pytest.fixture
def run(prepared: Path, tmp_path: Path) -> Path:
    """A run on shared data."""
    folder = tmp_path / "toy"
    toy_trainer(toy_recipe(updates=3), prepared, folder).train()
    Experiment(data=str(prepared)).save(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "architecture", "width", "millions"),
    [
        ("iwslt14-de-en/dpn", "dpn", 256, 11.57),
        ("iwslt14-de-en/cnn-deep", "convs2s", None, 13.82),
        ("iwslt14-de-en/cnn-wide", "convs2s", None, 20.37),
        ("iwslt14-de-en/san-deep", "transformer", 256, 13.54),
        ("iwslt14-de-en/san-wide", "transformer", 512, 27.06),
        ("iwslt14-de-en/layerwise", "layerwise", 256, 19.07),
        ("nist-zh-en/memd-rnnsearch", "memd", 512, 53.7),
        ("nist-zh-en/memd-2e1d", "memd", 512, 62.6),
        ("nist-zh-en/memd-3e1d", "memd", 512, 73.4),
        ("nist-zh-en/memd-3e3d", "memd", 512, 87.8),
    ],
)
def test_describe_counts_the_papers_models(name: str, architecture: str, width: int | None, millions: float) -> None:
    described = json.loads(succeeds("describe", ROOT / "training" / "recipes" / f"{name}.toml", "--json"))
    assert described["parameters"]["total"] == pytest.approx(millions * 1e6, rel=0.005)
    assert (described["architecture"], described["config"].get("width")) == (architecture, width)


def test_describe_for_people_shows_the_total() -> None:
    assert "total" in succeeds("describe", RECIPE)


def test_describe_of_a_bundle_says_what_it_is_for_and_what_it_is_worth() -> None:
    shown = succeeds("describe", ROOT / "bundles" / "arxiv-title")
    for told in ("summarize", "en to en", "CC0-1.0", "14,100", "108,238 segments", "arxiv-title/test", "37.86"):
        assert told in shown
    found = json.loads(succeeds("describe", SHIPPED, "--json"))
    assert found["languages"] == ["de to en", "fr to en", "en to de", "en to fr"]
    assert found["task"] == "translate" and found["corpora"]


def test_a_run_is_described_by_its_newest_checkpoint(run: Path, tmp_path: Path) -> None:
    found = json.loads(succeeds("describe", run, "--json"))
    assert (found["name"], found["updates"]) == ("toy", 3)
    newest = Run(run).newest
    assert newest and found["parameters"]["total"] == sum(
        tensor.numel() for tensor in load_model_tensors(newest).values()
    )
    (tmp_path / "empty").mkdir()
    assert "neither a recipe file nor a run nor a bundle" in fails("describe", tmp_path / "empty", status=2)
