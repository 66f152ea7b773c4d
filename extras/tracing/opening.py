"""OpenTelemetry traces of requests, where an endpoint is configured. Otherwise nothing of it is loaded or run.

The server span and the reading of ``traceparent`` are FastAPI's own (its ``telemetry`` option), and not those of
``opentelemetry-instrumentation-asgi``, which would be one more package and adds a span for each message. Either records
paths and query strings: both may hold texts or the names of files, so a span processor covers them before anything is
exported. Spans of the work within a request are made by ``service.telemetry.tracing``.

The variables of the OpenTelemetry SDK hold (``OTEL_SERVICE_NAME``, ``OTEL_TRACES_SAMPLER``, headers, timeouts, ...).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.extras.tracing.settings import TracingSettings
from tandem.models.errors import ConfigError
from tandem.service.http.edges import OPERATIONS
from tandem.service.http.parts import NO_TELEMETRY
from tandem.service.settings import Settings
from tandem.service.telemetry.tracing import tracer_of_request

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_COVERED = ("url.path", "url.query")


class Spans:
    """Makes and exports the spans of one app (see :class:`service.http.parts.Tracing`)."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self.tracer = provider.get_tracer("tandem")

    @property
    def telemetry(self) -> TelemetryConfig:
        on: TelemetryConfig = {"tracing": True, "operation_spans": False, "tracer_provider": self._provider}
        return {**NO_TELEMETRY, **on, "exclude": _is_quiet}

    def around(self, app: ASGIApp) -> ASGIApp:
        return TraceContext(app, self)

    def close(self) -> None:
        self._provider.shutdown()


def open_tracing(settings: Settings) -> Spans | None:
    """The app's tracing; None where no endpoint is configured.

    Raises:
        ConfigError: the packages are not installed.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    if not settings.part(TracingSettings).traces_endpoint and not any(map(os.environ.get, _VARIABLES)):
        return None
    try:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        return trace_to(BatchSpanProcessor(_exporter(settings)))
    except ModuleNotFoundError as error:
        message = f"traces need the package {error.name!r}: install tandem with its extra [telemetry]"
        raise ConfigError(message) from error


def trace_to(processor: Any) -> Spans:
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
    return Spans(provider)


class TraceContext:
    """Lets the work of a request find the tracer, and its log lines carry the trace's id. Pure ASGI."""

    def __init__(self, app: ASGIApp, tracing: Spans) -> None:
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

        token = tracer_of_request.set(self._tracing.tracer)
        try:
            with structlog.contextvars.bound_contextvars(trace_id=f"{span.get_span_context().trace_id:032x}"):
                await self._app(scope, receive, noting_send)
        finally:
            tracer_of_request.reset(token)


def _is_quiet(scope: Mapping[str, Any]) -> bool:
    return scope.get("path") in OPERATIONS  # asked every few seconds, for nobody


def _exporter(settings: Settings) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    endpoint = settings.part(TracingSettings).traces_endpoint  # None = that of the SDK's variables
    return OTLPSpanExporter(endpoint=endpoint and f"{endpoint.rstrip('/')}/v1/traces")
