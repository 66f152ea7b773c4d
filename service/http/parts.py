"""What an extra may bring to the HTTP side, and all that the extras here bring to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from tandem.service.ports import extras, load
from tandem.service.settings import Settings

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""What FastAPI is told where there are no traces: whatever its variables say, it reports nothing by itself."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """What the client gets to see."""

    status: int
    code: str
    message: str
    detail: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> dict[str, Any]:
        """The reply's JSON."""
        content: dict[str, Any] = {"error": self.message, "code": self.code, "request_id": request_id}
        if self.detail is not None:
            content["detail"] = self.detail
        return content


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """The reply to an error of one type; its message is the error's, and so are its ``detail`` and ``retry_after``."""

    status: int
    code: str
    headers: Mapping[str, str] = field(default_factory=dict)


ErrorRule: TypeAlias = ReplyRule | Callable[[Any], ErrorReply]
"""What an error becomes; a function where the type alone does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How errors are worded for the clients of another service, which ask under paths of their own.

    Attributes:
        name: of the service, for the documentation.
        prefixes: that the paths begin with.
        worded: of a reply as ours, and the request's id, the reply and its body as these clients read them.
        keys: names of the ``KeyScheme`` that they send.
    """

    name: str
    prefixes: tuple[str, ...]
    worded: Callable[[ErrorReply, str], tuple[ErrorReply, dict[str, Any]]]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyScheme:
    """A scheme of ``Authorization`` that keys come with.

    Attributes:
        name: in the OpenAPI document.
        scheme: in the header; its case does not matter.
        described: the security scheme of the document.
    """

    name: str
    scheme: str
    described: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyBounds:
    """Bytes that the bodies of certain paths may have, instead of ``max_body_bytes``.

    Attributes:
        whole: of bodies that are read before their route is called.
        streamed: of those that their route reads piece by piece.
        large: paths whose bodies may have more than others, where a request says so and has a valid key in its header,
            and how much; few at a time, for each is in memory as a whole.
    """

    whole: Mapping[str, int] = field(default_factory=dict)
    streamed: Mapping[str, int] = field(default_factory=dict)
    large: tuple[re.Pattern[str], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPart:
    """A part of the HTTP side.

    Attributes:
        routes: of the app.
        errors: by exact type, or a base of it, what errors become.
        dialect: how the errors of some of its routes are worded; None = as ours.
        decoding: paths that decode whatever is posted to them: refused early while the queue is full, and counted for
            the service level objectives.
        bodies: bounds, by the settings.
        exposed_headers: of replies, for pages of other origins (CORS).
        keys: schemes of keys, which every route takes.
        tags: of the OpenAPI document.
        needs_key: those of these tags whose routes answer nobody without a key.
        models: of the bodies that routes read by themselves, so that the document would not have them.
        file_endings: of the names of files that its routes translate; pages are told of them.
    """

    routes: Sequence[BaseRoute] = ()
    errors: Mapping[type[BaseException], ErrorRule] = field(default_factory=dict)
    dialect: Dialect | None = None
    decoding: tuple[str, ...] = ()
    bodies: Callable[[Settings], BodyBounds] | None = None
    exposed_headers: tuple[str, ...] = ()
    keys: tuple[KeyScheme, ...] = ()
    tags: tuple[dict[str, str], ...] = ()
    needs_key: tuple[str, ...] = ()
    models: tuple[type[Any], ...] = ()
    file_endings: tuple[str, ...] = ()


class Tracing(Protocol):
    """Makes and exports the traces of one app."""

    @property
    def telemetry(self) -> TelemetryConfig:
        """The ``telemetry`` option of the FastAPI app."""

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app, whose work finds the tracer (``service.telemetry.tracing``); outermost."""

    def close(self) -> None:
        """Export what is left. Blocks."""


OpenTracing: TypeAlias = Callable[[Settings], Tracing | None]
"""Opens tracing; gives None where the settings ask for none. Raises ConfigError where its packages are missing."""


@cache
def http_parts() -> tuple[HttpPart, ...]:
    """Those of all extras whose needs are met."""
    names = {extra.name for extra in extras()}
    return tuple(load(place) for extra in extras() for place, needed in extra.http.items() if names.issuperset(needed))


@cache
def dialects() -> tuple[Dialect, ...]:
    """Those of all parts."""
    return tuple(part.dialect for part in http_parts() if part.dialect is not None)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that is spoken under a path; None = ours."""
    return next((dialect for dialect in dialects() if path.startswith(dialect.prefixes)), None)
