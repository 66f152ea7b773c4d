"""``POST /translate`` and ``POST /summarize``."""

from __future__ import annotations

from fastapi import APIRouter

from service.dependencies import PartsDep, RequestId, SummarizeFields, TranslateFields
from service.openapi import SUMMARIZE_EXAMPLES, TRANSLATE_EXAMPLES, error_responses, request_body
from service.schemas import SummarizeReply, SummarizeRequest, TranslateReply, TranslateRequest

router = APIRouter(tags=["text"], responses=error_responses(400, 404, 413, 415, 422, 500, 503, 504))


@router.post(
    "/translate",
    response_model=TranslateReply,
    response_model_exclude_none=True,
    openapi_extra=request_body(TranslateRequest, TRANSLATE_EXAMPLES),
)
async def translate(fields: TranslateFields, parts: PartsDep, request_id: RequestId) -> TranslateReply:
    """Translate a text or several. Paragraphs, lists and indentation come back as they were."""
    return await parts.texts.translate(fields, request_id)


@router.post(
    "/summarize",
    response_model=SummarizeReply,
    response_model_exclude_none=True,
    openapi_extra=request_body(SummarizeRequest, SUMMARIZE_EXAMPLES),
)
async def summarize(fields: SummarizeFields, parts: PartsDep, request_id: RequestId) -> SummarizeReply:
    """Summarize a text or several. `truncated` says whether a text was longer than the model takes."""
    return await parts.texts.summarize(fields, request_id)
