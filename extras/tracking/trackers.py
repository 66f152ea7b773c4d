"""Other places for progress than TensorBoard: what the entry points of the group ``tandem.trackers`` name.

An entry point names what makes a tracker of a run: it is called with the run's folder and the plain form of its recipe,
once there is something to report. `tandem train --track NAME` asks for one; what is merely installed stays unused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from tandem.models.errors import ConfigError
from tandem.training.loop.reporting import ShownSentence

GROUP = "tandem.trackers"


class NamedTracker(Protocol):
    """Where a run's progress goes that somebody's package brings."""

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        """Called with what a line of ``metrics.jsonl`` has, ``group`` being ``"train"`` or ``"valid"``."""

    def text(self, name: str, update: int, markdown: str) -> None:
        """Called with the sentences that a validation shows."""

    def close(self) -> None:
        """Called when training ends, however it does."""


MakesTracker = Callable[[Path, Mapping[str, Any]], NamedTracker]


class Trackers:
    """Several trackers as one that never fails: a tracker that does is named, and left out from then on.

    A training of days does not end because a server of somebody's is away.

    Args:
        makers: by name.
        folder: of the run.
        recipe: its plain form.
        warn: told which tracker failed, and how.
    """

    def __init__(
        self, makers: Mapping[str, MakesTracker], folder: Path, recipe: Mapping[str, Any], warn: Callable[[str], None]
    ) -> None:
        self._makers, self._folder, self._recipe, self._warn = dict(makers), folder, recipe, warn
        self._made: dict[str, NamedTracker] = {}

    def scalars(self, group: str, update: int, values: Mapping[str, float]) -> None:
        self._each(lambda tracker: tracker.scalars(group, update, values))

    def examples(self, update: int, examples: Sequence[ShownSentence]) -> None:
        markdown = examples_table(examples)
        self._each(lambda tracker: tracker.text("valid/examples", update, markdown))

    def close(self) -> None:
        self._makers.clear()  # what was never reported to is not made to be closed
        self._each(lambda tracker: tracker.close())

    def _each(self, tell: Callable[[NamedTracker], None]) -> None:
        for name in [*self._made, *self._makers]:
            try:
                if name in self._makers:
                    self._made[name] = self._makers.pop(name)(self._folder, self._recipe)
                tell(self._made[name])
            except Exception as error:  # another's code, which may raise anything
                self._made.pop(name, None)
                self._warn(f"tracker {name} failed ({type(error).__name__}: {error}): it gets no more of this training")


def tracker_makers(names: Sequence[str]) -> dict[str, MakesTracker]:
    """What makes the trackers of these names.

    Raises:
        ConfigError: there is none of a name; the message lists those that are installed.
    """
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if unknown := [name for name in names if name not in installed]:
        known = ", ".join(sorted(installed)) or "none is installed"
        raise ConfigError(f"--track {unknown[0]}: no such tracker in the entry points {GROUP!r}: {known}")
    return {name: installed[name].load() for name in names}


def examples_table(examples: Sequence[ShownSentence]) -> str:
    """In Markdown, whole."""
    rows = [("source", "translation", "reference"), ("---",) * 3]
    rows += [(one.source, one.translation, one.reference) for one in examples]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
