"""Requests as sessions of the engine: what has begun may end, though the service drains or its bundle is unloaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from service.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")


class HasEngine(Protocol):
    """What has an engine of its own."""

    _engine: Engine


S = TypeVar("S", bound=HasEngine)


def in_session(
    method: Callable[Concatenate[S, P], Awaitable[T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method that looks for its bundle and decodes within one session.

    Raises Draining where nothing may begin any more.
    """

    @wraps(method)
    async def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._engine.session():
            return await method(self, *args, **kwargs)

    return wrapper
