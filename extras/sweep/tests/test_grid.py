"""Which runs a sweep has, and what is refused before any of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit

from tandem.extras.sweep.grid import AS_IT_IS, PlannedRun, axis, file_name, planned
from tandem.models.errors import ConfigError
from tandem.training.experiment import Experiment
from tandem.training.recipe import recipe_mapping
from tests.training.toy import toy_recipe


def plan(tmp_path: Path, *grids: str, seeds: int = 1, settings: tuple[str, ...] = ()) -> tuple[PlannedRun, ...]:
    mapping = recipe_mapping(toy_recipe(seed=3))
    mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
    file = tmp_path / "toy.toml"
    file.write_text(tomlkit.dumps(mapping), encoding="utf-8")
    return planned(file, Experiment(settings), grids, seeds, tmp_path / "sweep", tmp_path / "data")


def test_every_combination_with_every_seed(tmp_path: Path) -> None:
    runs = plan(
        tmp_path,
        "optimiser.learning_rate=1e-3, 5e-4",
        "model.dropout=0.1,0.2",
        seeds=2,
        settings=("training.updates=9",),
    )
    found = [
        (run.recipe.optimiser.learning_rate, run.recipe.model["dropout"], run.recipe.training.seed) for run in runs
    ]
    assert found == [(rate, dropout, seed) for rate in (1e-3, 5e-4) for dropout in (0.1, 0.2) for seed in (3, 4)]
    assert {run.recipe.training.updates for run in runs} == {9}
    assert len({run.folder for run in runs}) == 8
    assert {run.experiment.data for run in runs} == {str((tmp_path / "data").resolve())}


def test_seeds_alone_are_a_sweep(tmp_path: Path) -> None:
    assert [(run.combination, run.seed) for run in plan(tmp_path, seeds=3)] == [(AS_IT_IS, seed) for seed in (3, 4, 5)]


def test_commas_within_lists_and_strings_part_no_values() -> None:
    assert axis('data.noise.kinds=["a", "b"],[]') == ('data.noise.kinds=["a", "b"]', "data.noise.kinds=[]")
    assert axis('about="a, b",c') == ('about="a, b"', "about=c")
    assert file_name('data.noise.kinds=["a", "b"]') == "data.noise.kinds=_a_b_"


@pytest.mark.parametrize(
    ("grids", "said"),
    [
        ((), "a sweep needs a --grid KEY=VALUE,VALUE, or --seeds of at least 2"),
        (("model.dropout",), "--grid must be KEY=VALUE,VALUE"),
        (("model.dropout=0.1,",), "--grid must be KEY=VALUE,VALUE"),
        (("model.dropout=0.1,0.1",), "--grid model.dropout=0.1,0.1: every value must be different"),
        (("optimiser.rat=1,2",), "has no key 'rat'"),
        (("optimiser.learning_rate=0.1,-1",), "learning_rate must be at least 0.0, but is -1.0"),
        (("about=a b,a/b",), "every combination needs a folder of its own"),
        (("data.max_source_tokens=12,13",), "share prepared data and validations, but with data.max_source_tokens=13"),
        (("training.validation_sentences=0,4",), "training.validation_sentences is 4, but was 0"),
    ],
)
def test_what_makes_no_sweep_is_refused(tmp_path: Path, grids: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan(tmp_path, *grids)
    assert said in str(raised.value)
