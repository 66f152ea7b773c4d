"""Slow, silent, greedy and too many clients, over real sockets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from tandem.service.http.connections import ConnectionBounds, bounded_protocol
from tandem.service.http.edges import ConnectionLimit, SecurityHeaders
from tandem.service.http.middleware import RequestBody, RequestContext
from tandem.service.telemetry.metrics import Metrics
from tests.service.support import PATIENCE

pytestmark = pytest.mark.anyio
GENEROUS = ConnectionBounds(100, 4096, PATIENCE, PATIENCE)
BRIEF = ConnectionBounds(100, 4096, 0.1, 0.1)
BIG = 32 << 20  # more than the buffers of two sockets hold
Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


async def small(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def large(scope: Any, receive: Any, send: Any) -> None:
    length = str(BIG).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for left in range(BIG, 0, -(1 << 20)):
        await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": left > 1 << 20})


class Listening(uvicorn.Server):
    """A server whose address can be asked for."""

    @property
    def port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


@asynccontextmanager
async def server(bounds: ConnectionBounds, answer: Any = small, keep_alive: int = 30) -> AsyncIterator[Any]:
    """A function that opens connections to a server of ``answer``, with our middleware around it."""
    inner = RequestBody(answer, max_bytes=1024, timeout=PATIENCE)
    app = SecurityHeaders(RequestContext(ConnectionLimit(inner), Metrics()))
    config = uvicorn.Config(
        app, port=0, log_config=None, lifespan="off", ws="none", timeout_keep_alive=keep_alive,
        http=bounded_protocol(bounds),
    )  # fmt: skip
    running = Listening(config)
    task = asyncio.ensure_future(running.serve())
    while not running.started:
        await asyncio.sleep(0)
    writers: list[Writer] = []

    async def connect() -> tuple[Reader, Writer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writers.append(writer)
        return reader, writer

    connect.server = running  # type: ignore[attr-defined]
    try:
        yield connect
    finally:
        for writer in writers:
            writer.transport.abort()
        running.should_exit = True
        await task


async def ended(reader: Reader) -> bytes:
    """What the server sends until it closes."""
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def reply(reader: Reader) -> tuple[int, dict[str, str], bytes]:
    async with asyncio.timeout(PATIENCE):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


REQUEST = b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"


UPLOAD = b"POST / HTTP/1.1\r\nHost: service\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    ("bounds", "keep_alive", "exchanges", "last"),
    [
        pytest.param(BRIEF, 30, (), b"", id="a connection that says nothing"),
        pytest.param(BRIEF, 30, (), b"GET / HTTP/1.1\r\nHost: serv", id="headers that never end"),
        pytest.param(BRIEF, 30, ((REQUEST, 200),) * 2, b"G", id="the next headers"),
        pytest.param(BRIEF, 30, ((UPLOAD, 413),), b"x", id="the rest of a refused body"),
        pytest.param(GENEROUS, 0, ((REQUEST, 200),), b"", id="an idle connection"),
    ],
)
async def test_what_does_not_come_in_time_is_not_waited_for(
    bounds: ConnectionBounds, keep_alive: int, exchanges: tuple[tuple[bytes, int], ...], last: bytes
) -> None:
    async with server(bounds, keep_alive=keep_alive) as connect:
        reader, writer = await connect()
        for message, status in exchanges:
            writer.write(message)
            assert (await reply(reader))[0] == status
        writer.write(last)
        assert await ended(reader) == b""


@pytest.mark.parametrize("head", [b"GET /" + b"a" * 9000, b"GET / HTTP/1.1\r\nX: " + b"a" * 9000])
@pytest.mark.parametrize("finished", [True, False])
async def test_long_headers_are_refused(head: bytes, finished: bool) -> None:
    """Also where they come in pieces and never end."""
    async with server(GENEROUS) as connect:
        reader, writer = await connect()
        rest = b" HTTP/1.1" if b"HTTP" not in head else b""
        pieces = [head + rest + b"\r\n\r\n"] if finished else [head[:3000], head[3000:6000]]
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.02)  # so that it is read by itself
        content = await ended(reader)
        assert content.split(b" ")[1] in (b"400", b"431")
        assert json.loads(content.partition(b"\r\n\r\n")[2])["code"] in ("bad_request", "headers_too_large")
        assert b"content-security-policy" in content.lower()


async def late(scope: Any, receive: Any, send: Any) -> None:
    """The body some turns of the loop behind the head."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    for _ in range(3):
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize(("answer", "parts"), [(small, [b"HTTP/1.1 200 OK*ok"]), (late, [b"HTTP/1.1 200 OK*", b"ok"])])
async def test_a_head_is_written_with_its_body_where_that_is_at_hand(answer: Any, parts: list[bytes]) -> None:
    """What a killed server has half written, a proxy cannot ask another one for."""
    config = uvicorn.Config(answer, log_config=None, lifespan="off", ws="none", http=bounded_protocol(GENEROUS))
    config.load()
    protocol = bounded_protocol(GENEROUS)(config, ServerState(), {})
    transport = Mock(spec=asyncio.Transport, **{"is_closing.return_value": False, "get_extra_info.return_value": None})
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
    while not protocol.cycle.response_complete:
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    written = [call.args[0] for call in transport.write.call_args_list]
    assert [re.sub(rb"\r\n.*\r\n\r\n", b"*", data, flags=re.DOTALL) for data in written] == parts


