"""What a run shows in a terminal, writes as metrics, and tells trackers."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from tandem.training.checkpoint import TrainingProgress
from tandem.training.loop.reporting import ShownSentence, TerminalReporter, TrainingClock, read_metrics

VALUES = {"loss": 2.5, "nll": 2.0, "rate": 1e-3, "gradient_norm": 0.5}


class Kept:
    """A tracker that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float, int]] = []
        self.shown: list[tuple[int, tuple[ShownSentence, ...]]] = []
        self.closed = False

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        self.told += [(f"{group}/{name}", value, update) for name, value in values.items()]

    def examples(self, update: int, examples: Sequence[ShownSentence]) -> None:
        self.shown.append((update, tuple(examples)))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def kept() -> Kept:
    return Kept()


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=100), stream


def test_plain_lines_without_a_terminal(kept: Kept, tmp_path: Path) -> None:
    shown, stream = console()
    with TerminalReporter(100, tmp_path, shown, kept) as reporter:
        reporter.update(TrainingProgress(update=50, epoch=1, target_tokens=1000, seconds=10.0), VALUES)
        reporter.update(TrainingProgress(update=100, epoch=2, target_tokens=5000, seconds=14.0), VALUES)
        values = {"loss": 2.25, "bleu": 31.5, "bleu/news": 20.0}  # one corpus' are for the files
        reporter.validation(TrainingProgress(update=100), values)
    assert stream.getvalue().splitlines() == [
        "update 50  epoch 1  loss 2.500  perplexity 7.39  rate 1.00e-03",
        "update 100  epoch 2  loss 2.500  perplexity 7.39  rate 1.00e-03  1,000 target tokens/s",
        "validation after update 100: loss 2.250  perplexity 9.488  bleu 31.500",
    ]
    assert ("train/loss", 2.5, 50) in kept.told
    assert ("train/tokens_per_second", 1000.0, 100) in kept.told
    assert ("valid/bleu", 31.5, 100) in kept.told
    assert ("valid/perplexity", math.exp(2.25), 100) in kept.told
    assert kept.closed


def test_the_first_update_is_shown_and_not_recorded(kept: Kept, tmp_path: Path) -> None:
    """Of a run that goes on, too: its speed is counted from where it went on."""
    shown, stream = console()
    with TerminalReporter(100, tmp_path, shown, kept) as reporter:
        reporter.moved(TrainingProgress(update=20, target_tokens=1000, seconds=50.0))
        reporter.begun(TrainingProgress(update=21, target_tokens=1200, seconds=52.0), VALUES)
        assert not list(tmp_path.iterdir())
        reporter.update(TrainingProgress(update=30, target_tokens=5000, seconds=60.0), VALUES)
    first, later = stream.getvalue().splitlines()
    assert first == "update 21  epoch 0  loss 2.500  perplexity 7.39  rate 1.00e-03  100 target tokens/s"
    assert later.endswith("  400 target tokens/s")


def test_examples_are_shown_short_and_kept_whole(kept: Kept, tmp_path: Path) -> None:
    shown, stream = console()
    examples = [ShownSentence("Wo [b]ist[/b] es?", "Where is it?", "Where's it?"), ShownSentence("a|b", "x" * 200, "c")]
    with TerminalReporter(100, tmp_path, shown, kept) as reporter:
        reporter.validation(TrainingProgress(update=7), {"loss": 2.25}, examples)
    _, first, second = stream.getvalue().splitlines()
    assert first == "  Wo [b]ist[/b] es?  =>  Where is it?"
    assert second == f"  a|b  =>  {'x' * 100}…"
    assert kept.shown == [(7, tuple(examples))]


def test_a_perplexity_beyond_numbers_is_infinite(kept: Kept, tmp_path: Path) -> None:
    shown, stream = console()
    with TerminalReporter(100, tmp_path, shown, kept) as reporter:
        reporter.validation(TrainingProgress(update=7), {"loss": 1e6})
    assert "perplexity inf" in stream.getvalue()


def test_a_clock_that_stands_still_is_no_fault(kept: Kept, tmp_path: Path) -> None:
    with TerminalReporter(100, tmp_path, console()[0], kept) as reporter:
        for update in (1, 2):
            reporter.update(TrainingProgress(update=update, seconds=10.0), VALUES)


def test_a_stopwatch_leaves_out_what_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 103.0, 103.0, 110.0, 111.0])
    monkeypatch.setattr("tandem.training.loop.reporting.time.monotonic", lambda: next(clock))
    watch = TrainingClock(5.0)
    assert watch.seconds == 8.0
    with watch.paused():
        pass
    assert watch.seconds == 9.0


def test_a_bar_in_a_terminal(kept: Kept, tmp_path: Path) -> None:
    shown, stream = console(terminal=True)
    with TerminalReporter(100, tmp_path, shown, kept) as reporter:
        reporter.moved(TrainingProgress(update=17))
        reporter.update(TrainingProgress(update=40), VALUES)
        reporter.validation(TrainingProgress(update=40), {"loss": 2.25})
    text = stream.getvalue()
    assert "40/100" in text
    assert "loss 2.500" in text
    assert "validation after update 40" in text
    assert "update 40  epoch" not in text


def test_events_are_closed_when_training_fails(kept: Kept, tmp_path: Path) -> None:
    def fail() -> None:
        with TerminalReporter(100, tmp_path, console()[0], kept) as reporter:
            reporter.update(TrainingProgress(update=1), VALUES)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert kept.closed


def test_metrics_are_lines_of_json_and_a_resumed_run_has_each_update_once(kept: Kept, tmp_path: Path) -> None:
    def report(*updates: int) -> None:
        with TerminalReporter(100, tmp_path, console()[0], kept) as reporter:
            for update in updates:
                reporter.update(TrainingProgress(update, target_tokens=10 * update, seconds=0.55), VALUES)
            reporter.validation(TrainingProgress(updates[-1]), {"loss": 2.25, "chrf/news": 40.0})

    report(10, 20, 30)
    path = tmp_path / "metrics.jsonl"
    with path.open("a") as file:
        file.write('{"group": "train", "upd')  # the process was killed
    report(20, 30, 40)  # from the checkpoint of update 10
    lines = read_metrics(path)
    assert [(line["group"], line["update"]) for line in lines] == [
        *(("train", update) for update in (10, 20, 30, 40)),
        ("valid", 40),
    ]
    place = {"group": "train", "update": 10, "epoch": 0, "target_tokens": 100, "seconds": 0.6}
    assert lines[0] == {**place, **VALUES, "perplexity": math.exp(2.0)}
    assert lines[-1]["chrf/news"] == 40.0


def test_what_reports_nothing_leaves_nothing(tmp_path: Path) -> None:
    with TerminalReporter(100, tmp_path / "run", console()[0]):
        pass
    assert not list(tmp_path.iterdir())
