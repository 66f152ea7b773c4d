"""Pure ASGI middleware. (Starlette's ``BaseHTTPMiddleware`` would hide disconnects from the routes.)"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Collection, MutableMapping, Sequence
from contextlib import nullcontext
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.service.callers import Access
from tandem.service.engine import DecodingFailed, Draining, Overloaded
from tandem.service.errors import StorageError, TooLarge
from tandem.service.http.dependencies import key_in_header
from tandem.service.http.dialects.error_bodies import in_dialect
from tandem.service.http.edges import OPERATIONS
from tandem.service.http.error_replies import NotReady, body_timeout, reply_for
from tandem.service.http.intake import IN_THREAD, JsonBounds
from tandem.service.http.parts import BodyBounds
from tandem.service.telemetry.metrics import CLIENT_GONE, Metrics

_log = structlog.get_logger("tandem.http")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_REFUSALS = (401, 403, 413, 421, 429, 503)
_LARGE_BODIES = 2
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def error_response(error: BaseException, scope: Scope) -> JSONResponse:
    """The JSON reply to an error, in the shape of every error of ours, or of the dialect that the request speaks."""
    reply, body = in_dialect(reply_for(error), scope)
    if reply.status in _REFUSALS and not isinstance(error, Overloaded | Draining | NotReady):  # counted by the engine
        scope["state"]["refused"] = reply.code
    return JSONResponse(body, reply.status, dict(reply.headers))


class RequestContext:
    """Outermost: gives each request an id, one log line, its metrics, and a reply whatever happens inside."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        offered = Headers(scope=scope).get("x-request-id", "")
        request_id = offered if _REQUEST_ID.fullmatch(offered) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        with structlog.contextvars.bound_contextvars(request_id=request_id), self._metrics.in_flight.track_inprogress():
            started = time.perf_counter()
            status = await self._answer(scope, receive, send, request_id)
            self._note(scope, status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> int:
        """Run the app. Returns the status sent, or 499 where the client left before there was one."""
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            return CLIENT_GONE
        except Exception as error:
            response = error_response(error, scope)
            if isinstance(error, DecodingFailed):  # the worker has logged the cause
                _log.error("request_failed", incident=error.incident)
            elif isinstance(error, StorageError):
                _log.error("storage_unavailable", cause=str(error))
            elif response.status_code == 500:
                _log.exception("request_failed")
            if status:  # too late for another reply
                raise
            await response(scope, receive, send_with_id)
        return status

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope["state"].get("route") or getattr(scope.get("route"), "path", "unmatched")
        method = scope["method"] if scope["method"] in _METHODS else "other"  # labels must not grow without bound
        # A key's name, never the key; empty where nobody asked for one. Names come from the key store only.
        caller = scope["state"].get("caller", "")
        self._metrics.note(route, method, status, caller, seconds)
        if method == "POST":
            # What a stream broke off with counts, whatever status it began with. Who set a time of its own, below ours,
            # and did not wait longer has left: that is no failure of ours, of which objectives and alerts speak.
            counted = scope["state"].get("failed") or status
            if counted == 504 and scope["state"].get("own_deadline"):
                counted = CLIENT_GONE
            self._metrics.note_text(route, counted, scope["state"].get("priority", ""), seconds)
        if refused := scope["state"].get("refused"):
            self._metrics.refused[refused] += 1
        # Whoever watches a server asks every few seconds: as long as all is well, that is nothing to read.
        log = _log.debug if route in OPERATIONS and status < 400 else _log.info
        log("request", method=method, route=route, status=status, caller=caller, seconds=round(seconds, 6))


class RequestBody:
    """Reads the body under a bound of bytes and seconds, then runs the app and cancels it when the client leaves.

    The cancellation reaches the coroutine that waits for the engine, which takes its sentences back.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int,
        timeout: float,
        json_bounds: JsonBounds | None = None,
        others: Sequence[BodyBounds] = (),
    ) -> None:
        """
        Args:
            app: what answers.
            max_bytes: of a body.
            timeout: seconds in which it must arrive.
            json_bounds: of bodies that are JSON.
            others: bounds of certain paths, instead of ``max_bytes``.
        """
        self._app = app
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._json_bounds = json_bounds
        self._whole = {path: most for bounds in others for path, most in bounds.whole.items()}
        self._streamed = {path: most for bounds in others for path, most in bounds.streamed.items()}
        self._large = [bounds.large for bounds in others if bounds.large is not None]
        self._slots = asyncio.Semaphore(_LARGE_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        streamed = scope["method"] == "POST" and path in self._streamed
        max_bytes = self._streamed[path] if streamed else self._whole.get(path, self._max_bytes)
        declared = Headers(scope=scope).get("content-length", "0")
        large = self._large_bound(scope, declared)
        async with self._slots if large else nullcontext():
            exchange = _Exchange(self._app, receive, send, large or max_bytes, self._timeout)
            exchange.check_declared(declared)
            if not streamed:
                await self._check_json(scope, await exchange.read())
            await exchange.run(scope)

    def _large_bound(self, scope: Scope, declared: str) -> int | None:
        """The bound of a body that may be large and is; None where it may not, or is not."""
        if not declared.isdecimal() or int(declared[:20]) <= self._max_bytes:
            return None
        most = next((most for paths, most in self._large if paths.fullmatch(scope["path"])), None)
        if most is None:
            return None
        access: Access = scope["app"].state.parts.access
        return most if access.find(key_in_header(scope)) is not None else None

    async def _check_json(self, scope: Scope, body: bytes) -> None:
        bounds = self._json_bounds
        if bounds is None or not body or "json" not in Headers(scope=scope).get("content-type", "").lower():
            return
        if len(body) > IN_THREAD:
            await asyncio.to_thread(bounds.check, body)
        else:
            bounds.check(body)


class _Exchange:
    """One request, whose body comes under bounds: read beforehand, or by the app, piece by piece.

    The app runs while the connection is watched, from the moment on at which all of the body is there.
    """

    def __init__(self, app: ASGIApp, receive: Receive, send: Send, max_bytes: int, timeout: float) -> None:
        self._app, self._receive, self._send = app, receive, send
        self._max_bytes, self._timeout = max_bytes, timeout
        self._until = asyncio.get_running_loop().time() + timeout
        self._bytes = 0
        self._body: bytes | None = None
        self._whole, self._gone = asyncio.Event(), asyncio.Event()
        self._answered = False

    def check_declared(self, length: str) -> None:
        """Raises TooLarge where the header says that the body is over the bound."""
        if length.isdecimal() and int(length[:20]) > self._max_bytes:
            raise self._too_large(int(length[:20]))

    async def read(self) -> bytes:
        """The whole body, which the app gets in one piece. Raises TooLarge, HttpError (408), ClientDisconnect."""
        body = bytearray()
        while not self._whole.is_set():
            message = await self._piece()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
        self._body = bytes(body)
        return self._body

    async def run(self, scope: Scope) -> None:
        app = asyncio.ensure_future(self._as_coroutine(self._app(scope, self._replay, self._watched_send)))
        watch = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait((app, watch), return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and not self._answered and not app.done():
                app.cancel()
                await asyncio.gather(app, return_exceptions=True)
                raise ClientDisconnect
            await app
        finally:
            watch.cancel()
            app.cancel()

    @staticmethod
    async def _as_coroutine(awaitable: Awaitable[None]) -> None:
        await awaitable

    async def _watch(self) -> None:
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()

    async def _replay(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if not self._whole.is_set():
            return await self._piece()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _piece(self) -> Message:
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError as error:
            raise body_timeout(self._timeout) from error
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._max_bytes:
            raise self._too_large(None)
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._whole.set()
        return message

    async def _watched_send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._answered = True  # what comes after is no disconnect, only the end of the exchange
        await self._send(message)

    def _too_large(self, value: int | None) -> TooLarge:
        return TooLarge("bytes in its body", self._max_bytes, value, "send it in several requests, a file in parts")


class LoadShedding:
    """Refuses requests for decoding while the queue is full, before their bodies are read, checked and split.

    Under overload most requests are refused: each must cost next to nothing, or refusing eats what it should protect.
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
            scope["app"].state.parts.engine.dispatcher.refuse_if_full()
        await self._app(scope, receive, send)