async def test_what_is_no_http_gets_our_error() -> None:
    async with server(GENEROUS) as connect:
        reader, writer = await connect()
        writer.write(b"\x16\x03\x01 this is TLS\r\n\r\n")
        status, headers, body = await reply(reader)
        assert (status, json.loads(body)["code"]) == (400, "bad_request")
        assert headers["x-content-type-options"] == "nosniff"
        assert await ended(reader) == b""


async def test_a_client_that_stops_reading_is_cut_off() -> None:
    async with server(ConnectionBounds(100, 4096, PATIENCE, 0.1), large) as connect:
        _, writer = await connect()
        writer.transport.pause_reading()
        writer.write(REQUEST)
        async with asyncio.timeout(PATIENCE):
            while not connect.server.server_state.connections:
                await asyncio.sleep(0.01)
            while connect.server.server_state.connections:
                await asyncio.sleep(0.01)


async def test_a_client_that_reads_gets_all_of_a_large_reply() -> None:
    async with server(ConnectionBounds(100, 4096, PATIENCE, 0.4), large) as connect:
        reader, writer = await connect()
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        left = BIG
        while left:
            read = len(await reader.read(1 << 20))
            assert read, "cut off"
            left -= read
            await asyncio.sleep(0.004)


async def test_requests_beyond_the_bound_of_connections_get_503_but_those_of_operators() -> None:
    async with server(ConnectionBounds(2, 4096, PATIENCE, PATIENCE)) as connect:
        first, second, third = [await connect() for _ in range(3)]
        third[1].write(REQUEST)
        status, headers, body = await reply(third[0])
        content = json.loads(body)
        assert (status, content["code"], content["detail"]) == (503, "too_many_connections", {"bound": 2})
        assert int(headers["retry-after"]) >= 1
        assert headers["x-request-id"] == content["request_id"]
        assert headers["connection"] == "close"
        assert await ended(third[0]) == b""
        operator = await connect()
        operator[1].write(REQUEST.replace(b"/", b"/healthz", 1))
        assert (await reply(operator[0]))[0] == 200
        operator[1].close()
        while len(connect.server.server_state.connections) > 2:
            await asyncio.sleep(0.01)
        for reader, writer in (first, second):
            writer.write(REQUEST)
            assert (await reply(reader))[0] == 200


async def test_of_twice_as_many_connections_further_ones_are_closed() -> None:
    async with server(ConnectionBounds(1, 4096, PATIENCE, PATIENCE)) as connect:
        kept = [await connect() for _ in range(2)]
        while len(connect.server.server_state.connections) < 2:
            await asyncio.sleep(0.01)
        reader, _ = await connect()
        assert await ended(reader) == b""
        assert len(kept) == 2


CHUNKED = b"POST / HTTP/1.1\r\nHost: service\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"


async def test_headers_behind_a_body_are_none_of_the_requests() -> None:
    async def show(scope: Any, receive: Any, send: Any) -> None:
        names = b" ".join(name for name, _ in scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(names))]})
        await send({"type": "http.response.body", "body": names})

    async with server(GENEROUS, show) as connect:
        reader, writer = await connect()
        writer.write(CHUNKED + b"0\r\nAuthorization: Bearer x\r\n\r\n" + REQUEST)
        assert (await reply(reader))[2] == b"host transfer-encoding"
        assert (await reply(reader))[2] == b"host"


@pytest.mark.parametrize(("begin", "more"), [(b"0\r\n", b"A: b\r\n"), (b"0\r\nA: ", b"aaaa"), (b"2;", b"aaaa")])
async def test_what_frames_a_body_has_a_bound(begin: bytes, more: bytes) -> None:
    async with server(GENEROUS) as connect, asyncio.timeout(PATIENCE):
        reader, writer = await connect()
        writer.write(CHUNKED + begin)
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(more * 100)
                await writer.drain()
                await asyncio.sleep(0)
        assert b" 200 " not in await ended(reader)


