"""Threads at which callers take turns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class TurnThreads:
    """Threads whose work is taken from one caller after another: whoever asks for much waits behind itself.

    Work is not interrupted, so another caller waits for one piece of it at most: on an ordinary core 0.6 s, of the
    worst texts that we know.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tandem-text")
        self._free = threads
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by caller, whose turn is next first

    async def run(self, caller: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a caller's work in a thread, when it is its turn. Its log lines carry the request's id, too."""
        await self._turn(caller)
        loop, context = asyncio.get_running_loop(), copy_context()
        try:
            running = self._threads.submit(lambda: context.run(work, *args, **kwargs))
        except BaseException:
            self._pass_on()
            raise

        def ended(_: Future[T]) -> None:  # also where nobody waits for it any more
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._pass_on)

        running.add_done_callback(ended)
        return await asyncio.wrap_future(running)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, caller: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came too late
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """A thread is free: it is the turn of the caller who has waited longest for one."""
        while self._waiting:
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
