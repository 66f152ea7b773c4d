"""Runs the app in a process of its own: logging, uvicorn, and a shutdown that lets running work finish."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import math
import os
import signal
import socket
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, cast

import structlog
import uvicorn
from fastapi import FastAPI

from tandem.models.errors import ConfigError, TandemError
from tandem.service.app import create_app
from tandem.service.bundles.loading import build_engine
from tandem.service.engine import Engine
from tandem.service.http.connections import ConnectionBounds, bounded_protocol
from tandem.service.http.listening import Tls, accept_waiting, allow_files, closing_all, duplicates, listen, url_of
from tandem.service.settings import Settings
from tandem.service.telemetry.logs import configure_logging

_log = structlog.get_logger("tandem.server")
_LAST_HANDSHAKE = 1.0  # second of those who connect just as the service ends
_TURNS = 3  # of the loop, from an accepted socket to a connection
_LAST_REPLIES = 5  # seconds in which finished work is written out
_LAST_SECONDS = 20.0  # from the loss of a device to the end of the process, whatever still waits for it


def run(settings: Settings, retired: Sequence[str] = ()) -> None:
    """Serve until SIGTERM or SIGINT, then return. The log names ``retired`` settings, which have no effect any more.

    On the first signal readiness turns to 503 at once and new work is refused, while running work finishes, for at
    most ``settings.shutdown_timeout`` seconds. A second signal ends the process now.

    Raises:
        ConfigError, BundleError: a bundle cannot be served, or a setting does not fit this machine.
        AddressTaken: another program listens there.
        Interrupted: a second signal has ended it.
        DeviceLost: the GPU has failed in a way that lasts, and only another process can use it again.
    """
    configure_logging(settings)
    for name in retired:
        _log.warning("setting_retired", setting=name, remedy="leave it out: it has no effect any more")
    tls_of(settings)  # refused before anything else
    allow_files(settings.max_connections)
    sockets = listen(settings.host, settings.port)  # first, for loading takes seconds
    _log.info("loading", bundles=[str(path) for path in settings.bundles], pid=os.getpid())
    with closing_all(sockets):
        serve_engine(settings, build_engine(settings), sockets)


def serve_engine(settings: Settings, engine: Engine, sockets: list[socket.socket] | None = None) -> None:
    """Serve an engine that holds its bundles, as :func:`run` does; logging is the caller's to configure."""
    if sockets is None:
        with closing_all(listen(settings.host, settings.port)) as sockets:
            return serve_engine(settings, engine, sockets)
    bounds = ConnectionBounds(
        settings.max_connections, settings.max_header_bytes, settings.header_timeout, settings.reply_timeout
    )
    config = uvicorn.Config(
        create_app(settings, engine),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,  # the app logs each request itself, with its id
        server_header=False,
        http=bounded_protocol(bounds),
        ws="none",
        timeout_keep_alive=math.ceil(settings.keep_alive_timeout),
        timeout_graceful_shutdown=_LAST_REPLIES,
    )
    server = DrainingServer(config, engine, settings.shutdown_timeout, tls_of(settings))

    def end_lost() -> None:
        server.stop_now()
        _end_process()

    engine.dispatcher.on_loss = end_lost
    server.run(sockets)
    if engine.dispatcher.lost is not None:
        raise engine.dispatcher.lost
    if server.signalled_twice:
        raise Interrupted("ended by a second signal, before running work was finished")


def _end_process() -> None:
    """See that this process ends, with status 1: a thread that loads a bundle, or CUDA's own end, may wait for ever."""
    atexit.register(os._exit, 1)
    last = threading.Timer(_LAST_SECONDS, os._exit, (1,))
    last.daemon = True
    last.start()


def tls_of(settings: Settings) -> Tls | None:
    """What the settings say of TLS; None = nothing. Raises ConfigError."""
    given = settings.tls_certificate, settings.tls_key
    return Tls(*given, settings.header_timeout) if any(given) else None


class Interrupted(TandemError):
    """A second signal has ended the service before its work was finished."""


