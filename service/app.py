"""The app factory: settings and, for tests and embedding, an engine in; a FastAPI app out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from service import openapi
from service.dependencies import Parts
from service.engine import Engine
from service.errors import BadRequest
from service.loading import build_engine
from service.metrics import Metrics
from service.middleware import RequestBody, RequestContext, error_response
from service.readiness import Readiness
from service.routes import info, operations, texts
from service.settings import Settings
from service.texts import TextService

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
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _running(settings, engine, metrics) as parts:
            app.state.parts = parts
            yield

    app = FastAPI(title="Tandem", version=_version(), description=_ABOUT, lifespan=lifespan, redoc_url=None)
    for router in (texts.router, info.router, operations.router):
        app.include_router(router)
    app.add_exception_handler(HTTPException, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_middleware(RequestBody, max_bytes=settings.max_body_bytes, timeout=settings.request_timeout)
    app.add_middleware(RequestContext, metrics=metrics)  # added last: outermost
    openapi.install(app)
    return app


@asynccontextmanager
async def _running(settings: Settings, given: Engine | None, metrics: Metrics) -> AsyncIterator[Parts]:
    engine = await asyncio.to_thread(build_engine, settings) if given is None else given
    parts = Parts(engine, TextService(engine, settings), Readiness(engine, settings), metrics)
    metrics.watch(engine)
    engine.start()
    try:
        faults = await parts.readiness.faults()
        _log.info("started", bundles=list(engine.bundles), workers=engine.options.workers, not_ready=faults)
        yield parts
    finally:
        engine.close()
        finished = await asyncio.to_thread(engine.stop, settings.shutdown_timeout)
        parts.texts.close()
        _log.info("stopped", everything_finished=finished)


async def _answer_error(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    return error_response(BadRequest("the request cannot be read"), request.scope)


def _version() -> str:
    try:
        return metadata.version("tandem")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "0"
