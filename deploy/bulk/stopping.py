"""Ctrl-C and SIGTERM: what is written stays, and what was begun is cut off by the run that goes on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The work was ended from outside.

    Like KeyboardInterrupt no Exception: a search that fails is done again sentence by sentence, whatever the error is,
    and that is no answer to a signal.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(f"stopped by {signal.Signals(number).name}")


@contextmanager
def stoppable() -> Iterator[None]:
    """Raises Stopped on the first signal; the second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():  # nobody else may set handlers
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        raise Stopped(number)

    def restore() -> None:
        for other, handler in before.items():
            signal.signal(other, handler)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        restore()
