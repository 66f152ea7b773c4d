"""What is served: ``GET /languages``."""

from __future__ import annotations

from fastapi import APIRouter

from service.api.replies import Language
from service.http.dependencies import PartsDep
from service.http.mapping import language_reply

router = APIRouter(tags=["information"])


@router.get("/languages", response_model=list[Language], response_model_exclude_none=True)
async def languages(parts: PartsDep) -> list[Language]:
    """Source languages, each with the targets that it can be translated into, alone or together with others."""
    return [language_reply(language) for language in parts.texts.catalog.languages()]
