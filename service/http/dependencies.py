"""What routes are given: the parts of the running service, the fields of the request, its id, and who sends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache, partial
from ipaddress import ip_network
from typing import Annotated, Any, TypeAlias, TypeVar

import structlog
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from tandem.service.api.schemas import DecodingFields, PosteditRequest, SummarizeRequest, TranslateRequest
from tandem.service.bundles.readiness import Readiness
from tandem.service.callers import ANONYMOUS, Access, Accounts, Caller, Memories, StoredGlossaries
from tandem.service.engine import Engine, Priority
from tandem.service.http.intake import read_fields
from tandem.service.http.parts import http_parts
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import Metrics
from tandem.service.translation.requests import Context, Recall, priority_of
from tandem.service.translation.texts import TextService

_NETWORK = 64  # bits of an IPv6 address that name a network: whoever has one has all of its addresses

Fields = TypeVar("Fields")
Resource = TypeVar("Resource")


@dataclass(frozen=True, slots=True)
class Parts:
    """The running service; made by the app's lifespan.

    Attributes:
        resources: what extras have opened, by its type.
    """

    engine: Engine
    texts: TextService
    readiness: Readiness
    metrics: Metrics
    settings: Settings
    glossaries: StoredGlossaries
    memory: Memories
    access: Access
    resources: dict[type[object], object] = field(default_factory=dict)

    def resource(self, kind: type[Resource]) -> Resource:
        """What an extra has opened. Raises KeyError where nothing of that type is open."""
        found = self.resources[kind]
        assert isinstance(found, kind)
        return found


AccountsOpener: TypeAlias = Callable[[Settings, Metrics], AbstractAsyncContextManager[Accounts]]
"""Opens what knows callers, and registers what it counts with the metrics."""
Opener: TypeAlias = Callable[[Parts], AbstractAsyncContextManager[object]]
"""Opens what an extra brings to the running service, and registers what it counts with the metrics."""


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


async def parts(request: Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


async def request_id(request: Request) -> str:
    return str(request.state.request_id)


def fields_of(model: type[Fields]) -> Callable[[Request], Awaitable[Fields]]:
    """A dependency that reads a request's fields. Raises what ``read_fields`` raises."""

    async def read(request: Request) -> Fields:
        return await read_fields(request, model)

    return read


translate_request = fields_of(TranslateRequest)
postedit_request = fields_of(PosteditRequest)
summarize_request = fields_of(SummarizeRequest)


def charged(read: Callable[[Request], Awaitable[DecodingFields]]) -> Callable[..., AsyncIterator[Caller]]:
    """A dependency for routes whose fields ``read`` gives: finds the caller and charges for the texts.

    The characters are given back where the route fails. Raises what ``caller_of`` and ``Access.charge`` raise.
    """

    async def charge(request: Request, fields: Any = Depends(read)) -> AsyncIterator[Caller]:
        running = await parts(request)
        access = running.access
        caller = caller_of(request, access, fields.api_key)
        characters = sum(len(text) for texts in fields.columns.values() for text in texts)
        note_priority(request, priority_of(characters, fields.priority, running.settings.bulk_characters))
        own = fields.timeout is not None and fields.timeout < running.settings.request_timeout
        request.scope["state"]["own_deadline"] = own
        async with access.charged(caller, characters) as receipt:
            yield caller
            if request.scope["state"].get("failed"):  # after the reply has begun
                await access.refund(receipt)

    return charge


def note_priority(request: Request, priority: Priority) -> None:
    """Tell the metrics whether somebody waits for the reply, or it is a piece of bulk work."""
    request.scope["state"]["priority"] = priority.name.lower()


def memory_of(parts: Parts, caller: str) -> Recall | None:
    """The translation memory of a caller; None where it has no key, and so no memory."""
    return None if caller == ANONYMOUS else partial(parts.memory.recall, caller)


async def admin(request: Request) -> Caller:
    """Raises what ``Access.admin`` raises."""
    return admin_of(request, (await parts(request)).access)


async def sender(request: Request) -> Sender:
    """The origin of a request; a coroutine, since FastAPI would run ``sender_of`` itself in a thread."""
    return sender_of(request)


def context_of(sender: Sender, **said: Any) -> Context:
    """A request's context: whose it is, and what else is ``said`` of it."""
    return Context(tag=sender.tag, caller=sender.caller, **said)


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


PartsDep = Annotated[Parts, Depends(parts)]
SenderDep = Annotated[Sender, Depends(sender)]
"""Of a request whose caller an earlier dependency has found."""
RequestId = Annotated[str, Depends(request_id)]
TranslateFields = Annotated[TranslateRequest, Depends(translate_request)]
PosteditFields = Annotated[PosteditRequest, Depends(postedit_request)]
SummarizeFields = Annotated[SummarizeRequest, Depends(summarize_request)]
