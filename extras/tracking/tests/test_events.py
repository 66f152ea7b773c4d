"""TensorBoard's event files, and pictures in them."""

from __future__ import annotations

import builtins
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from tandem.extras.tracking import events as tracking
from tandem.extras.tracking.events import find_trackers
from tandem.extras.tracking.pictures import picture
from tandem.training.checkpoint import TrainingProgress
from tandem.training.loop.reporting import SeenSource, ShownSentence, TerminalReporter

VALUES = {"loss": 2.5, "nll": 2.0, "rate": 1e-3, "gradient_norm": 0.5}


class Written:
    """Stands for TensorBoard's writer."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, float, int]] = []
        self.texts: list[tuple[str, str, int]] = []
        self.images: list[tuple[str, tuple[int, ...], int, str]] = []
        self.closed = False

    def add_scalar(self, name: str, value: float, update: int) -> None:
        self.scalars.append((name, value, update))

    def add_text(self, name: str, text: str, update: int) -> None:
        self.texts.append((name, text, update))

    def add_image(self, name: str, image: NDArray[np.uint8], update: int, dataformats: str) -> None:
        self.images.append((name, image.shape[2:], update, dataformats))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    made = Written()
    monkeypatch.setattr(tracking, "event_writer", lambda folder, warn, first: made)
    return made


def reporting(folder: Path, console: Console | None = None) -> TerminalReporter:
    shown = console or Console(quiet=True)
    return TerminalReporter(400, folder, shown, find_trackers(())(folder, {}, shown.print))


def test_numbers_and_sentences_are_written_and_the_files_closed_when_training_fails(
    written: Written, tmp_path: Path
) -> None:
    def fail() -> None:
        with reporting(tmp_path) as reporter:
            reporter.update(TrainingProgress(update=50), VALUES)
            examples = [ShownSentence("Wo?", "Where?", "Where is it?"), ShownSentence("a|b", "x" * 200, "c")]
            reporter.validation(TrainingProgress(update=57), {"bleu": 31.5}, examples)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ("train/loss", 2.5, 50) in written.scalars and ("valid/bleu", 31.5, 57) in written.scalars
    ((name, text, update),) = written.texts
    assert (name, update) == ("valid/examples", 57)
    assert text.splitlines()[2:] == ["| Wo? | Where? | Where is it? |", rf"| a\|b | {'x' * 200} | c |"]
    assert written.closed


def test_what_the_model_looks_at_is_drawn(written: Written, tmp_path: Path) -> None:
    """Of the sentences of which it is known."""
    seen = SeenSource(("the", "</s>"), ("das", "</s>"), np.eye(2, dtype=np.float32))
    examples = [
        ShownSentence("das", "the", "the", (seen,)),
        ShownSentence("", "", ""),
        ShownSentence("b", "b", "b", (seen,)),
    ]
    with reporting(tmp_path) as reporter:
        reporter.validation(TrainingProgress(update=7), {"loss": 2.25}, examples)
    assert written.images == [(f"valid/attention/{number}", (3,), 7, "HWC") for number in (1, 3)]


def test_pictures_are_in_the_event_files(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = SeenSource(("the", "</s>"), ("das", "</s>"), np.eye(2, dtype=np.float32))
    with reporting(tmp_path) as reporter:
        for update in (7, 14):
            reporter.validation(
                TrainingProgress(update=update), {"loss": 1.0}, [ShownSentence("das", "the", "", (seen,))]
            )
    found = EventAccumulator(str(tmp_path / "events"))
    found.Reload()
    images = found.Images("valid/attention/1")
    height, width, _ = picture([seen]).shape
    assert [(one.step, one.height, one.width) for one in images] == [(7, height, width), (14, height, width)]


def test_event_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with reporting(tmp_path) as reporter:
        reporter.update(TrainingProgress(update=1), VALUES)
    assert [path.name.split(".")[2] for path in (tmp_path / "events").iterdir()] == ["tfevents"]


def test_without_tensorboard_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    stream = io.StringIO()
    with reporting(tmp_path, Console(file=stream, width=100)) as reporter:
        reporter.update(TrainingProgress(update=1), VALUES)
    assert stream.getvalue().startswith("tensorboard is not installed: no event files are written\nupdate 1  epoch 0")


def test_events_of_updates_that_are_made_once_more_are_shown_once(tmp_path: Path) -> None:
    """After a crash at update 17, of a run that goes on from the checkpoint of update 10."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for updates in ((5, 10, 15), (15, 20)):
        with reporting(tmp_path) as reporter:
            for update in updates:
                reporter.update(TrainingProgress(update=update), VALUES)
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [5, 10, 15, 20]
