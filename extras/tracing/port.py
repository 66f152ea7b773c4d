"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="tracing",
    settings="tandem.extras.tracing.settings:TracingSettings",
    tracing="tandem.extras.tracing.opening:open_tracing",
)
