"""``POST /detect`` and ``GET /languages``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from tandem.service.api.replies import DetectedLanguage, Language
from tandem.service.api.schemas import DetectRequest
from tandem.service.bundles.catalog import ServedLanguage
from tandem.service.http.dependencies import PartsDep, caller_of, fields_of, sender_of
from tandem.service.http.openapi import error_responses, request_body

router = APIRouter()


@router.post(
    "/detect",
    tags=["text"],
    responses=error_responses(400, 401, 403, 413, 415, 422, 429, 500),
    openapi_extra=request_body(DetectRequest),
)
async def detect(
    request: Request, fields: Annotated[DetectRequest, Depends(fields_of(DetectRequest))], parts: PartsDep
) -> list[DetectedLanguage]:
    """The languages that a text may be in, best first, at least one and at most five.

    The beginning of the text decides. Languages that are served are preferred where the text leaves it open. A text
    without letters is in no language: the reply then names a served one with a confidence of 0.
    """
    caller = caller_of(request, parts.access, fields.api_key)
    parts.texts.detector.check(fields.q)
    await parts.access.charge(caller, 0)  # a request, but no characters: nothing is decoded
    guesses = await parts.texts.detect(fields.q, sender_of(request).caller)
    return [DetectedLanguage(language=guess.language, confidence=guess.confidence) for guess in guesses]


@router.get("/languages", tags=["information"], response_model=list[Language], response_model_exclude_none=True)
async def languages(parts: PartsDep) -> list[ServedLanguage]:
    """Source languages, each with the targets that it can be translated into, alone or together with others."""
    return parts.texts.catalog.languages()
