"""Bounds on connections: how many, how long a client may take to send a request's headers, to read a reply, to idle.

uvicorn bounds idling only, and httptools the size of headers not at all; so its HTTP protocol gets a subclass.
(Hypercorn bounds more of this, but has no hook for a drain that keeps answering; a proxy in front can do all of it
too, but a server should not depend on one for staying up.)
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, cast

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tandem.service.http.edges import OVER_BOUND, SECURITY_HEADERS

_FIRST_REQUEST = 1.0  # seconds that a new connection has for its first request once the service ends
_STATUS_LINE = b"HTTP/1.1 "  # what a reply begins with, be it an interim one
_UPGRADE = b"upgrade:"
_LEAST_PROGRESS = 1024  # bytes that a client has to read of a reply in each period


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Of a server.

    Attributes:
        connections: open ones, whose requests are answered; of twice as many, further ones are closed at once.
        header_bytes: of a request's line and headers.
        header_seconds: in which they must arrive, from the connection's start or their first byte.
        reply_seconds: in which a client must read a further part of a reply.
    """

    connections: int
    header_bytes: int
    header_seconds: float
    reply_seconds: float


class HeadsWithBodies:
    """A transport that writes the head of a reply and the first part of its body at once.

    uvicorn writes them one after the other, and a server that is killed between the two (other threads have their turn
    there) leaves a proxy with a head, after which it cannot ask another replica. Any other first part follows a turn of
    the loop later.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._head = transport, loop, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._head and data[: len(_STATUS_LINE)] == _STATUS_LINE:
            self._head = data
            self._loop.call_soon(self._write_head)
        else:
            head, self._head = self._head, b""
            self._transport.write(head + data if head else data)

    def close(self) -> None:
        self._write_head()
        self._transport.close()

    def _write_head(self) -> None:
        if self._head and not self._transport.is_closing():
            self.write(b"")


class HeadFilter:
    """Takes ``Upgrade`` headers out of requests before they are parsed.

    This server speaks HTTP/1.1 alone, and a server may ignore an offer of another protocol (RFC 9110, section 7.8). The
    parser does not: behind a request that offers one (``h2c``, as Java's client does with every POST) it takes what
    follows for that protocol, so the body would be lost, or read as the next request, which a proxy has not seen.

    Bytes come in any pieces; of a head the line that has not ended yet is held back.
    """

    def __init__(self) -> None:
        self._held = b""
        self._in_head, self._begun = True, False

    @property
    def held(self) -> int:
        """Bytes of a line that has not ended yet."""
        return len(self._held)

    def begin_head(self) -> None:
        """What comes next is a request's head."""
        self._in_head, self._begun = True, False

    def passed(self, data: bytes) -> bytes:
        """What is to be parsed now: all of a body, of a head the lines that have ended and offer nothing."""
        if not self._in_head:
            return data
        *ended, rest = (self._held + data).split(b"\n")
        self._held = b""
        kept: list[bytes] = []
        for number, line in enumerate(ended):
            empty = not line.rstrip(b"\r")
            if empty and self._begun:
                self._in_head = False
                return b"\n".join([*kept, *ended[number:], rest])
            self._begun = self._begun or not empty  # parsers skip empty lines before a head
            if line[: len(_UPGRADE)].lower() != _UPGRADE:
                kept.append(line)
        self._held = rest
        return b"".join(line + b"\n" for line in kept)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Set ``bounds`` in a subclass: see ``bounded_protocol``."""

    bounds: ConnectionBounds

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._served = self.app
        self._header_timer: asyncio.TimerHandle | None = None
        self._reply_timer: asyncio.TimerHandle | None = None
        self._end_timer: asyncio.TimerHandle | None = None
        self._unread = 0
        self._within, self._begun, self._too_long = False, 0, False
        self._head = HeadFilter()
        self._fault = ""
        self._ambiguous = False  # the parser took what came for another protocol: nothing more of it is a request
        self._framing = 0  # bytes that have arrived since the last that were of use

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", HeadsWithBodies(transport, self.loop)))
        if len(self.connections) > 2 * self.bounds.connections:
            self.transport.abort()
        else:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._header_timer, self._reply_timer, self._end_timer, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ambiguous:
            return
        if self._within:
            self._begun += len(data)
        passed = self._head.passed(data)
        if max(self._begun, self._head.held) > self.bounds.header_bytes:
            self._refuse_headers()
            return
        if self._framing > self.bounds.header_bytes:  # of a body in chunks, all of which the parser keeps
            self.transport.abort()
            return
        self._framing += len(data)
        idle = getattr(self.cycle, "response_complete", True)
        over = len(self.connections) > self.bounds.connections
        self.app = self._refuse if over else self._served
        if passed:
            super().data_received(passed)
        else:
            self._unset_keepalive_if_required()
        if idle and self._within and not self._begun:
            self._begun = len(data)
        if self.transport.is_closing():
            return
        if self._end_timer is not None and self._asked():
            super().shutdown()  # this request is the last
        answered = getattr(self.cycle, "response_complete", False)
        # answered: the rest of a body that nobody wants, or the next headers
        if answered or self._within or self._head.held:
            self._expect_headers()
        elif self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._within, self._begun, self._framing = True, 0, 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head.begin_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Headers behind a body in chunks are left out: no proxy has seen them, and they have no bound."""
        if self._within:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._within, self._begun = False, 0
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.bounds.header_bytes:
            self._too_long = True
            raise ValueError("headers too long")  # ends the parser, which then asks for a reply of 400
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):  # RFC 9112, section 3.2
            self._fault = f"a request must have exactly one Host header, but this one has {hosts}"
            raise ValueError("hosts")
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Behind this request is what the parser took for another protocol: it is answered, and nothing after it."""
        self._ambiguous = True
        if getattr(self.cycle, "response_complete", True):
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Once the service ends: after a request, or now. A first request may be on its way, so that is waited for."""
        if self._asked():
            super().shutdown()
        else:
            self._end_timer = self.loop.call_later(_FIRST_REQUEST, self._end)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reply_timer is not None:  # most of it was read; what is written next counts anew
            self._reply_timer.cancel()
            self._reply_timer = None

    def send_400_response(self, msg: str) -> None:
        """What no parser could read has no request, so the app cannot answer it; in our shape all the same."""
        if self._too_long:
            self._refuse_headers()
        else:
            self._send_error(400, "Bad Request", "bad_request", self._fault or "this is no valid HTTP request")

    def _refuse_headers(self) -> None:
        message = f"a request may have at most {self.bounds.header_bytes} bytes of headers"
        self._send_error(431, "Request Header Fields Too Large", "headers_too_large", message)

    def _asked(self) -> bool:
        """Whether a request has come, be it answered or not."""
        return getattr(self.cycle, "response_complete", None) is not None

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _send_error(self, status: int, phrase: str, code: str, message: str) -> None:
        body = json.dumps({"error": message, "code": code, "request_id": ""}).encode()
        lines = [f"HTTP/1.1 {status} {phrase}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += ["Connection: close", *(f"{name}: {value}" for name, value in SECURITY_HEADERS), "", ""]
        self.transport.write("\r\n".join(lines).encode() + body)
        self.transport.close()

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[OVER_BOUND] = self.bounds.connections
        await self._served(scope, receive, send)

    def _expect_headers(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.bounds.header_seconds, self.transport.abort)

    def _watch_reader(self) -> None:
        """Whether the client goes on reading what is written already."""
        if self._reply_timer is None:
            self._unread = self.transport.get_write_buffer_size()
            self._reply_timer = self.loop.call_later(self.bounds.reply_seconds, self._check_reader)

    def _check_reader(self) -> None:
        self._reply_timer = None
        unread = self.transport.get_write_buffer_size()
        waits = self.flow.write_paused or self.transport.is_closing()
        if not unread or not waits:
            return
        if self._unread - unread < _LEAST_PROGRESS:
            self.transport.abort()
        else:
            self._watch_reader()


def bounded_protocol(bounds: ConnectionBounds) -> type[BoundedProtocol]:
    """uvicorn's HTTP protocol with bounds."""
    return type("BoundedProtocol", (BoundedProtocol,), {"bounds": bounds})
