"""Work that is done ahead of whoever asks for its results, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain, islice, repeat, takewhile
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(
    executor: Executor, function: Callable[[A], B], arguments: Iterable[A], ahead: int
) -> Generator[B, None, None]:
    """``map(function, arguments)`` in order, at most ``ahead`` results waiting (``Executor.map`` would read all)."""
    waiting: deque[Future[B]] = deque()
    for argument in arguments:
        waiting.append(executor.submit(function, argument))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def prefetch(function: Callable[[A], B], arguments: Iterable[A], *, depth: int = 4) -> Generator[B, None, None]:
    """``map(function, arguments)`` in order, computed by one thread up to ``depth`` results ahead.

    What the function raises is raised here, in its turn. Closing the iterator (leaving the loop) ends the thread.

    Args:
        function: makes a result, such as ``partial(collate, data)``.
        arguments: what to call it with, such as the plans of an epoch that are left to do; the thread asks for them.
        depth: results kept ready.
    """
    left = iter(arguments)
    thread = ThreadPoolExecutor(1, "prefetch")
    try:
        made = in_order(thread, lambda _: [function(argument) for argument in islice(left, 1)], repeat(None), depth)
        yield from chain.from_iterable(takewhile(bool, made))
    finally:
        thread.shutdown(cancel_futures=True)
