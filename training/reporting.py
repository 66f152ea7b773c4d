"""Where a training run's progress goes: the terminal and TensorBoard event files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from training import checkpoint


class TerminalReporter:
    """A progress bar with loss, learning rate, tokens/s and time left; plain lines where there is no terminal.

    Args:
        updates: the last update.
        folder: where the TensorBoard event files go.
        console: where to draw.
    """

    def __init__(self, updates: int, folder: Path, console: Console) -> None:
        self._console = console
        columns = (TextColumn("update"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=updates)
        self._events = _event_writer(folder, console)
        self._seen: tuple[float, int] | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._events is not None:
            self._events.close()

    def update(self, progress: checkpoint.Progress, values: Mapping[str, float]) -> None:
        """Show and record one log interval."""
        now = time.monotonic()
        text = f"loss {values['loss']:.3f}  rate {values['rate']:.2e}"
        if self._seen is not None:
            speed = (progress.target_tokens - self._seen[1]) / max(now - self._seen[0], 1e-9)
            text += f"  {speed:,.0f} target tokens/s"
            values = {**values, "tokens_per_second": speed}
        self._seen = (now, progress.target_tokens)
        self._bar.update(self._task, completed=progress.update, description=text)
        if not self._console.is_terminal:
            self._console.print(f"update {progress.update}  epoch {progress.epoch}  {text}", highlight=False)
        self._record("train", progress.update, values)

    def validation(self, progress: checkpoint.Progress, values: Mapping[str, float]) -> None:
        """Show and record a validation."""
        text = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
        self._console.print(f"validation after update {progress.update}: {text}", highlight=False)
        self._record("valid", progress.update, values)

    def _record(self, group: str, update: int, values: Mapping[str, float]) -> None:
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(f"{group}/{name}", value, update)


def _event_writer(folder: Path, console: Console) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        console.print("tensorboard is not installed: no event files are written")
        return None
    return SummaryWriter(str(folder))
