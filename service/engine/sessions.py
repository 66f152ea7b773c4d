"""Pieces of work that begin once and hand in sentences several times, or some time after they began.

A request chooses its bundle, splits its texts in a thread, and only then submits. What it began with must still be
there by then: a service that shuts down lets sessions go on that have begun, and a bundle is let go only when every
session has ended that may have seen it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.engine.errors import Draining


class Sessions:
    """The open sessions. Thread-safe through the condition that it is given."""

    def __init__(self, changed: threading.Condition) -> None:
        """Args: changed: notified whenever a session ends; its lock guards this record."""
        self._changed = changed
        self._open: set[int] = set()
        self._numbers = itertools.count()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def closed(self) -> bool:
        """Whether no session may begin any more."""
        return self._closed

    def close(self) -> None:
        """Let no further session begin; those that are open go on."""
        with self._changed:
            self._closed = True

    @contextmanager
    def session(self) -> Iterator[None]:
        """A session, open until the block is left. Raises Draining where none may begin."""
        with self._changed:
            if self._closed:
                raise Draining
            number = next(self._numbers)
            self._open.add(number)
        try:
            yield
        finally:
            with self._changed:
                self._open.discard(number)
                self._changed.notify_all()

    def wait_for_present(self, timeout: float) -> bool:
        """Block until those that are open now have ended. Returns False where that took longer, in seconds."""
        with self._changed:
            present = set(self._open)
            return self._changed.wait_for(lambda: present.isdisjoint(self._open), timeout)
