"""Under overload most requests are refused: each must cost next to nothing, or refusing eats what it should protect."""

from __future__ import annotations

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

DECODING_PATHS = ("/translate", "/summarize", "/postedit", "/v2/translate")


class LoadShedding:
    """Refuses requests for decoding while the queue is full, before their bodies are read, checked and split.

    What is let in here may still be refused when it is submitted.
    """

    def __init__(self, app: ASGIApp, paths: Collection[str]) -> None:
        """
        Args:
            app: what answers the others; its state holds the engine.
            paths: that decode whatever is posted to them.
        """
        self._app = app
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Overloaded, which becomes a 503 with ``Retry-After``."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self._paths:
            scope["state"]["route"] = scope["path"]  # for the metrics: no route will be looked up
            scope["app"].state.parts.engine.refuse_if_full()
        await self._app(scope, receive, send)
