"""What every request passes on its way in, and every reply on its way out: pure ASGI middleware, outermost first."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.service.http.error_replies import HttpError
from tandem.service.settings import Settings

OPERATIONS = ("/healthz", "/readyz", "/metrics", "/health")
"""Paths that are answered however many connections there are: those who run the service need them then."""
OVER_BOUND = "connections_over"
"""State of requests whose connection is one too many, with the bound."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_REFUSED_FEATURES = (
    "accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen", "geolocation",
    "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture", "publickey-credentials-get",
    "screen-wake-lock", "usb", "xr-spatial-tracking",
)  # fmt: skip
SECURITY_HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Permissions-Policy", ", ".join(f"{feature}=()" for feature in _REFUSED_FEATURES)),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),  # replies hold people's texts
)
_ENCODED = tuple((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS)

_PAGES = ("/docs/", "/web/")  # what they name is relative to them
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]{1,100}){1,10}/?")

_ANY = "*"
_SAFE = ("GET", "HEAD", "OPTIONS")
_EXTENSIONS = ("chrome-extension", "moz-extension", "safari-web-extension")  # installed by who uses the browser
# RFC 6761, RFC 6762, RFC 8375, ICANN's private-use domain, and two that are used for networks and never delegated
_PRIVATE_SUFFIXES = (".localhost", ".test", ".local", ".home.arpa", ".internal", ".lan", ".svc")


class SecurityHeaders:
    """Headers that every reply has, whatever made it; outermost. One that the reply has already stays as it is.

    What is for HTTPS only (HSTS) is left to the proxy that speaks it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                message = {**message, "headers": given + [one for one in _ENCODED if one[0] not in names]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class RequestPath:
    """Paths as routes have them, before all that looks at one: no slash at the end, and the prefix of a proxy.

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


class HostCheck:
    """Pure ASGI middleware: refuses requests for other hosts than the server's.

    A web page must not reach it under a name of its own (DNS rebinding). A browser lets a page read what its own host
    answers, and whoever made the page decides where that name leads: to 127.0.0.1, or to an address of the network that
    only the browser can reach. A server that asks for no key has nothing else to tell such a page by. The name must be
    one that public DNS answers for, so addresses, names without a dot and names under domains kept out of it need no
    list. (Starlette's middleware answers in plain text, and knows the names of its list only.)
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._names = _names(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpError: 421."""
        if scope["type"] == "http" and self._names is not None:
            host = Headers(scope=scope).get("host", "")
            name = _name_of(host)
            if host and name not in self._names and not _is_private(name):
                message = (
                    f"this server does not answer for the host {name[:100]!r}; ask for it by its address, as "
                    "localhost, or list that name in TANDEM_ALLOWED_HOSTS"
                )
                raise HttpError(421, "host_not_allowed", message)
        await self._app(scope, receive, send)


class CrossSiteCheck:
    """Pure ASGI middleware: refuses what a page of another site sends to change or decode something.

    Such a page cannot read the reply, but a form of its needs no permission to be sent. Browsers say where a request
    comes from (Fetch Metadata, ``Sec-Fetch-Site``), and pages cannot change that; other clients do not send it.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._checks = not settings.asks_for_keys and _ANY not in settings.cors_origins
        self._allowed = frozenset(settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpError: 403."""
        if scope["type"] == "http" and self._checks and scope["method"] not in _SAFE:
            headers = Headers(scope=scope)
            origin = headers.get("origin", "")
            known = origin in self._allowed or urlsplit(origin).scheme in _EXTENSIONS
            if headers.get("sec-fetch-site", "") == "cross-site" and not known:
                message = (
                    f"this server takes no requests from pages of other sites ({origin[:100]!r}); list their origin in"
                    " TANDEM_CORS_ORIGINS"
                )
                raise HttpError(403, "cross_site", message)
        await self._app(scope, receive, send)


class ConnectionLimit:
    """Pure ASGI middleware: answers 503 where a request's protocol has marked its connection as one too many."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpError: 503."""
        bound = scope.get("state", {}).get(OVER_BOUND) if scope["type"] == "http" else None
        if bound is not None and scope["path"] not in OPERATIONS:
            message = f"at most {bound} connections at once; try again in a few seconds"
            headers = {"Connection": "close"}  # makes room
            raise HttpError(503, "too_many_connections", message, {"bound": bound}, headers)
        await self._app(scope, receive, send)


def _names(settings: Settings) -> frozenset[str] | None:
    """Public names that a server answers for; None = whatever it is called, as servers do that ask for keys."""
    listed = {name.lower().rstrip(".") for name in settings.allowed_hosts}
    if _ANY in listed or (settings.asks_for_keys and not listed):
        return None
    return frozenset({settings.host.lower(), socket.gethostname().lower(), *listed})


def _is_private(name: str) -> bool:
    """Whether a name is an address, or one that nobody can make lead elsewhere in public DNS."""
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES) or _is_address(name)


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
