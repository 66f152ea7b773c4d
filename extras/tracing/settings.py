"""Where traces go."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TracingSettings(BaseModel):
    """OpenTelemetry's own variables hold as well."""

    traces_endpoint: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="OpenTelemetry collector that gets traces over OTLP/HTTP, such as http://localhost:4318; needs the"
        " extra [telemetry]; none = OTEL_EXPORTER_OTLP_ENDPOINT, or no traces.",
    )
