"""TensorBoard's event files of a run, with pictures of what the model looks at; and all trackers as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tandem.extras.tracking.pictures import picture
from tandem.extras.tracking.trackers import Trackers, examples_table, tracker_makers
from tandem.training.loop.reporting import OpenTracker, ShownSentence, Tracker


class EventFiles:
    """Writes what it is told into the run's folder ``events``, made with the first numbers.

    Args:
        folder: of the run.
        warn: told where TensorBoard is not installed, and nothing is written.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder / "events", warn
        self._events: Any = None
        self._begun = False

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        if not self._begun:
            self._events, self._begun = event_writer(self._folder, self._warn, update), True
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(f"{group}/{name}", value, update)

    def examples(self, update: int, examples: Sequence[ShownSentence]) -> None:
        if self._events is None:
            return
        self._events.add_text("valid/examples", examples_table(examples), update)
        for number, one in enumerate(examples, 1):
            if one.seen:
                self._events.add_image(f"valid/attention/{number}", picture(one.seen), update, dataformats="HWC")

    def close(self) -> None:
        if self._events is not None:
            self._events.close()


class _All:
    """Several trackers as one."""

    def __init__(self, *trackers: Tracker) -> None:
        self._trackers = trackers

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        for tracker in self._trackers:
            tracker.scalars(group, update, values)

    def examples(self, update: int, examples: Sequence[ShownSentence]) -> None:
        for tracker in self._trackers:
            tracker.examples(update, examples)

    def close(self) -> None:
        for tracker in self._trackers:
            tracker.close()


def find_trackers(names: Sequence[str]) -> OpenTracker:
    """What opens event files, and the trackers of these names. Raises ConfigError where one of them is unknown."""
    makers = tracker_makers(names)

    def opened(folder: Path, recipe: Mapping[str, Any], warn: Callable[[str], None]) -> Tracker:
        return _All(EventFiles(folder, warn), Trackers(makers, folder, recipe, warn))

    return opened


def event_writer(folder: Path, warn: Callable[[str], None], first: int) -> Any:
    """TensorBoard's; of a run that goes on after a crash it shows what was written from this update on once."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        warn("tensorboard is not installed: no event files are written")
        return None
    return SummaryWriter(str(folder), purge_step=first)
