"""Where progress goes: the terminal, ``metrics.jsonl`` and trackers of extras; and means between log lines."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from torch import Tensor

from tandem.models.search import Array
from tandem.training.checkpoint import TrainingProgress
from tandem.training.parallel import Processes

_LARGEST = 700.0  # nats whose perplexity is a number
_SHOWN = 100  # characters of an example


@dataclass(frozen=True, slots=True, eq=False)
class SeenSource:
    """What was looked at in one source while a sentence was written.

    Attributes:
        rows: the symbols that were predicted, EOS last.
        columns: those of the source; numbers where it is of features.
        weights_TS: of each row the weights of the columns, the mean over layers.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights_TS: Array


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence of the validation, as the model translates it by now.

    Attributes:
        source: several are joined.
        translation: of the model.
        reference: of the corpus.
        seen: what it looked at in each source; empty where that is not known.
    """

    source: str
    translation: str
    reference: str
    seen: tuple[SeenSource, ...] = field(default=(), compare=False, repr=False)


class Reporter(Protocol):
    """Where progress goes: a terminal, a log."""

    def moved(self, progress: TrainingProgress) -> None:
        """Called before the first update, and after each."""

    def begun(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        """Called after the first update with what :meth:`update` gets, where that is not yet called."""

    def update(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        """Called every ``log_every`` updates with loss, learning rate and gradient norm.

        Once updates were skipped their number joins these, and in fp16 the loss scale.
        """

    def validation(
        self, progress: TrainingProgress, values: Mapping[str, float], examples: Sequence[ShownSentence] = ()
    ) -> None:
        """Called after every validation with its scores and some sentences, the same ones each time."""


class Tracker(Protocol):
    """Where progress goes besides the terminal and ``metrics.jsonl``."""

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        """Called with what a line of ``metrics.jsonl`` has, ``group`` being ``"train"`` or ``"valid"``."""

    def examples(self, update: int, examples: Sequence[ShownSentence]) -> None:
        """Called with the sentences that a validation shows, at least one."""

    def close(self) -> None:
        """Called when training ends, however it does."""


OpenTracker: TypeAlias = Callable[[Path, Mapping[str, Any], Callable[[str], None]], Tracker]
"""Opens a tracker of a run: given its folder, the plain form of its recipe, and what is told of failures."""
FindTrackers: TypeAlias = Callable[[Sequence[str]], OpenTracker]
"""What opens the trackers of these names, and those that are always there. Raises ConfigError where one is unknown."""


class Silent:
    """Reports nothing, as the processes beside the first do."""

    def moved(self, progress: TrainingProgress) -> None:
        pass

    def begun(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        pass

    def update(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        pass

    def validation(
        self, progress: TrainingProgress, values: Mapping[str, float], examples: Sequence[ShownSentence] = ()
    ) -> None:
        pass


class TrainingClock:
    """Seconds of training; those of validating and saving are left out.

    Args:
        seconds: that the training took before.
    """

    def __init__(self, seconds: float) -> None:
        self._origin = time.monotonic() - seconds

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._origin

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done meanwhile is not counted."""
        started = time.monotonic()
        yield
        self._origin += time.monotonic() - started


@dataclass(slots=True)
class Window:
    """Losses since the last log line: single batches differ too much, being of one length each.

    Attributes:
        loss: this process's summed loss, where it was computed.
        nll: this process's summed negative log-likelihood, likewise.
        tokens: target symbols of all processes.
    """

    loss: Tensor | float = 0.0
    nll: Tensor | float = 0.0
    tokens: int = 0

    def add(self, loss: Tensor, nll: Tensor, tokens: int) -> None:
        self.loss, self.nll, self.tokens = self.loss + loss, self.nll + nll, self.tokens + tokens

    def means(self, processes: Processes) -> dict[str, float]:
        """Means over all target symbols of all processes; waits for the device."""
        loss, nll = processes.total(float(self.loss), float(self.nll))
        return {"loss": loss / self.tokens, "nll": nll / self.tokens}


