"""``POST /translate``, ``POST /postedit`` and ``POST /summarize``."""

from __future__ import annotations

from fastapi import APIRouter

from service.dependencies import PartsDep, PosteditFields, RequestId, SummarizeFields, TranslateFields
from service.openapi import (
    POSTEDIT_EXAMPLES,
    SUMMARIZE_EXAMPLES,
    TRANSLATE_EXAMPLES,
    error_responses,
    reply_example,
    request_body,
)
from service.schemas import (
    PosteditReply,
    PosteditRequest,
    SummarizeReply,
    SummarizeRequest,
    TranslateReply,
    TranslateRequest,
)

router = APIRouter(tags=["text"], responses=error_responses(400, 404, 413, 415, 422, 500, 503, 504))


@router.post(
    "/translate",
    response_model=TranslateReply,
    response_model_exclude_none=True,
    responses=reply_example({"translatedText": "Where is the train station?"}),
    openapi_extra=request_body(TranslateRequest, TRANSLATE_EXAMPLES),
)
async def translate(fields: TranslateFields, parts: PartsDep, request_id: RequestId) -> TranslateReply:
    """Translate a text or several. Paragraphs, lists and indentation come back as they were.

    A model that reads several languages at once needs the same text in all of them: `q` in `source`, the rest in
    `others`. A line is split into sentences where it has equally many in all languages, and else translated as one
    sentence. The layout is kept where a text has equally many lines with words in all languages, or else equally many
    sentences. Where it has neither, the whole text is translated as one sentence: the translation then stands on one
    line, and paragraphs and lists are lost.
    """
    return await parts.texts.translate(fields, request_id)


@router.post(
    "/postedit",
    response_model=PosteditReply,
    response_model_exclude_none=True,
    responses=reply_example({"translatedText": "Klicken Sie auf die Schaltfläche OK."}),
    openapi_extra=request_body(PosteditRequest, POSTEDIT_EXAMPLES),
)
async def postedit(fields: PosteditFields, parts: PartsDep, request_id: RequestId) -> PosteditReply:
    """Correct the machine translation of a text or several.

    A line is split into sentences where text and translation have equally many in it, and else read as one sentence.
    The translation's paragraphs, lists and indentation come back as they were where both have equally many lines with
    words, or else equally many sentences. Where they have neither, the whole is read as one sentence: the corrected
    translation then stands on one line. A translation comes back as it was where it or its text has no words.
    """
    return await parts.texts.postedit(fields, request_id)


@router.post(
    "/summarize",
    response_model=SummarizeReply,
    response_model_exclude_none=True,
    openapi_extra=request_body(SummarizeRequest, SUMMARIZE_EXAMPLES),
)
async def summarize(fields: SummarizeFields, parts: PartsDep, request_id: RequestId) -> SummarizeReply:
    """Summarize a text or several. `truncated` says whether a text was longer than the model takes."""
    return await parts.texts.summarize(fields, request_id)
