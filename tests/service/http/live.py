"""A server on a free port, for clients that speak HTTP and know nothing of this project."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from tandem.service.app import create_app
from tandem.service.engine import Engine
from tandem.service.settings import Settings
from tests.service.support import PATIENCE


@dataclass(frozen=True, slots=True)
class Live:
    """A running server.

    Attributes:
        url: where it listens, without a slash at the end.
        app: what it serves.
    """

    url: str
    app: FastAPI


@contextmanager
def live(settings: Settings, engine: Engine) -> Iterator[Live]:
    """Serve in a thread, as ``service.server`` does in a process, until the block ends."""
    app = create_app(settings, engine)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + PATIENCE
        while not server.started:
            assert thread.is_alive() and time.monotonic() < until, "the server did not start"
            time.sleep(0.005)
        yield Live(f"http://127.0.0.1:{listener.getsockname()[1]}", app)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"
