"""Paths of requests as routes have them: no slash at the end, and behind a proxy with the prefix that it names."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

_PAGES = ("/docs/", "/web/")  # what they name is relative to them
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]{1,100}){1,10}/?")


class RequestPath:
    """Pure ASGI middleware, before all that looks at a path.

    A proxy that serves this under ``/mt`` and passes ``/translate`` on says so in ``X-Forwarded-Prefix``; then links in
    replies begin with it, and so do the paths of the OpenAPI document. It concerns nobody but who sends it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, prefix = scope["path"], Headers(scope=scope).get("x-forwarded-prefix", "")
            changed = {}
            if path.endswith("/") and path.strip("/") and not path.startswith(_PAGES):
                changed = {"path": path.rstrip("/"), "raw_path": scope.get("raw_path", b"").rstrip(b"/")}
            if _PREFIX.fullmatch(prefix):
                changed["root_path"] = prefix.rstrip("/")
            scope = {**scope, **changed} if changed else scope
        await self._app(scope, receive, send)
