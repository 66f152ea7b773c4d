"""The app factory: settings and, for tests and embedding, an engine in; a FastAPI app out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from tandem.models.command import installed_version
from tandem.models.errors import ConfigError
from tandem.service.bundles.loading import build_engine
from tandem.service.bundles.readiness import Readiness
from tandem.service.callers import Accounts, OpenAccess
from tandem.service.engine import Engine
from tandem.service.http import openapi
from tandem.service.http.dependencies import AccountsOpener, Opener, Parts
from tandem.service.http.dialects import libretranslate
from tandem.service.http.edges import ConnectionLimit, CrossSiteCheck, HostCheck, RequestPath, SecurityHeaders
from tandem.service.http.error_replies import invalid_parameters
from tandem.service.http.intake import JsonBounds
from tandem.service.http.middleware import LoadShedding, RequestBody, RequestContext, error_response
from tandem.service.http.parts import NO_TELEMETRY, OpenTracing, Tracing, http_parts
from tandem.service.http.routes import models, operations, page, served_languages, text_routes
from tandem.service.ports import extras, load
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import TEXT_ROUTES, Metrics
from tandem.service.translation.texts import TextService

ROUTERS = (
    text_routes.router,
    served_languages.router,
    models.router,
    operations.router,
    page.router,
    libretranslate.router,
)

_EXPOSED = ("X-Request-ID", "Retry-After", "Location", "Content-Disposition")

_log = structlog.get_logger("tandem.app")
_ABOUT = "Translates and summarizes text with models that run here. Errors: `{error, code, detail?, request_id}`."


def create_app(settings: Settings, engine: Engine | None = None) -> FastAPI:
    """The service as an ASGI app.

    Args:
        settings: see ``Settings``; where an engine is given, those about bundles and decoding were its maker's.
        engine: with its bundles added and not started; None = the app loads ``settings.bundles`` when it starts.

    Raises (when it starts):
        ConfigError, BundleError: what ``build_engine`` raises.
    """
    brought = http_parts()
    decoding = (*TEXT_ROUTES, *(path for part in brought for path in part.decoding))
    metrics, tracing = Metrics(installed_version(), decoding), _tracing(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _running(settings, engine, metrics) as parts:
            app.state.parts = parts
            yield
        if tracing:
            await asyncio.to_thread(tracing.close)

    app = FastAPI(
        title="Tandem",
        version=installed_version(),
        description=_ABOUT,
        lifespan=lifespan,
        # Not include_router, which analyses every route anew, while the app's first request waits.
        routes=[
            *(route for router in ROUTERS for route in router.routes),
            *(route for part in brought for route in part.routes),
        ],
        openapi_url=None,  # the document has a route of ours
        redirect_slashes=False,  # no path that routes see ends in one
        telemetry=tracing.telemetry if tracing else NO_TELEMETRY,
    )
    app.add_exception_handler(HTTPException, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_middleware(
        RequestBody,
        max_bytes=settings.max_body_bytes,
        timeout=settings.request_timeout,
        json_bounds=JsonBounds(settings.max_json_depth, settings.max_number_length),
        others=[bounds(settings) for bounds in (part.bodies for part in brought) if bounds is not None],
    )
    app.add_middleware(LoadShedding, paths=decoding)
    app.add_middleware(ConnectionLimit)
    app.add_middleware(CrossSiteCheck, settings=settings)
    app.add_middleware(HostCheck, settings=settings)
    app.add_middleware(RequestContext, metrics=metrics)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            # Any: clients send headers of their own (OpenAI's a dozen, more with each version), nothing here depends on
            # one that a page cannot know, and cookies are not asked for.
            allow_headers=("*",),
            expose_headers=(*_EXPOSED, *(name for part in brought for name in part.exposed_headers)),
        )
    app.add_middleware(RequestPath)
    app.add_middleware(SecurityHeaders)  # outermost but for tracing
    if tracing:
        app.add_middleware(tracing.around)
    openapi.install(app, settings)
    return app


@asynccontextmanager
async def _running(settings: Settings, given: Engine | None, metrics: Metrics) -> AsyncIterator[Parts]:
    engine = await asyncio.to_thread(build_engine, settings) if given is None else given
    async with _accounts(settings, metrics) as accounts, AsyncExitStack() as brought:
        parts = await _parts(settings, engine, metrics, accounts)
        metrics.watch(engine, parts.readiness)
        metrics.watch_texts(parts.texts)
        engine.start()
        try:
            for opener in _openers():
                resource = await brought.enter_async_context(opener(parts))
                parts.resources[type(resource)] = resource
            faults = await parts.readiness.faults()
            options: dict[str, Any] = {"workers": engine.options.workers, "limits": asdict(engine.options.limits)}
            options |= {"data": settings.data is not None, "keys": settings.asks_for_keys}
            _log.info("started", version=installed_version(), models=list(engine.bundles), **options, not_ready=faults)
            yield parts
        finally:
            engine.dispatcher.close()
            finished = await asyncio.to_thread(engine.stop, settings.shutdown_timeout)
            await brought.aclose()
            parts.texts.close()
            counts = {
                name: getattr(engine.dispatcher.counters, name)
                for name in ("finished", "cancelled", "expired", "failed")
            }
            _log.info("stopped", everything_finished=finished, sentences=counts)


async def _parts(settings: Settings, engine: Engine, metrics: Metrics, accounts: Accounts) -> Parts:
    text_service = TextService(engine, settings)
    access, glossaries, memory = accounts.access, accounts.glossaries, accounts.memory
    return Parts(
        engine,
        text_service,
        Readiness(engine, settings.probe_timeout, settings.probe_interval),
        metrics,
        settings,
        glossaries,
        memory,
        access,
        {type(one): one for one in (access, glossaries, memory)},
    )


@asynccontextmanager
async def _accounts(settings: Settings, metrics: Metrics) -> AsyncIterator[Accounts]:
    """Those that an extra brings, or none. Raises ConfigError where several bring them, and what opening raises."""
    places = [extra.accounts for extra in extras() if extra.accounts is not None]
    if len(places) > 1:
        raise ConfigError(f"one extra may know callers, but {len(places)} do: {', '.join(places)}; remove all but one")
    if not places:
        yield Accounts(OpenAccess(settings.admin_key))
        return
    opener: AccountsOpener = load(places[0])
    async with opener(settings, metrics) as accounts:
        yield accounts


def _tracing(settings: Settings) -> Tracing | None:
    """Of an extra, where the settings ask for it. Raises ConfigError where its packages are not installed."""
    openers: Iterator[OpenTracing] = (load(extra.tracing) for extra in extras() if extra.tracing is not None)
    return next((tracing for opener in openers if (tracing := opener(settings)) is not None), None)


def _openers() -> Iterator[Opener]:
    """Of what extras bring."""
    return (load(place) for extra in extras() for place in extra.resources)


async def _answer_error(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else ()
    return error_response(invalid_parameters(found), request.scope)
