"""The hosts that a server goes by: a web page must not reach it under a name of its own (DNS rebinding).

A browser lets a page read what its own host answers, and whoever made the page decides where that name leads: to
127.0.0.1, say. A server that asks for no key has nothing else to tell such a page by. (Starlette's middleware answers
in plain text, and knows the names of its list only.)
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.errors import HttpError
from service.settings import Settings

_ANY = "*"


class HostCheck:
    """Pure ASGI middleware: refuses requests for other hosts than the server's."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._names = _names(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpError: 421."""
        if scope["type"] == "http" and self._names is not None:
            host = Headers(scope=scope).get("host", "")
            if host and not self._is_known(host, self._names):
                name = _name_of(host)[:100]
                message = (
                    f"this server does not answer for the host {name!r}; ask for it by its address, as localhost, or "
                    "list that name in TANDEM_ALLOWED_HOSTS"
                )
                raise HttpError(421, "host_not_allowed", message)
        await self._app(scope, receive, send)

    @staticmethod
    def _is_known(host: str, names: frozenset[str]) -> bool:
        """Whether a name is the server's. No page can be served from under an address that is not its server's own."""
        name = _name_of(host)
        return name in names or name.endswith(".localhost") or _is_address(name)


def _names(settings: Settings) -> frozenset[str] | None:
    """Those that a server answers for, besides addresses; None = whatever it is called.

    Without a list that is for servers that ask for no key and that only their own machine reaches: of others nobody
    here knows the names.
    """
    listed = {name.lower().rstrip(".") for name in settings.allowed_hosts}
    local = settings.host == "localhost" or (_is_address(settings.host) and ip_address(settings.host).is_loopback)
    if _ANY in listed or not (listed or (local and not settings.require_key)):
        return None
    return frozenset({"localhost", settings.host.lower(), socket.gethostname().lower(), *listed})


def _name_of(host: str) -> str:
    """A ``Host`` header without the port; as it is where it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or host).rstrip(".")
    except ValueError:
        return host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
