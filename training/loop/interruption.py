"""Ctrl-C and SIGTERM let the running update finish and be saved."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether training is asked to end.

    Args:
        patient: take a second signal for the first one again, as a launcher sends on what the terminal sent already.
    """

    def __init__(self, patient: bool) -> None:
        self._patient = patient
        self.asked = False

    def signalled(self, number: int, frame: FrameType | None) -> None:
        """The handler: the second signal does not wait any more."""
        if self.asked and not self._patient:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def interruptible(patient: bool) -> Iterator[Interruption]:
    """Handle SIGINT and SIGTERM, and put the former handlers back.

    Outside the main thread no handler can be set, and whoever runs the thread has to end it.
    """
    interruption = Interruption(patient)
    handlers = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handlers[number] = signal.signal(number, interruption.signalled)
    except ValueError:
        pass
    try:
        yield interruption
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
