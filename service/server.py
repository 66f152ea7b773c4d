"""Runs the app in a process of its own: logging, uvicorn, and a shutdown that lets running work finish."""

from __future__ import annotations

import asyncio
import contextvars
import math
import socket
from types import FrameType

import structlog
import uvicorn

from service.app import create_app
from service.engine import Engine
from service.loading import build_engine
from service.logs import configure_logging
from service.settings import Settings

_log = structlog.get_logger("tandem.server")
_LAST_REPLIES = 5  # seconds in which finished work is written out


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then return.

    On the first signal readiness turns to 503 at once and new work is refused, while running work finishes, for at
    most ``settings.shutdown_timeout`` seconds. A second signal ends the process now.

    Raises:
        ConfigError, BundleError: a bundle cannot be served.
        SystemExit: the address cannot be listened on.
    """
    configure_logging(settings)
    engine = build_engine(settings)
    config = uvicorn.Config(
        create_app(settings, engine),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,  # the app logs each request itself, with its id
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_LAST_REPLIES,
    )
    DrainingServer(config, engine, settings.shutdown_timeout).run()


class DrainingServer(uvicorn.Server):
    """Keeps listening while it drains, so that readiness can be seen to be 503."""

    def __init__(self, config: uvicorn.Config, engine: Engine, timeout: float) -> None:
        super().__init__(config)
        self._engine = engine
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._signalled = False

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super()._serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Signal handler. The signal is not raised again at the end, as uvicorn would: the exit status is 0."""
        if self._signalled or self._loop is None or not self.started:
            self.should_exit = self.force_exit = True
            return
        self._signalled = True
        # In a context of its own: the signal may have arrived amid a request, whose id is not this one's.
        self._loop.call_soon_threadsafe(self._start_drain, context=contextvars.Context())

    def _start_drain(self) -> None:
        self._drain = asyncio.get_running_loop().create_task(self._finish_work())

    async def _finish_work(self) -> None:
        _log.info("draining", at_most_seconds=math.ceil(self._timeout))
        self._engine.close()
        finished = await asyncio.to_thread(self._engine.wait_until_idle, self._timeout)
        _log.info("drained", everything_finished=finished)
        if not finished:
            await asyncio.to_thread(self._engine.stop, 0.0)
        self.should_exit = True
