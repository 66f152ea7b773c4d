"""``POST /translate``, ``POST /postedit`` and ``POST /summarize``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from tandem.service.api.examples import SUMMARIZE_EVENTS, TRANSLATE_EVENTS
from tandem.service.api.replies import PosteditReply, SummarizeReply, TranslateReply
from tandem.service.api.schemas import PosteditRequest, SummarizeRequest, TranslateRequest
from tandem.service.callers import Caller
from tandem.service.http.dependencies import (
    PartsDep,
    PosteditFields,
    SenderDep,
    SummarizeFields,
    TranslateFields,
    charged,
    context_of,
    memory_of,
    postedit_request,
    summarize_request,
    translate_request,
)
from tandem.service.http.error_replies import InvalidFields
from tandem.service.http.openapi import error_responses, request_body, streamed
from tandem.service.http.replying import (
    postedit_reply,
    stream,
    summarize_reply,
    translate_reply,
    wants_events,
)
from tandem.service.translation.progress import Progress

router = APIRouter(tags=["text"], responses=error_responses(400, 401, 403, 404, 413, 415, 422, 429, 500, 503, 504))


@router.post(
    "/translate",
    response_model=TranslateReply,
    response_model_exclude_none=True,
    responses=streamed(TRANSLATE_EVENTS),
    openapi_extra=request_body(TranslateRequest),
)
async def translate(
    fields: TranslateFields,
    caller: Annotated[Caller, Depends(charged(translate_request))],
    parts: PartsDep,
    sender: SenderDep,
    request: Request,
) -> TranslateReply | Response:
    """Translate a text or several. Paragraphs, lists and indentation come back as they were.

    A model that reads several languages at once needs the same text in all of them: `q` in `source`, the rest in
    `others`. A line is split into sentences where it has equally many in all languages, and else translated as one
    sentence. The layout is kept where a text has equally many lines with words in all languages, or else equally many
    sentences. Where it has neither, the whole text is translated as one sentence: the translation then stands on one
    line, and paragraphs and lists are lost.

    With `stream`, or where events are accepted, the reply is a stream of server-sent events: `sentence` for each
    sentence as soon as it is finished, whatever its place, then `done` with the whole reply, or `error`.
    """

    async def answer(progress: Progress | None = None) -> TranslateReply:
        context = context_of(sender, recall=memory_of(parts, caller.name))
        return translate_reply(fields, await parts.texts.translate(fields, context, progress))

    if not wants_events(request, fields.stream):
        return await answer()
    if fields.format == "html":
        raise InvalidFields.of("stream", "must be false where the format is 'html'", True)
    return await stream(answer, request)


@router.post(
    "/postedit",
    dependencies=[Depends(charged(postedit_request))],
    response_model_exclude_none=True,
    openapi_extra=request_body(PosteditRequest),
)
async def postedit(fields: PosteditFields, parts: PartsDep, sender: SenderDep) -> PosteditReply:
    """Correct the machine translation of a text or several.

    A line is split into sentences where text and translation have equally many in it, and else read as one sentence.
    The translation's paragraphs, lists and indentation come back as they were where both have equally many lines with
    words, or else equally many sentences. Where they have neither, the whole is read as one sentence: the corrected
    translation then stands on one line. A translation comes back as it was where it or its text has no words.
    """
    return postedit_reply(fields, await parts.texts.postedit(fields, context_of(sender)))


@router.post(
    "/summarize",
    dependencies=[Depends(charged(summarize_request))],
    response_model=SummarizeReply,
    response_model_exclude_none=True,
    responses=streamed(SUMMARIZE_EVENTS),
    openapi_extra=request_body(SummarizeRequest),
)
async def summarize(
    fields: SummarizeFields, parts: PartsDep, sender: SenderDep, request: Request
) -> SummarizeReply | Response:
    """Summarize a text or several, of any length within the server's limit of characters.

    A text longer than the model reads is cut at sentences into parts, and their summaries are summarized again, until
    one is left or the setting `summary_depth` is reached: then the summaries of the parts are the answer, each on a
    line. `min_length` and `max_length` hold for what stands in the answer, `sentences` for all of it. Where parts were
    read, `details` has no alignments, unless their summaries are the answer. `truncated` is true only where that
    setting is 0 and the text was cut instead.

    With `stream`, or where events are accepted, the reply is a stream of server-sent events: `summary` for each text as
    soon as it is finished, then `done` with the whole reply, or `error`.
    """

    async def answer(progress: Progress | None = None) -> SummarizeReply:
        return summarize_reply(fields, await parts.texts.summarize(fields, context_of(sender), progress))

    return await stream(answer, request) if wants_events(request, fields.stream) else await answer()
