"""`tandem sweep` as a user calls it: trained, gone on with, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from safetensors.torch import load_file

from tandem.training.loop.divergence import DivergenceError
from tandem.training.loop.trainer import Run, Trainer, is_over
from tandem.training.recipe import recipe_mapping
from tests.command import fails, succeeds
from tests.training.toy import toy_recipe, write_lines

GRID = ("--grid", "optimiser.learning_rate=1e-2,1e-3", "--seeds", 2)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    mapping = recipe_mapping(toy_recipe(updates=3, validate_every=3, validation_sentences=12))
    mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
    path = tmp_path / "toy.toml"
    path.write_text(tomlkit.dumps(mapping), encoding="utf-8")
    return path


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Seed and rate of each training that is begun or gone on with."""
    begun: list[tuple[int, float]] = []
    real = Trainer.train

    def train(self: Trainer) -> Any:
        begun.append((self.recipe.training.seed, self.recipe.optimiser.learning_rate))
        return real(self)

    monkeypatch.setattr(Trainer, "train", train)
    return begun


def results(folder: Path) -> Any:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def test_each_run_is_trained_once_and_compared(
    recipe: Path, prepared: Path, tmp_path: Path, trained: list[tuple[int, float]]
) -> None:
    folder = tmp_path / "sweep"
    said = succeeds("sweep", recipe, "--run", folder, "--data", prepared, *GRID, "--threads", 1)
    assert trained == [(1, 1e-2), (2, 1e-2), (1, 1e-3), (2, 1e-3)]
    assert "toy: loss by combination" in said and "paired bootstrap against" in said
    found = results(folder)
    assert (found["metric"], found["seeds"]) == ("loss", 2)
    best, other = found["combinations"]
    assert best["combination"] == "optimiser.learning_rate=1e-2", "three updates do more at ten times the rate"
    assert best["mean"] == pytest.approx(sum(best["values"]) / 2) and best["mean"] < other["mean"]
    assert [score["metric"] for score in other["scores"]] == ["BLEU", "chrF"]
    assert best["best_updates"] == [3, 3]
    again = json.loads(succeeds("sweep", recipe, "--run", folder, "--data", prepared, *GRID, "--json"))
    assert again == found
    assert len(trained) == 4, "what is over is not trained again"


def test_a_run_alone_gives_the_same_weights(recipe: Path, prepared: Path, tmp_path: Path) -> None:
    folder, alone = tmp_path / "sweep", tmp_path / "alone"
    succeeds("sweep", recipe, "--run", folder, "--data", prepared, "--seeds", 2)
    succeeds("train", recipe, "--run", alone, "--data", prepared, "--seed", 2)
    swept = Run(folder / "runs/recipe/seed-2").newest
    newest = Run(alone).newest
    assert swept is not None and newest is not None
    mine, other = load_file(swept), load_file(newest)
    assert mine.keys() == other.keys() and all(tensor.equal(other[name]) for name, tensor in mine.items())


def test_an_interrupted_sweep_goes_on(
    recipe: Path,
    prepared: Path,
    tmp_path: Path,
    trained: list[tuple[int, float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second run is interrupted after its first update."""
    folder, over = tmp_path / "sweep", iter([True, False])
    monkeypatch.setattr("tandem.extras.sweep.command.is_over", lambda recipe, progress: next(over))
    said = fails("sweep", recipe, "--run", folder, "--data", prepared, *GRID, status=130)
    assert len(trained) == 2 and "the same command goes on" in said
    assert not (folder / "results.json").exists()
    monkeypatch.setattr("tandem.extras.sweep.command.is_over", is_over)
    succeeds("sweep", recipe, "--run", folder, "--data", prepared, *GRID)
    assert trained[2:] == [(2, 1e-2), (1, 1e-3), (2, 1e-3)], "the first is over"


def test_a_run_that_diverges_does_not_end_the_others(
    recipe: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Trainer.train

    def train(self: Trainer) -> Any:
        if self.recipe.optimiser.learning_rate == 1e-2:
            raise DivergenceError("training diverged: the loss is nan")
        return real(self)

    monkeypatch.setattr(Trainer, "train", train)
    folder = tmp_path / "sweep"
    succeeds("sweep", recipe, "--run", folder, "--data", prepared, *GRID)
    good, bad = results(folder)["combinations"]
    assert (good["combination"], bad["diverged"], bad["mean"]) == ("optimiser.learning_rate=1e-3", 2, None)


def test_the_data_is_prepared_once(recipe: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        for side in ("de", "en"):
            write_lines(tmp_path / f"corpora/toy/{split}.{side}", [f"a {letter} {split}" for letter in "bcdefgh"])
    folder = tmp_path / "sweep"
    succeeds("sweep", recipe, "--run", folder, "--corpora", tmp_path / "corpora", "--seeds", 2)
    assert [path.name for path in folder.rglob("prepared.json")] == ["prepared.json"]
    assert results(folder)["combinations"][0]["combination"] == "recipe"
