"""For those who run the service: ``GET /healthz``, ``GET /readyz`` and ``GET /metrics``."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tandem.service.api.replies import Status
from tandem.service.http.dependencies import PartsDep
from tandem.service.http.error_replies import NotReady
from tandem.service.http.openapi import error_responses

router = APIRouter(tags=["operations"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Status:
    """The process is alive."""
    return Status(status="ok")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=error_responses(503))
async def readyz(parts: PartsDep) -> Status:
    """Every bundle decodes; 503 with the reasons otherwise, also while shutting down."""
    faults = await parts.readiness.faults()
    if faults:
        raise NotReady(faults)
    return Status(status="ready")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(parts: PartsDep) -> Response:
    """Prometheus metrics."""
    content, media_type = parts.metrics.render()
    return Response(content, media_type=media_type)
