"""Keys as requests carry them, and who a request's caller is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network

import structlog
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from tandem.service.callers import ANONYMOUS, Access, Caller
from tandem.service.http.parts import http_parts

_NETWORK = 64  # bits of an IPv6 address that name a network: whoever has one has all of its addresses


@dataclass(frozen=True, slots=True)
class Sender:
    """What the text service is told of a request's origin.

    Attributes:
        tag: names the request in logs.
        caller: whose turn it takes: a key's name, or without one an address, which is kept no longer than it waits.
    """

    tag: str
    caller: str


def key_in_header(scope: Scope) -> str | None:
    """A key in ``Authorization``; other schemes are a proxy's business."""
    scheme, _, value = Headers(scope=scope).get("authorization", "").partition(" ")
    return value.strip() or None if scheme.lower() in _schemes() else None


def key_before_body(connection: HTTPConnection) -> str | None:
    """What a request has as its key outside of its body: in ``Authorization``, else in the query string."""
    return key_in_header(connection.scope) or connection.query_params.get("api_key") or None


def caller_of(connection: HTTPConnection, access: Access, api_key: str | None = None) -> Caller:
    """Who sends a request: from ``Authorization``, else from the field ``api_key``; noted for metrics and logs.

    Raises:
        KeyMissing, KeyInvalid: see ``Access.caller``.
    """
    return _noted(connection.scope, access.caller(key_in_header(connection.scope) or api_key))


async def counted_caller(connection: HTTPConnection, access: Access, api_key: str | None = None) -> Caller:
    """Who sends a request that costs no characters, but counts against the caller's rate.

    Raises:
        KeyMissing, KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
    """
    caller = caller_of(connection, access, api_key)
    await access.charge(caller, 0)
    return caller


def admin_of(connection: HTTPConnection, access: Access) -> Caller:
    """The administrator who sends a request; the key is taken from the header only.

    Raises:
        KeyMissing, KeyInvalid, AdminRequired: see ``Access.admin``.
    """
    secret = key_in_header(connection.scope)
    known = access.find(secret)
    if known is not None:
        _noted(connection.scope, known)  # who is refused here is noted too
    return access.admin(secret)


def sender_of(connection: HTTPConnection) -> Sender:
    """The origin of a request whose caller has been found."""
    caller = str(connection.state.caller)
    if caller == ANONYMOUS and connection.client is not None:
        caller = f"{caller} {_network_of(connection.client.host)}"
    return Sender(str(connection.state.request_id), caller)


@cache
def _schemes() -> frozenset[str]:
    """Those of keys, ours and those of extras."""
    return frozenset(("bearer", *(scheme.scheme.lower() for part in http_parts() for scheme in part.keys)))


def _network_of(host: str) -> str:
    try:
        return str(ip_network(f"{host}/{_NETWORK}", strict=False)) if ":" in host else host
    except ValueError:  # no address
        return host


def _noted(scope: Scope, caller: Caller) -> Caller:
    scope.setdefault("state", {})["caller"] = caller.name
    structlog.contextvars.bind_contextvars(caller=caller.name)
    return caller
