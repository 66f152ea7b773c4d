"""What is served: ``GET /languages``, ``GET /models`` and the front page."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from service.dependencies import PartsDep
from service.schemas import Language, ModelInfo

router = APIRouter(tags=["information"])


@router.get("/languages", response_model=list[Language], response_model_exclude_none=True)
async def languages(parts: PartsDep) -> list[Language]:
    """Source languages, each with the targets that it can be translated into, alone or together with others."""
    return parts.texts.catalog.languages()


@router.get("/models")
async def models(parts: PartsDep) -> list[ModelInfo]:
    """The loaded models."""
    return parts.texts.catalog.models()


@router.get("/", include_in_schema=False)
async def front_page() -> RedirectResponse:
    """The documentation, until there is a page of our own."""
    return RedirectResponse("docs")
