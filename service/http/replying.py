"""Results as replies: whole, or sentence by sentence as server-sent events.

Requests need no such step: bodies are the service's records. Replies are read off the result's attributes, which have
the names of the replies' fields (``service.translation.results``); what was not asked for is left out here.

    event: sentence   a finished sentence, as soon as it is finished, whatever its place in the text
    event: summary    a finished summary, likewise
    event: done       the whole reply, as it would have come without streaming
    event: error      instead of ``done``, what went wrong after the first event, in the shape of every error

The framing is FastAPI's own (``fastapi.sse``), which the framework that is here already keeps to the standard;
sse-starlette would be a second implementation of it whose response watches the connection by itself, while here the
middleware does. An error before anything was sent is an ordinary reply with its own status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import structlog
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tandem.service.api.replies import (
    PosteditReply,
    SentenceEvent,
    SummarizeReply,
    SummaryEvent,
    TranslateReply,
)
from tandem.service.http.middleware import error_response
from tandem.service.translation.progress import Event, Progress, Render
from tandem.service.translation.requests import DecodeRequest, PosteditTask, SummarizeTask, TranslateTask
from tandem.service.translation.results import DecodeResult, FinishedSentence

KEEP_ALIVE = 10.0
"""Seconds of silence after which a comment is sent, so that nothing between server and client gives up."""

_log = structlog.get_logger("tandem.stream")
_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}  # the latter for nginx and its kin

Work: TypeAlias = Callable[[Progress], Coroutine[Any, Any, BaseModel]]
Model = TypeVar("Model", bound=BaseModel)


def translate_reply(request: TranslateTask, result: DecodeResult) -> TranslateReply:
    """The reply to ``POST /translate``."""
    per_text: dict[str, Sequence[object]] = {"translatedText": [text.text for text in result.texts]}
    if result.guesses:
        per_text["detectedLanguage"] = result.guesses
    if any(text.via for text in result.texts):
        per_text["via"] = [text.via for text in result.texts]
    if request.protect:
        per_text["protected"] = [text.protected for text in result.texts]
    if request.glossary:
        per_text["glossary"] = [text.glossary for text in result.texts]
    return _reply(TranslateReply, request, result, per_text)


def postedit_reply(request: PosteditTask, result: DecodeResult) -> PosteditReply:
    """The reply to ``POST /postedit``."""
    return _reply(PosteditReply, request, result, {"translatedText": [text.text for text in result.texts]})


def summarize_reply(request: SummarizeTask, result: DecodeResult) -> SummarizeReply:
    """The reply to ``POST /summarize``, which always says what it amounted to."""
    texts = result.texts
    per_text: dict[str, Sequence[object]] = {"summary": [text.text for text in texts]}
    per_text["truncated"] = [text.truncated for text in texts]
    per_text["method"] = [text.method for text in texts]
    return _reply(SummarizeReply, request, result, per_text, counted=True)


def event_of(event: Event) -> SentenceEvent | SummaryEvent:
    """What a stream says of a finished sentence or summary."""
    model = SentenceEvent if isinstance(event, FinishedSentence) else SummaryEvent
    return model.model_validate(event, from_attributes=True)


def _reply(
    model: type[Model],
    request: DecodeRequest,
    result: DecodeResult,
    per_text: Mapping[str, Sequence[object]],
    *,
    counted: bool = False,
) -> Model:
    """A reply: of each field a value per text, or the only one as ``q`` was; and what else was asked for."""
    alternatives = {"alternatives": [text.alternatives for text in result.texts]} if request.alternatives else {}
    values: dict[str, object] = {
        name: column[0] if isinstance(request.q, str) else column
        for name, column in {**per_text, **alternatives}.items()
    }
    if request.wants_details:
        values["details"] = result.texts
    if request.wants_details or counted:
        values |= {"model": result.model, "usage": result.usage, "time": result.time}
    return model.model_validate(values, from_attributes=True)


class Framing(Protocol):
    """How a dialect writes events; each may be nothing."""

    def event(self, event: Event) -> bytes:
        """Of what is finished."""

    def done(self, reply: BaseModel) -> bytes:
        """Of the end."""

    def error(self, body: str) -> bytes:
        """Of what went wrong, instead of an end: an error's body."""


class NamedEvents:
    """Our own, as the module describes them."""

    def event(self, event: Event) -> bytes:
        """An event named for what is finished."""
        reply = event_of(event)
        return self._named(reply.name, reply)

    def done(self, reply: BaseModel) -> bytes:
        """The whole reply."""
        return self._named("done", reply)

    def error(self, body: str) -> bytes:
        """The error's body."""
        return format_sse_event(event="error", data_str=body)

    @staticmethod
    def _named(name: str, content: BaseModel) -> bytes:
        return format_sse_event(event=name, data_str=content.model_dump_json(exclude_none=True))


_NAMED_EVENTS = NamedEvents()


def wants_events(request: Request, asked: bool) -> bool:
    """Whether a request is to be answered by events: it says so in a field, or accepts nothing but events."""
    kinds = {kind.split(";")[0].strip().lower() for kind in request.headers.get("accept", "").split(",")}
    return asked or "text/event-stream" in kinds


async def stream(work: Work, request: Request, framing: Framing = _NAMED_EVENTS) -> Response:
    """Run a request's work and send each sentence when it is finished.

    Args:
        work: answers the request, and notes in the given ``Progress`` what is finished.
        request: the request that it answers.
        framing: how its dialect writes events.

    Raises:
        what ``work`` raises before a sentence is finished, if it does so within ``KEEP_ALIVE`` seconds.
    """
    progress = Progress()
    task = asyncio.ensure_future(work(progress))
    task.add_done_callback(lambda _: progress.end())
    try:
        first = await _first(progress, task)
    except BaseException:
        task.cancel()
        raise
    return _SentenceStream(_events(first, progress, task, request.scope, framing), task)


async def _first(progress: Progress, task: asyncio.Future[BaseModel]) -> Render | None:
    """The first finished sentence, or nothing where it takes long or there is none; raises what the work raises."""
    try:
        first = await progress.next(KEEP_ALIVE)
    except TimeoutError:
        return None
    if first is None:
        await task
        progress.end()  # once more, for whoever sends the events
    return first


class _SentenceStream(EventSourceResponse):
    """Events; the work behind them ends with the connection."""

    def __init__(self, events: AsyncIterator[bytes], task: asyncio.Future[BaseModel]) -> None:
        super().__init__(events, headers=_HEADERS)
        self._task = task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _events(
    first: Render | None, progress: Progress, task: asyncio.Future[BaseModel], scope: Scope, framing: Framing
) -> AsyncIterator[bytes]:
    try:
        more, render = True, first
        while more:
            event = None if render is None else await asyncio.to_thread(render)
            if event is not None and (written := framing.event(event)):
                yield written
            try:
                render = await progress.next(KEEP_ALIVE)
                more = render is not None
            except TimeoutError:
                render = None
                yield KEEPALIVE_COMMENT
        yield framing.done(await task)
    except Exception as error:
        response = error_response(error, scope)
        scope["state"]["failed"] = response.status_code  # the reply's says otherwise, and who is charged should know
        if response.status_code == 500:
            _log.exception("stream_failed")
        yield framing.error(bytes(response.body).decode())
