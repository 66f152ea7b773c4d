"""Ending the service: what has begun ends, whatever it still has to do; a second signal waits for nothing."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from unittest.mock import Mock

import httpx
import pytest
import uvicorn

from tandem.models.bundle import Bundle
from tandem.models.errors import DeviceLost
from tandem.service.app import create_app
from tandem.service.http.connections import ConnectionBounds, bounded_protocol
from tandem.service.server import DrainingServer
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, CopyGraphs, make_engine

pytestmark = pytest.mark.anyio
Held: TypeAlias = asyncio.Future[httpx.Response]
FIELDS = {"q": "das haus", "source": "de", "target": "en"}


class Reporting(DrainingServer):
    """Says when it listens; when it is about to end, ``late`` is a client that the loop could not accept."""

    listening: asyncio.Event
    late: socket.socket | None = None

    @property
    def address(self) -> Any:
        return self.servers[0].sockets[0].getsockname()[:2]

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: Any = None) -> None:
        if self.late is not None:
            self.late.connect(self.address)
        await super().shutdown(sockets)


@dataclass
class Live:
    """A server with its client, and what its model is held by."""

    server: Reporting
    client: httpx.AsyncClient
    graphs: CopyGraphs
    serving: asyncio.Task[None]
    app: Any


@pytest.fixture
async def service(bundles: dict[str, Bundle]) -> AsyncIterator[Live]:
    graphs = CopyGraphs(bundles["de-en"].target_vocabulary.size)
    engine = make_engine((bundles["de-en"], graphs))
    app = create_app(Settings(text_threads=1), engine)
    http = bounded_protocol(ConnectionBounds(100, 4096, PATIENCE, PATIENCE))
    config = uvicorn.Config(app, port=0, log_config=None, http=http, timeout_graceful_shutdown=5, timeout_keep_alive=60)
    server = Reporting(config, engine, PATIENCE)
    server.listening = asyncio.Event()
    serving = asyncio.ensure_future(server.serve())
    await server.listening.wait()
    host, port = server.address
    try:
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=PATIENCE) as client:
            yield Live(server, client, graphs, serving, app)
    finally:
        graphs.gate.set()
        await asyncio.to_thread(engine.stop, PATIENCE)


@pytest.fixture
async def held(service: Live) -> AsyncIterator[Held]:
    """A request that is being decoded, until the test opens the gate or ends."""
    asked = service.client.post("/translate", json=FIELDS)
    async with service.graphs.held(lambda: asyncio.ensure_future(asked)) as request:
        yield request


async def test_a_request_that_was_not_yet_submitted_ends(service: Live) -> None:
    """The signal comes while its text waits to be split: it has begun, so it is answered."""
    split = threading.Event()
    other = asyncio.ensure_future(service.app.state.parts.texts._threads.run("other", split.wait, PATIENCE))
    await asyncio.sleep(0)
    long = " ".join(["das haus."] * 40)  # a short one needs no text thread
    request = asyncio.ensure_future(service.client.post("/translate", json={**FIELDS, "q": long}))
    engine = service.app.state.parts.engine
    async with asyncio.timeout(PATIENCE):
        while not len(engine.dispatcher._sessions):
            await asyncio.sleep(0.001)
    service.server.handle_exit(signal.SIGTERM, None)
    async with asyncio.timeout(PATIENCE):
        while (await service.client.get("/readyz")).status_code != 503:
            await asyncio.sleep(0.001)
    refused = await service.client.post("/translate", json=FIELDS)
    assert (refused.status_code, refused.json()["code"]) == (503, "draining")
    assert int(refused.headers["retry-after"]) >= 1
    assert not request.done()
    split.set()
    assert await other
    assert (await request).json() == {"translatedText": long}
    await service.serving
    assert not service.server.signalled_twice


async def test_a_signal_drains_running_work_finishes_and_the_server_ends(service: Live, held: Held) -> None:
    service.server.handle_exit(signal.SIGTERM, None)
    assert (await service.client.get("/readyz")).status_code == 503
    assert (await service.client.post("/translate", json={**FIELDS, "q": "noch eins"})).status_code == 503
    assert (await service.client.get("/healthz")).status_code == 200
    service.graphs.gate.set()
    assert (await held).json() == {"translatedText": "das haus"}
    await service.serving
    assert not service.app.state.parts.engine.alive


async def test_a_second_signal_does_not_wait_for_a_step_that_hangs(service: Live, held: Held) -> None:
    service.server.handle_exit(signal.SIGTERM, None)
    service.server.handle_exit(signal.SIGTERM, None)
    async with asyncio.timeout(PATIENCE / 2):  # far less than a drain would take
        await service.serving
    assert service.server.signalled_twice
    held.cancel()
    await asyncio.gather(held, return_exceptions=True)


async def test_a_lost_device_fails_what_runs_and_ends_the_server(
    service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = DeviceLost("cuda:0 does not work any more: an illegal memory access was encountered")
    monkeypatch.setattr(service.graphs, "run", Mock(side_effect=gone))
    reply = await service.client.post("/translate", json=FIELDS)
    assert reply.status_code == 500 and "illegal" not in reply.text
    async with asyncio.timeout(PATIENCE):
        await service.serving
    engine = service.app.state.parts.engine
    assert engine.dispatcher.lost is gone and engine.dispatcher.draining and not service.server.signalled_twice
    assert await service.app.state.parts.readiness.faults() == [str(gone)]


BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})]
)


@BOTH_LOOPS
@pytest.mark.parametrize("path", ["/translate", "/languages"])
async def test_who_connects_as_it_ends_is_answered_once(service: Live, path: str) -> None:
    """The kernel takes connections in before the service does: none of them may be reset."""
    body = json.dumps(FIELDS).encode() if path == "/translate" else b""
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    with socket.socket() as late:
        late.settimeout(PATIENCE)
        service.server.late = late
        service.server.handle_exit(signal.SIGTERM, None)
        await told_to_end(service)  # what is connected and has not yet asked is not idle
        late.sendall(request)
        reply = await asyncio.to_thread(everything, late)
    await service.serving
    assert reply.split()[1] == (b"503" if body else b"200")
    assert b"connection: close" in reply.lower()


@BOTH_LOOPS
async def test_who_is_accepted_as_it_ends_is_answered_once(service: Live) -> None:
    """The loop is busy until it has to end, so that it accepts and ends in the same turn."""
    with socket.socket() as late:
        late.settimeout(PATIENCE)

        def busy() -> None:
            late.connect(service.server.address)
            time.sleep(0.2)  # twice what uvicorn waits until it looks whether it should exit
            service.server.should_exit = True

        asyncio.get_running_loop().call_soon(busy)
        await told_to_end(service)
        late.sendall(b"GET /languages HTTP/1.1\r\nhost: localhost\r\n\r\n")
        reply = await asyncio.to_thread(everything, late)
    await service.serving
    assert reply.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in reply.lower()


async def test_it_ends_well_where_no_more_files_may_be_open(service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    assert (await service.client.get("/languages")).status_code == 200
    monkeypatch.setattr("tandem.service.http.listening.os.dup", full)
    service.server.handle_exit(signal.SIGTERM, None)
    await service.serving
    assert not service.server.signalled_twice


async def told_to_end(service: Live) -> None:
    """Until a connection that has had no request knows that its first one is the last."""
    async with asyncio.timeout(PATIENCE):
        while not any(getattr(one, "_end_timer", None) for one in service.server.server_state.connections):
            await asyncio.sleep(0)


def everything(connection: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


async def test_a_lifespan_that_fails_is_raised_and_not_only_logged() -> None:
    engine = make_engine()
    app = create_app(Settings(), engine)

    class Failing:
        def __init__(self, _: Any) -> None: ...

        async def __aenter__(self) -> None:
            raise ValueError("not today")

        async def __aexit__(self, *_: object) -> None: ...

    app.router.lifespan_context = Failing
    server = DrainingServer(uvicorn.Config(app, port=0, log_config=None), engine, PATIENCE)
    with pytest.raises(ValueError, match="not today"):
        await server.serve()
