"""OpenTelemetry traces of requests, where an endpoint is configured. Otherwise nothing of it is loaded or run.

The server span and the reading of ``traceparent`` are FastAPI's own (its ``telemetry`` option), and not those of
``opentelemetry-instrumentation-asgi``, which would be one more package and adds a span for each message. Either records
paths and query strings: both may hold texts or the names of files, so a span processor covers them before anything is
exported. Spans of the work within a request are made here; they have counts and times, never a text.

The variables of the OpenTelemetry SDK hold (``OTEL_SERVICE_NAME``, ``OTEL_TRACES_SAMPLER``, headers, timeouts, ...).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import ConfigError
from service.engine import Decoded, Engine, Job
from service.http.connections import OPERATIONS
from service.settings import Settings

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
T = TypeVar("T")

OFF: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""What FastAPI is told where there are no traces: whatever its variables say, it reports nothing by itself."""
_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_COVERED = ("url.path", "url.query")
_tracer: ContextVar[Tracer | None] = ContextVar("tandem_tracer", default=None)


class Tracing:
    """Makes and exports the spans of one app."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self.tracer = provider.get_tracer("tandem")

    @property
    def telemetry(self) -> TelemetryConfig:
        """The ``telemetry`` option of the FastAPI app."""
        on: TelemetryConfig = {"tracing": True, "operation_spans": False, "tracer_provider": self._provider}
        return {**OFF, **on, "exclude": _is_quiet}

    def close(self) -> None:
        """Export what is left. Blocks."""
        self._provider.shutdown()


def open_tracing(settings: Settings) -> Tracing | None:
    """The app's tracing; None where no endpoint is configured.

    Raises:
        ConfigError: the packages are not installed.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    if not settings.traces_endpoint and not any(map(os.environ.get, _VARIABLES)):
        return None
    try:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        return trace_to(BatchSpanProcessor(_exporter(settings)))
    except ModuleNotFoundError as error:
        message = f"traces need the package {error.name!r}: install tandem with its extra [telemetry]"
        raise ConfigError(message) from error


def trace_to(processor: Any) -> Tracing:
    """Tracing that hands finished spans, without paths and queries, to a span processor of OpenTelemetry."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    class Cover(SpanProcessor):
        """Overwrites what may hold a text or a secret as soon as a span begins: nothing can be taken out of one."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            for name in _COVERED:
                if name in (span.attributes or {}):
                    span.set_attribute(name, "REDACTED")

    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if named else {"service.name": "tandem"}))
    provider.add_span_processor(Cover())
    provider.add_span_processor(processor)
    return Tracing(provider)


class TraceContext:
    """Lets the work of a request find the tracer, and its log lines carry the trace's id. Pure ASGI."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self._app, self._tracing = app, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_quiet(scope):
            await self._app(scope, receive, send)
            return
        from opentelemetry import trace

        span = trace.get_current_span()

        async def noting_send(message: Message) -> None:
            if message["type"] == "http.response.start":  # the span ends with the last part of the reply
                for name in ("request_id", "caller"):
                    span.set_attribute(f"tandem.{name}", scope.get("state", {}).get(name, ""))
            await send(message)

        token = _tracer.set(self._tracing.tracer)
        try:
            with structlog.contextvars.bound_contextvars(trace_id=f"{span.get_span_context().trace_id:032x}"):
                await self._app(scope, receive, noting_send)
        finally:
            _tracer.reset(token)


def traced(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function whose runs are spans, where it is called for a request that is traced."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            tracer = _tracer.get()
            with nullcontext() if tracer is None else tracer.start_as_current_span(name, record_exception=False):
                return function(*args, **kwargs)

        return wrapper

    return decorate


async def decode(engine: Engine, jobs: Sequence[Job], watch: Any = None) -> list[Decoded]:
    """As ``Engine.decode``; where the request is traced with the spans ``queue``, ``encode`` and ``decode``.

    Their times are those of the sentence that took longest, since the sentences of a request go through side by side.
    """
    tracer = _tracer.get()
    if tracer is None or not jobs:
        return await engine.decode(jobs, watch)
    attributes: dict[str, str | int] = {"tandem.model": jobs[0].bundle, **_sources(jobs)}
    with tracer.start_as_current_span("engine", attributes=attributes, record_exception=False) as span:
        began = time.time_ns()
        decoded = await engine.decode(jobs, watch)
        targets = _targets(decoded)
        span.set_attributes(targets)
        slowest = max(decoded, key=lambda one: one.queue + one.encode + one.decode)
        for name, seconds in (("queue", slowest.queue), ("encode", slowest.encode), ("decode", slowest.decode)):
            counts = {"queue": {}, "encode": _sources(jobs), "decode": targets}[name]
            part = tracer.start_span(name, start_time=began, attributes=counts)
            began += int(seconds * 1e9)
            part.end(began)
    return decoded


def _sources(jobs: Sequence[Job]) -> dict[str, int]:
    return {"tandem.sentences": len(jobs), "tandem.source_tokens": sum(job.source_tokens for job in jobs)}


def _targets(decoded: Sequence[Decoded]) -> dict[str, int]:
    tokens = sum(len(one.hypotheses[0].tokens) for one in decoded if one.hypotheses)
    return {"tandem.target_tokens": tokens, "tandem.cached_sentences": sum(one.cached for one in decoded)}


def _is_quiet(scope: Mapping[str, Any]) -> bool:
    return scope.get("path") in OPERATIONS  # asked every few seconds, for nobody


def _exporter(settings: Settings) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if settings.traces_endpoint:
        return OTLPSpanExporter(endpoint=f"{settings.traces_endpoint.rstrip('/')}/v1/traces")
    return OTLPSpanExporter()