async def test_bodies_of_many_chunks_have_no_such_bound() -> None:
    async with server(GENEROUS) as connect:
        reader, writer = await connect()
        writer.write(CHUNKED.partition(b"2\r\n")[0])
        for _ in range(700):
            writer.write(b"1;some-extension=1\r\nx\r\n")
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        assert (await reply(reader))[0] == 200


async def test_at_the_end_idle_connections_are_closed_and_new_ones_have_one_request() -> None:
    async with server(GENEROUS) as connect:
        idle, idle_writer = await connect()
        idle_writer.write(REQUEST)
        assert (await reply(idle))[0] == 200
        (silent, _), (new, new_writer) = await connect(), await connect()
        while len(connect.server.server_state.connections) < 3:
            await asyncio.sleep(0.001)
        connect.server.should_exit = True
        assert await ended(idle) == b""
        new_writer.write(REQUEST)
        status, _, body = await reply(new)
        assert (status, body, await ended(new)) == (200, b"ok", b"")
        assert await ended(silent) == b""


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with method, path, whether an upgrade was offered, and the body."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    offered = any(name == b"upgrade" for name, _ in scope["headers"])
    text = f"{scope['method']} {scope['path']} {offered} ".encode() + body
    length = str(len(text)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": text})


SECOND = b"GET /smuggled HTTP/1.1\r\nHost: service\r\n\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAA\r\n"


def offering(body: bytes, offer: bytes = OFFER) -> bytes:
    length = str(len(body)).encode()
    return b"POST /p HTTP/1.1\r\n" + offer + b"Host: service\r\nContent-Length: " + length + b"\r\n\r\n" + body


@pytest.mark.parametrize("size", [1, 2, 7, 60, 10_000])
@pytest.mark.parametrize("offer", [OFFER, OFFER.replace(b"Upgrade: h2c", b"uPGRADE:websocket")])
async def test_an_offer_of_another_protocol_is_ignored_in_whatever_pieces_it_comes(size: int, offer: bytes) -> None:
    """The body is the request's own, also where it looks like one, and the connection goes on."""
    async with server(GENEROUS, echo) as connect:
        reader, writer = await connect()
        sent = b"\r\n" + offering(SECOND, offer)  # empty lines before a request are skipped
        for start in range(0, len(sent), size):
            writer.write(sent[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        assert (await reply(reader))[::2] == (200, b"POST /p False " + SECOND)
        writer.write(REQUEST)
        assert (await reply(reader))[::2] == (200, b"GET / False ")


async def test_a_body_may_speak_of_upgrades() -> None:
    text = b"\r\nUpgrade: h2c\r\n\r\nUpgrade: yes"
    async with server(GENEROUS, echo) as connect:
        reader, writer = await connect()
        head, _, body = offering(text, b"").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        await asyncio.sleep(0.02)
        writer.write(body)
        assert (await reply(reader))[2] == b"POST /p False " + text


@pytest.mark.parametrize(
    "first", [REQUEST + offering(SECOND), b"CONNECT other:80 HTTP/1.1\r\nHost: service\r\n\r\n" + SECOND]
)
async def test_what_stays_ambiguous_is_the_last_that_is_read(first: bytes) -> None:
    """An offer behind another request in one piece, and a tunnel: nothing that follows is taken for a request."""
    async with server(GENEROUS, echo) as connect:
        reader, writer = await connect()
        writer.write(first)
        await asyncio.sleep(0.02)
        writer.write(SECOND)
        assert b"smuggled" not in await ended(reader)


@pytest.mark.parametrize(
    ("head", "hosts"),
    [
        (b"GET / HTTP/1.1\r\n", 0),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 2),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHOST: b\r\n", 2),
    ],
)
async def test_a_request_has_one_host(head: bytes, hosts: int) -> None:
    async with server(GENEROUS, echo) as connect:
        reader, writer = await connect()
        writer.write(head + b"\r\n")
        status, _, body = await reply(reader)
        assert status == 400
        assert json.loads(body)["error"] == f"a request must have exactly one Host header, but this one has {hosts}"
        assert await ended(reader) == b""
        reader, writer = await connect()
        writer.write(b"GET / HTTP/1.0\r\n\r\n")  # which has none by its own rules
        assert (await reply(reader))[0] == 200


@pytest.mark.parametrize("last", [b"G", b"GET / HTTP/1.1\r\nUpgrade: h2"])
async def test_a_line_that_never_ends_is_not_waited_for(last: bytes) -> None:
    async with server(BRIEF, echo) as connect:
        reader, writer = await connect()
        writer.write(last)
        assert await ended(reader) == b""
