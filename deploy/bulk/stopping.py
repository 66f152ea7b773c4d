"""Ctrl-C and SIGTERM: at once where nothing is half done, otherwise as soon as it is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import Any

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


class Stopper(AbstractContextManager["Stopper"]):
    """Raises Stopped on the first signal; the second one does what it always does."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._holding = False
        self._asked: int | None = None

    def __enter__(self) -> Stopper:
        if threading.current_thread() is threading.main_thread():  # nobody else may set handlers
            self._before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Nothing is raised inside; at its end what would have been."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._asked is not None:
            raise Stopped(self._asked)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        for other, handler in self._before.items():
            signal.signal(other, handler)
        self._asked = number
        if not self._holding:
            raise Stopped(number)
