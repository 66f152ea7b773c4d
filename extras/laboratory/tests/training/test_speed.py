"""`tandem bench training`: what it counts, and that its pieces do what they say. No time is asserted."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit
import torch

from tandem.extras.laboratory.options import TrainingOptions
from tandem.extras.laboratory.training import huggingface
from tandem.extras.laboratory.training.speed import measure, show
from tandem.extras.laboratory.training.work import Count, Ours, TrainingWork, padded, recipe_of
from tandem.extras.laboratory.workload import TransformerSize
from tandem.extras.shared.report import as_json
from tandem.models.architectures.protocol import count_parameters
from tandem.models.errors import ConfigError
from tandem.training.data.dataset import PreparedData
from tandem.training.recipe import recipe_mapping
from tests.command import fails
from tests.determinism import one_thread, seeded
from tests.training.conftest import prepared
from tests.training.toy import toy_recipe, toy_trainer

__all__ = ["one_thread", "prepared", "seeded"]
TINY = TransformerSize(layers=1, width=16, hidden=24, heads=2, positions=16)


@pytest.fixture
def work(prepared: Path) -> TrainingWork:
    return TrainingWork.open(prepared, TINY, 100)


def test_our_trainer_trains_on_its_batches_and_counts_their_symbols(work: TrainingWork) -> None:
    ours = Ours(recipe_of(work, 0.0), work.folder)
    before = [parameter.detach().clone() for parameter in ours.trainer.model.parameters()]
    made = ours.run(1, 2, 3)
    with closing(ours.trainer.stream.updates(epoch=1)) as groups:
        batches = [group.batches[0] for group in islice(groups, 5)][2:]
    assert made.count == Count(
        sum(int((batch.sources[0].values != 0).sum()) for batch in batches),
        sum(batch.sources[0].values.numel() for batch in batches),
        sum(int((batch.target_out != 0).sum()) for batch in batches),
        sum(batch.target_out.numel() for batch in batches),
    )
    assert made.seconds > (made.waited or 0.0) >= 0.0 and made.updates == 3
    changed = [not torch.equal(a, b) for a, b in zip(before, ours.trainer.model.parameters(), strict=True)]
    assert all(changed)


def test_padding_counts_every_place() -> None:
    lengths = np.array([2, 5, 3]), np.array([4, 4, 1])
    count = padded(lengths, [[0, 1], [2]])
    assert count == Count(10, 13, 9, 9)
    assert count.padding() == pytest.approx({"source": 3 / 13, "target": 0.0, "both": 3 / 22})


def test_what_is_missing_is_said_and_the_rest_is_measured(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None if name == "accelerate" else object())
    monkeypatch.setitem(sys.modules, "transformers", None)  # importing it fails
    size: dict[str, Any] = {"layers": 1, "width": 16, "hidden": 24, "heads": 2, "threads": 1, "batch_tokens": 100}
    options = TrainingOptions(run=prepared.parent, updates=2, warmup=1, repeats=2, **size)
    result = json.loads(as_json(measure(options)))
    assert list(result["contestants"]) == ["ours"]
    assert "accelerate not installed" in result["left_out"]["huggingface"]
    assert result["contestants"]["ours"]["ours_is_times_as_fast"] == 1.0
    assert 0.0 <= result["contestants"]["ours"]["waited_share"] < 1.0
    assert set(result["padding_of_an_epoch"]) == {"ours"} and 0 <= result["padding_of_an_epoch"]["ours"]["both"] < 1
    show(result)
    table = capsys.readouterr().out
    assert "tandem" in table and "huggingface: accelerate not installed" in table


def test_a_recipe_is_measured_as_it_trains(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tandem.training.optimisation.precision.speedup", lambda narrow: 0.5)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    mapping = recipe_mapping(toy_recipe(accumulate=2, precision="auto"))
    mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
    path = tmp_path / "toy.toml"
    path.write_text(tomlkit.dumps(mapping), encoding="utf-8")
    options = TrainingOptions(run=prepared.parent, recipe=path, updates=2, warmup=1, repeats=1, threads=1)
    result = json.loads(as_json(measure(options)))
    (row,) = result["contestants"].values()
    assert row["parameters"] == count_parameters(toy_trainer(toy_recipe(), prepared, tmp_path).model)
    assert row["target_tokens_an_update"] > 250, "two batches"
    assert "--recipe trains another model" in result["left_out"]["huggingface"]
    show(result)
    assert "precision: float32 (products 2.0 times as fast as in bf16 here)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "holds no prepared data"),
        (("--warmup", "0"), "--warmup"),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    said = fails("bench", "training", "--run", tmp_path, *arguments)
    assert message in " ".join(said.replace("│", " ").split())


def test_data_of_several_sources_is_refused(work: TrainingWork, monkeypatch: pytest.MonkeyPatch) -> None:
    two = PreparedData(work.data.source_sides * 2, work.data.target_side)
    monkeypatch.setattr(PreparedData, "open", classmethod(lambda cls, folder, split: two))
    with pytest.raises(ConfigError, match="must have one source"):
        TrainingWork.open(work.folder, TINY, 100)
