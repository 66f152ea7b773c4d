"""From the text service's results to replies. Requests need no such step: bodies are the service's records.

Replies are read off the result's attributes, which have the names of the replies' fields (``service.translation``'s
``results``); what was not asked for is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel

from tandem.service.api.replies import (
    PosteditReply,
    SentenceEvent,
    SummarizeReply,
    SummaryEvent,
    TranslateReply,
)
from tandem.service.translation.progress import Event
from tandem.service.translation.requests import DecodeRequest, PosteditTask, SummarizeTask, TranslateTask
from tandem.service.translation.results import DecodeResult, FinishedSentence

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
