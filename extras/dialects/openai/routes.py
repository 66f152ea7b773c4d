"""OpenAI's routes: ``POST /v1/chat/completions`` and ``GET /v1/models``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from tandem.extras.dialects.openai.chat import ChatReplies, errand_of, errands, text_of
from tandem.extras.dialects.openai.document import STREAM, chat_body, openai_errors
from tandem.extras.dialects.openai.schemas import ChatCompletion, ChatRequest, OpenAiModel, OpenAiModels
from tandem.service.http.dependencies import (
    PartsDep,
    caller_of,
    context_of,
    counted_caller,
    fields_of,
    memory_of,
    note_priority,
    sender_of,
)
from tandem.service.http.openapi import streamed
from tandem.service.http.replying import stream
from tandem.service.translation.progress import Progress
from tandem.service.translation.requests import TranslateTask, priority_of

router = APIRouter(prefix="/v1", tags=["OpenAI"])


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses=streamed(STREAM) | openai_errors(400, 401, 404, 408, 429, 500, 503, 504),
    openapi_extra=chat_body(),
)
async def complete(
    request: Request, fields: Annotated[ChatRequest, Depends(fields_of(ChatRequest))], parts: PartsDep
) -> ChatCompletion | Response:
    """Translate or summarize the last message, as the model's name says; other messages are not read.

    With `stream` the reply is a stream of server-sent events: a chunk for the sentences that follow what was sent
    before, as soon as they are finished, then `[DONE]`.
    """
    caller = caller_of(request, parts.access)
    sender = sender_of(request)
    name, errand = errand_of(parts.texts.catalog, fields.model)
    text, options = text_of(fields), fields.stream_options
    task, context = errand.task(text), context_of(sender, recall=memory_of(parts, caller.name))
    replies = ChatReplies(name, sender.tag, include_usage=bool(options and options.include_usage))
    note_priority(request, priority_of(len(text), None, parts.settings.bulk_characters))

    async def answer(progress: Progress | None = None) -> ChatCompletion:
        async with parts.access.charged(caller, len(text)):
            if isinstance(task, TranslateTask):
                return replies.whole(await parts.texts.translate(task, context, progress))
            return replies.whole(await parts.texts.summarize(task, context, progress))

    return await stream(answer, request, replies) if fields.stream else await answer()


@router.get("/models", responses=openai_errors(401, 429, 503))
async def models(request: Request, parts: PartsDep) -> OpenAiModels:
    """What can be asked for: `translate-` and two languages, the first of which may be `auto`; `summarize-` and one."""
    await counted_caller(request, parts.access)
    return OpenAiModels(data=[_model(name) for name in errands(parts.texts.catalog)])


@router.get("/models/{model}", responses=openai_errors(400, 401, 404, 429, 503))
async def model(request: Request, parts: PartsDep, model: Annotated[str, Path(max_length=200)]) -> OpenAiModel:
    """One of them."""
    await counted_caller(request, parts.access)
    return _model(errand_of(parts.texts.catalog, model)[0])


def _model(name: str) -> OpenAiModel:
    return OpenAiModel(id=name, created=0)
