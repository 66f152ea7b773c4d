"""One replica of the Ray Serve application: the same engine and the same app as ``tandem serve``, in a Ray actor."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any, cast

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.extras.changing.manager import ModelManager
from tandem.extras.cluster.arguments import Arguments
from tandem.extras.cluster.scaling import METRIC
from tandem.models.config import load_dataclass
from tandem.models.errors import ConfigError, DataInUse, TandemError
from tandem.models.folders import hold
from tandem.service.app import create_app
from tandem.service.bundles.loading import build_engine
from tandem.service.engine import Engine, alias_of
from tandem.service.http.dependencies import Parts
from tandem.service.settings import Settings
from tandem.service.telemetry.logs import configure_logging

_log = structlog.get_logger("tandem.ray")
_ID = "x-request-id"
_MANY = 1_000  # folders


@dataclass(frozen=True, slots=True)
class UserConfig:
    """What ``user_config`` holds: what may change while replicas run.

    Attributes:
        versions: the version that each model named here stands for, such as ``("de-en@2",)``.
        keys: a copy of another server's ``keys.db`` on every node, whose keys are taken over; empty = none are.
    """

    versions: tuple[str, ...] = ()
    keys: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that this process holds until ``close``, or until it ends however it may.

    Attributes:
        path: of the folder, which exists.
        lock: the open file that says so.
    """

    path: Path
    lock: BufferedWriter

    def close(self) -> None:
        """Let go of it."""
        self.lock.close()


def take_folder(root: Path) -> Folder:
    """The first of ``replica-0``, ``replica-1``, … in a folder that no other replica holds.

    Not named after the replica, whose name is new each time: what takes the place of one that has died finds its file
    jobs and limits again. Not after Serve's rank either, for two replicas may have the same for a moment.

    Raises:
        ConfigError: the folder cannot be used, or there are too many replicas.
    """
    for number in itertools.count():
        path = root / f"replica-{number}"
        if number == _MANY:
            break
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Folder(path, hold(path / "replica.lock"))
        except DataInUse:
            continue
        except OSError as error:
            raise ConfigError(f"{path}: a replica's data cannot be kept here ({error.strerror})") from error
    raise ConfigError(f"{root}: all of {_MANY} folders for replicas are in use; give each node a folder of its own")


class Replica:
    """An engine and its app. Serve calls the methods by their names; they run in the app's event loop."""

    def __init__(self, arguments: Arguments) -> None:
        """Load the bundles. Takes seconds.

        Raises:
            ConfigError, BundleError: a setting or a bundle is at fault, see ``build_engine``.
        """
        settings = arguments.service_settings()
        configure_logging(settings)
        self._folder: Folder | None = take_folder(settings.data) if settings.data else None
        if self._folder is not None:
            settings = settings.model_copy(update={"data": self._folder.path})
        self.engine = build_engine(settings)
        self.service = serving(settings, self.engine)
        self._settings, self._serving = settings, False
        self._export: Any = None

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """The app; Serve enters its lifespan next."""
        return self.service

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Take over ``user_config``: at the start, where there is one, and whenever it changes.

        Models switch as by ``POST /models``: what has begun ends with the version it began with. A version that cannot
        be served keeps a new replica from starting. One that serves already goes on as before and says so in its log:
        Serve would end it, and with a mistake in the file end one replica after the other.

        Raises:
            ConfigError, ModelNotFound, ModelRefused, ModelInUse: of a replica that has not served yet.
        """
        try:
            await self._take_over(load_dataclass(UserConfig, config, "user_config"))
        except TandemError as error:
            if not self._serving:
                raise
            _log.error("user_config_refused", reason=str(error), models=dict(self.engine.aliases))

    async def check_health(self) -> None:
        """Serve replaces a replica that fails this several times in a row.

        Not ready is not yet dead: while the queue is full of work for one model, another cannot prove itself. So a
        replica fails only when nothing at all was decoded for a while.

        Raises:
            RuntimeError: it cannot work any more, and why.
        """
        self._begin()
        faults = await self._parts.readiness.faults()
        if faults and not self.engine.dispatcher.draining and not (self.engine.alive and self._moving()):
            raise RuntimeError("; ".join(faults))

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What :class:`extras.cluster.scaling.QueueShare` decides by."""
        return {METRIC: self.engine.dispatcher.queued_tokens / self.engine.options.limits.max_queue_tokens}

    def __del__(self) -> None:
        """Serve calls this when requests have ended and the app's lifespan has shut the engine down."""
        if getattr(self, "_export", None) is not None:
            self._export.close()
        if getattr(self, "_folder", None) is not None:
            cast("Folder", self._folder).close()

    @property
    def _parts(self) -> Parts:
        return cast("Parts", self.service.state.parts)

    def _begin(self) -> None:
        """The first health check comes when all else is done, and before the first request."""
        if self._serving:
            return
        self._serving = True
        self._start_export()

    def _start_export(self) -> None:
        from tandem.extras.cluster.metrics import (
            Export,  # imports Ray, and needs a replica's context for its first gauge
        )

        self._export = Export(self._parts.metrics)
        self._export.start()

    def _moving(self) -> bool:
        """Whether any model has finished a sentence lately."""
        patience = self._settings.probe_interval + self._settings.probe_timeout
        last = [self.engine.dispatcher.last_finished(name) for name in self.engine.bundles]
        return any(one is not None and self.engine.clock() - one < patience for one in last)

    async def _take_over(self, wanted: UserConfig) -> None:
        unversioned = [name for name in wanted.versions if "@" not in name]
        if unversioned:
            raise ConfigError(f"user_config: each version must be one such as de-en@1, but {unversioned[0]!r} is none")
        if wanted.keys:
            count = self._parts.access.take_over(Path(wanted.keys))
            _log.info("keys_taken_over", count=count)
        for name in wanted.versions:
            await self._parts.resource(ModelManager).load(name)
        if not self._serving:  # nothing was decoded with what was loaded first, so nothing has to be kept for it
            named = {alias_of(name) for name in wanted.versions}
            for name in [one for one in self.engine.bundles if alias_of(one) in named - {one}]:
                if name not in self.engine.aliases.values():
                    await self._parts.resource(ModelManager).unload(name)


def serving(settings: Settings, engine: Engine) -> FastAPI:
    """The app of ``tandem serve``, made to stand behind Serve's proxy."""
    app = create_app(settings, engine)
    app.add_middleware(OneRequestId)
    return app


class OneRequestId:
    """Serve's proxy gives each request an id, hands it to us, and puts it on the reply as we do: once is enough."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take our header off where it says what the proxy's will say."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(_ID)

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start" and given is not None:
                same = (_ID.encode(), given.encode("latin-1"))
                headers = [(name, value) for name, value in message["headers"] if (name.lower(), value) != same]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_once)