class TerminalReporter(ExitStack):
    """A progress bar with loss, perplexity, rate, tokens/s and time left; plain lines where there is no terminal.

    Args:
        updates: the last update.
        folder: of the run, where ``metrics.jsonl`` goes, from the first report on: a run that is refused leaves none.
        console: where to draw.
        trackers: where progress goes besides; closed with this.
    """

    def __init__(self, updates: int, folder: Path, console: Console, trackers: Tracker | None = None) -> None:
        super().__init__()
        self._trackers = trackers
        if trackers is not None:
            self.callback(trackers.close)
        self._console = console
        columns = (TextColumn("update"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=updates)
        self._metrics = MetricsFile(folder / "metrics.jsonl")
        self._seen: TrainingProgress | None = None  # what the speed is counted from

    def __enter__(self) -> Self:
        self.enter_context(self._bar)
        return self

    def moved(self, progress: TrainingProgress) -> None:
        """Move the bar."""
        if self._seen is None:
            self._seen = progress
        self._bar.update(self._task, completed=progress.update)

    def begun(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        """Show that it learns, before there is a mean over a log interval to record."""
        self._show(progress, self._with_speed(progress, values))

    def update(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        """Show and record one log interval."""
        values = self._with_speed(progress, values)
        self._seen = progress
        self._record("train", progress, values)
        self._show(progress, values)

    def _with_speed(self, progress: TrainingProgress, values: Mapping[str, float]) -> dict[str, float]:
        found = {**values, "perplexity": perplexity(values["nll"])}
        if self._seen is not None:
            seconds = max(progress.seconds - self._seen.seconds, 1e-9)
            found["tokens_per_second"] = (progress.target_tokens - self._seen.target_tokens) / seconds
        return found

    def _show(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        text = f"loss {values['loss']:.3f}  perplexity {values['perplexity']:,.2f}  rate {values['rate']:.2e}"
        if "tokens_per_second" in values:
            text += f"  {values['tokens_per_second']:,.0f} target tokens/s"
        self._bar.update(self._task, completed=progress.update, description=text)
        if not self._console.is_terminal:
            line = f"update {progress.update}  epoch {progress.epoch}  {text}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def validation(
        self, progress: TrainingProgress, values: Mapping[str, float], examples: Sequence[ShownSentence] = ()
    ) -> None:
        """Show and record a validation."""
        values = with_perplexity(values)
        text = "  ".join(f"{name} {value:,.3f}" for name, value in values.items() if "/" not in name)
        self._console.print(f"validation after update {progress.update}: {text}", highlight=False, soft_wrap=True)
        for one in examples:
            line = f"  {shortened(one.source)}  =>  {shortened(one.translation)}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._record("valid", progress, values)
        if examples and self._trackers is not None:
            self._trackers.examples(progress.update, examples)

    def _record(self, group: str, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        self._metrics.add(group, progress, values)
        if self._trackers is not None:
            self._trackers.scalars(group, progress.update, values)


def perplexity(nll: float) -> float:
    """Of a mean negative log-likelihood in nats; one too large for a number is infinite."""
    return math.exp(nll) if nll < _LARGEST else math.inf


def with_perplexity(values: Mapping[str, float]) -> dict[str, float]:
    """A validation's values, the perplexity behind the loss, which is not smoothed there."""
    found: dict[str, float] = {}
    for name, value in values.items():
        found[name] = value
        if name == "loss":
            found["perplexity"] = perplexity(value)
    return found


def shortened(text: str) -> str:
    """As much of a text as fits a line beside another."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class MetricsFile:
    """A line of JSON for every report: ``group``, ``update``, ``epoch``, ``target_tokens``, ``seconds`` and the values.

    Where a run goes on from a checkpoint, the lines of updates that are made once more are taken out first.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = False

    def add(self, group: str, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        if not self._begun:
            self._forget_from(progress.update)
            self._begun = True
        place = {name: getattr(progress, name) for name in ("update", "epoch", "target_tokens")}
        line = {"group": group, **place, "seconds": round(progress.seconds, 1), **values}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _forget_from(self, update: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not self._path.exists():
            return
        kept = [line for line in read_metrics(self._path) if line["update"] < update]
        partial = self._path.with_suffix(".partial")
        partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        partial.replace(self._path)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's ``metrics.jsonl``; one that a crash has cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found