class DrainingServer(uvicorn.Server):
    """Keeps listening while it drains, so that readiness can be seen to be 503.

    The app's lifespan is entered here and not by uvicorn, which logs a traceback where it fails, and hides the error.
    """

    def __init__(self, config: uvicorn.Config, engine: Engine, timeout: float, tls: Tls | None = None) -> None:
        config.lifespan = "off"
        super().__init__(config)
        self._tls = tls
        self._engine = engine
        engine.dispatcher.on_loss = self.stop_now
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._signalled, self._signal = False, ""

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        app = cast("FastAPI", self.config.app)
        async with app.router.lifespan_context(app):
            await super()._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, and say where."""
        if self._tls is None or sockets is None:
            await super().startup(sockets)
        else:
            await self._start_secure(self._tls, sockets)
        if self.started:
            listening = [one for server in self.servers for one in server.sockets]
            _log.info("listening", url=url_of(listening, "https" if self._tls else "http"))

    async def _start_secure(self, tls: Tls, sockets: list[socket.socket]) -> None:
        """As uvicorn does it, which leaves a minute for the handshake."""
        loop = asyncio.get_running_loop()
        bounds: dict[str, Any] = {"ssl": tls.context, "ssl_handshake_timeout": tls.handshake_seconds}
        backlog = self.config.backlog
        self.servers = [
            await loop.create_server(self._connected, sock=one, backlog=backlog, **bounds) for one in sockets
        ]
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self._read_certificate, tls)
        self.started = True

    @staticmethod
    def _read_certificate(tls: Tls) -> None:
        try:
            tls.read()
            _log.info("certificate_read")
        except ConfigError as error:
            _log.error("certificate_not_read", cause=str(error), used="the former one")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, answer who is connected by then, and end.

        uvicorn closes what listens while connections may wait to be accepted. Duplicates keep it open for the
        moment between the last that the loop accepts and the last that is accepted here.
        """
        with closing_all(duplicates([one for server in self.servers for one in server.sockets])) as listening:
            for server in self.servers:
                server.close()
            waiting = accept_waiting(listening, self.config.backlog)
        await asyncio.gather(*map(self._accept, waiting), return_exceptions=True)  # a handshake may fail
        for _ in range(_TURNS):  # what the loop itself has just accepted must be known by then, too
            await asyncio.sleep(0)
        await super().shutdown(sockets)

    async def _accept(self, connection: socket.socket) -> None:
        secure: dict[str, Any] = {}
        if self._tls is not None:
            secure = {"ssl": self._tls.context, "ssl_handshake_timeout": _LAST_HANDSHAKE}
        await asyncio.get_running_loop().connect_accepted_socket(self._connected, connection, **secure)

    def _connected(self) -> asyncio.Protocol:
        protocol = self.config.http_protocol_class
        return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]

    @property
    def signalled_twice(self) -> bool:
        """Whether it was ended before it had drained."""
        return self._signalled and self.force_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Signal handler. The signal is not raised again at the end, as uvicorn would: the exit status is 0."""
        if self._signalled or self._loop is None or not self.started:
            self.should_exit = self.force_exit = True
            threading.Thread(target=self._engine.stop, args=(0.0,), daemon=True).start()  # waits for a step to end
            return
        self._signalled, self._signal = True, signal.Signals(sig).name
        # In a context of its own: the signal may have arrived amid a request, whose id is not this one's.
        self._loop.call_soon_threadsafe(self._start_drain, context=contextvars.Context())

    def stop_now(self) -> None:
        """Answer who waits, which has failed by now, and end. May be called from any thread."""
        _log.critical("device_lost", reason=str(self._engine.dispatcher.lost))
        self.should_exit = True

    def _start_drain(self) -> None:
        self._drain = asyncio.get_running_loop().create_task(self._finish_work())

    async def _finish_work(self) -> None:
        waiting, running = self._engine.dispatcher.sentences
        work = {"waiting_sentences": waiting, "running_sentences": running}
        _log.info("draining", signal=self._signal, **work, at_most_seconds=math.ceil(self._timeout))
        self._engine.dispatcher.drain()
        finished = await asyncio.to_thread(self._engine.dispatcher.wait_until_idle, self._timeout)
        _log.info("drained", everything_finished=finished)
        if not finished:
            await asyncio.to_thread(self._engine.stop, 0.0)
        self.should_exit = True
