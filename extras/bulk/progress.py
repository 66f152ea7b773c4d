"""How far it is: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

EVERY = 60.0  # seconds between two lines in a log
_PERIOD = 120.0  # seconds of which the speed is taken that the time left is reckoned from


class ProgressMeter(AbstractContextManager["ProgressMeter"]):
    """Shows lines done, lines a second, and the time left, by the bytes of the input."""

    def __init__(
        self,
        size: int | None,
        lines: int = 0,
        done: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            size: bytes of the input; None where nobody knows.
            lines, done: lines and bytes that an earlier run has done.
            console: where to; standard error.
            clock: seconds.
        """
        self._console, self._clock = console or Console(stderr=True), clock
        self._lines, self._before = lines, lines
        self._began = self._told = clock()
        columns = (
            SpinnerColumn(),
            BarColumn(),
            TaskProgressColumn(show_speed=False),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(
            *columns, console=self._console, transient=True, speed_estimate_period=_PERIOD, get_time=clock
        )
        self._task = self._bar.add_task(self._words(), total=size, completed=done)

    def __enter__(self) -> ProgressMeter:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def advance(self, lines: int, size: int) -> None:
        """Count lines that are translated, and their bytes of the input on disk."""
        self._lines += lines
        self._bar.update(self._task, advance=size, description=self._words())
        if not self._console.is_terminal and self._clock() - self._told >= EVERY:
            self._told = self._clock()
            self._console.print(self._words() + self._left(), highlight=False, soft_wrap=True)

    def _words(self) -> str:
        rate = (self._lines - self._before) / max(self._clock() - self._began, 1e-9)
        return f"{self._lines:,} lines, {rate:,.0f}/s"

    def _left(self) -> str:
        """Of the input and of the time, for a log."""
        (task,) = self._bar.tasks
        if task.time_remaining is None:  # nobody knows the size
            return ""
        return f", {task.percentage:.1f}%, {timedelta(seconds=round(task.time_remaining))} left"
