"""`tandem evaluate` of a run, before there is a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tandem.training.checkpoint import checkpoints, load_into, load_model_tensors
from tandem.training.data.dataset import text_path
from tandem.training.experiment import Experiment
from tests.command import fails, succeeds
from tests.determinism import one_thread, seeded
from tests.training.conftest import prepared
from tests.training.toy import bundle_without_graphs, toy_recipe, toy_trainer

__all__ = ["one_thread", "prepared", "seeded"]


@pytest.fixture
def run(prepared: Path, tmp_path: Path) -> Path:
    """A run on shared data, with checkpoints after updates 2, 4 and 6."""
    folder = tmp_path / "toy"
    toy_trainer(toy_recipe(updates=6, save_every=2), prepared, folder).train()
    Experiment(data=str(prepared)).save(folder)
    return folder


@pytest.fixture
def files(prepared: Path) -> tuple[object, ...]:
    source, target = (text_path(prepared, "toy", "test", side) for side in ("source0", "target"))
    return "--source", source, "--references", target


def scores(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeeds("evaluate", *arguments, "--json"))
    return found


def values(found: dict[str, Any], name: str) -> list[float]:
    return [score["value"] for score in found["scores"][name]]


def test_a_run_scores_as_its_bundle_does(run: Path, prepared: Path, files: tuple[object, ...], tmp_path: Path) -> None:
    found = scores(run, *files)
    assert (found["runtime"], list(found["scores"])) == ("torch", ["toy-checkpoint-6"])
    recipe = toy_recipe()
    model = toy_trainer(recipe, prepared, tmp_path / "other").model
    load_into(model, load_model_tensors(checkpoints(run / "checkpoints")[-1]), "")
    bundle = bundle_without_graphs(model, recipe, prepared, tmp_path / "bundle").path
    whole = scores(bundle, *files, "--runtime", "torch", "--against", run)
    assert values(whole, "toy") == values(whole, "toy-checkpoint-6") == values(found, "toy-checkpoint-6")
    assert [score["p_value"] for score in whole["scores"]["toy-checkpoint-6"]] == [1.0] * len(values(whole, "toy"))


def test_one_checkpoint_is_chosen(run: Path, files: tuple[object, ...]) -> None:
    found = scores(run, *files, "--checkpoint", run / "checkpoints/checkpoint-2.safetensors")
    assert list(found["scores"]) == ["toy-checkpoint-2"]


def test_a_run_s_folder_may_have_any_name(run: Path, files: tuple[object, ...]) -> None:
    """One that no bundle could have is made fit for the table of scores."""
    folder = run.rename(run.with_name("é mein Läufchen 2"))
    assert list(scores(folder, *files)["scores"]) == ["mein-L-ufchen-2-checkpoint-6"]


def test_a_run_that_was_prepared_alone_is_told_to_train(files: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "new" / "data").mkdir(parents=True)
    assert "new holds no checkpoint: train first" in fails("evaluate", tmp_path / "new", *files, status=1)


def test_what_goes_with_bundles_alone_is_refused(run: Path, files: tuple[object, ...], tmp_path: Path) -> None:
    assert "has no manifest: tandem export makes a bundle" in fails("evaluate", run, *files, "--record", "x", status=2)
    said = fails("evaluate", tmp_path, *files, "--checkpoint", "c.safetensors", status=2)
    assert "--checkpoint is for a run, but" in said
