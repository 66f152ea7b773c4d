"""Trackers of other packages: the example of the documentation, and one that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tandem.extras.tracking import trackers
from tandem.extras.tracking.trackers import Trackers, tracker_makers
from tandem.models.errors import ConfigError
from tandem.training.checkpoint import TrainingProgress
from tandem.training.loop.reporting import ShownSentence, TerminalReporter
from tandem.training.loop.trainer import Trainer
from tandem.training.recipe import recipe_mapping
from tests.training.toy import Recorder, toy_recipe

DOCS = Path(__file__).parents[3] / "docs/training.md"
VALUES = {"loss": 2.5, "nll": 2.0, "rate": 1e-3}


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The documentation's tracker as an installed package brings it."""
    (code,) = re.findall(r"```python\n(class CsvTracker:.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: namespace[self.attr])
    point = metadata.EntryPoint("csv", "mypackage:CsvTracker", trackers.GROUP)
    monkeypatch.setattr(trackers, "entry_points", lambda group: [point] if group == trackers.GROUP else [])
    return namespace["CsvTracker"]


class Failing:
    """A tracker whose server goes away at the second report."""

    def __init__(self, run: Path, recipe: Mapping[str, Any]) -> None:
        self.reports = 0

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        self.reports += 1
        if self.reports == 2:
            raise ConnectionError("away")
        assert self.reports == 1, "it gets no more"

    def text(self, name: str, update: int, markdown: str) -> None:
        raise AssertionError("it gets no more")

    def close(self) -> None:
        raise AssertionError("it gets no more")


def test_the_documented_tracker_gets_every_number(documented: Any, tmp_path: Path) -> None:
    made = Trackers(tracker_makers(["csv"]), tmp_path, recipe_mapping(toy_recipe()), pytest.fail)
    with TerminalReporter(9, tmp_path, Console(quiet=True), made) as reporter:
        assert not list(tmp_path.iterdir()), "a run that is refused leaves nothing"
        reporter.update(TrainingProgress(update=3), VALUES)
        reporter.validation(TrainingProgress(update=4), {"bleu": 31.5}, [ShownSentence("a", "b", "c")])
    lines = (tmp_path / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert "train,3,loss,2.5" in lines and "valid,4,bleu,31.5" in lines


def test_one_that_fails_is_named_and_left_out(tmp_path: Path, prepared: Path) -> None:
    said: list[str] = []
    made = Trackers({"away": Failing}, tmp_path, {}, said.append)
    with TerminalReporter(3, tmp_path, Console(quiet=True), made) as reporter:
        Trainer(toy_recipe(updates=3), prepared, tmp_path / "run", reporter=reporter).train()
    assert said == ["tracker away failed (ConnectionError: away): it gets no more of this training"]
    alone = Trainer(toy_recipe(updates=3), prepared, tmp_path / "alone", reporter=Recorder())
    assert alone.train().update == 3


def test_an_unknown_one_is_refused_with_those_that_are_there(documented: Any) -> None:
    with pytest.raises(ConfigError, match=r"--track wandb: no such tracker in the entry points 'tandem.trackers': csv"):
        tracker_makers(["csv", "wandb"])
