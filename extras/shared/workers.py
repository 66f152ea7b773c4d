"""What processes that work for another one have in common: its end is theirs, and signals are its own to heed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def serve_parent() -> None:
    """Be called first by a process that ``multiprocessing`` has started to work for its parent.

    A Ctrl-C goes to the whole group; the parent reads it and ends its workers. A parent that was killed ends nobody:
    without this its workers would wait for more work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


@contextmanager
def deaf_to_interruption() -> Iterator[None]:
    """Processes that this thread starts meanwhile get no SIGINT, not even before they call :func:`serve_parent`.

    They inherit what their thread blocks, where the system has such masks.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
