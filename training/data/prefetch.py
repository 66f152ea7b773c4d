"""Preparing the next batches in the background while the device works on one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
_POLL = 0.1  # seconds after which a blocked worker looks whether it is still wanted


def prefetch(function: Callable[[A], B], arguments: Iterable[A], *, depth: int = 4) -> Generator[B, None, None]:
    """``map(function, arguments)`` in order, computed by one thread up to ``depth`` results ahead.

    What the function raises is raised here, in its turn. Closing the iterator (leaving the loop) ends the thread.

    Args:
        function: makes a result, such as ``partial(collate, data)``.
        arguments: what to call it with, such as the plans of an epoch that are left to do.
        depth: results kept ready.
    """
    results: queue.Queue[tuple[str, B | BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(kind: str, value: B | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                results.put((kind, value), timeout=_POLL)
                return

    def work() -> None:
        try:
            for argument in arguments:
                put("result", function(argument))
                if stopped.is_set():
                    return
            put("end", None)
        except BaseException as error:  # handed over, not swallowed
            put("error", error)

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = results.get()
            if isinstance(value, BaseException) and kind == "error":
                raise value
            if kind == "end":
                return
            yield value  # type: ignore[misc]  # a result, by its kind
    finally:
        stopped.set()
        thread.join()
