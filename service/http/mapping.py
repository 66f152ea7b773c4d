"""Between the HTTP contract and the text service: fields become a request, a result becomes a reply. Nowhere else.

Replies are read off the result's attributes, which have the names of the replies' fields (``service.translation``'s
``results``); what was not asked for is left out here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from models.search import Sampling
from service.api.replies import (
    PosteditReply,
    SentenceEvent,
    SummarizeReply,
    SummaryEvent,
    TranslateReply,
)
from service.api.schemas import DecodingFields, PosteditRequest, SamplingFields, SummarizeRequest, TranslateRequest
from service.http.credentials import Sender
from service.text.markup import MarkupOptions
from service.translation.progress import Event
from service.translation.requests import PosteditTask, Recall, Rerank, SummarizeTask, TranslateTask
from service.translation.results import DecodeResult, FinishedSentence

Model = TypeVar("Model", bound=BaseModel)

_SHARED = (
    "alternatives", "details", "scores", "alignments", "model", "beam_size", "length_penalty", "coverage_penalty",
    "min_length", "max_length", "no_repeat_ngram_size", "prefix", "timeout", "priority",
)  # fmt: skip
_RERANK: Mapping[bool | None, Rerank | None] = {None: None, True: "always", False: "never"}


def translate_task(fields: TranslateRequest, sender: Sender, memory: Recall | None) -> TranslateTask:
    """The request that the fields of ``POST /translate`` make, with the memory of its caller, if that has one."""
    others = {name.removeprefix("others."): texts for name, texts in fields.further_texts.items()}
    return TranslateTask(
        source=fields.source,
        target=fields.target,
        others=others,
        markup=MarkupOptions() if fields.format == "html" else None,
        glossary=fields.glossary,
        protect=fields.protect,
        pivot=fields.pivot,
        memory=memory if fields.memory else None,
        refused=frozenset() if fields.lexicon else frozenset({"lexicon"}),
        rerank=_RERANK[fields.rerank],
        **_shared(fields, sender),
    )


def postedit_task(fields: PosteditRequest, sender: Sender) -> PosteditTask:
    """The request that the fields of ``POST /postedit`` make."""
    translations = fields.further_texts["translation"]
    return PosteditTask(
        source=fields.source, target=fields.target, translations=translations, **_shared(fields, sender)
    )


def summarize_task(fields: SummarizeRequest, sender: Sender) -> SummarizeTask:
    """The request that the fields of ``POST /summarize`` make."""
    return SummarizeTask(
        language=fields.language, sentences=fields.sentences, method=fields.method, **_shared(fields, sender)
    )


def _shared(fields: DecodingFields, sender: Sender) -> dict[str, Any]:
    shared = {name: getattr(fields, name) for name in _SHARED}
    sampling = None if fields.sampling is None else _sampling(fields.sampling)
    return {**shared, "texts": fields.texts, "sampling": sampling, "tag": sender.tag, "caller": sender.caller}


def _sampling(fields: SamplingFields) -> Sampling:
    seed = secrets.randbits(31) if fields.seed is None else fields.seed
    return Sampling(fields.temperature, fields.top_k, fields.top_p, seed)


def translate_reply(fields: TranslateRequest, result: DecodeResult) -> TranslateReply:
    """The reply to ``POST /translate``."""
    per_text: dict[str, Sequence[object]] = {"translatedText": [text.text for text in result.texts]}
    if result.guesses:
        per_text["detectedLanguage"] = result.guesses
    if any(text.via for text in result.texts):
        per_text["via"] = [text.via for text in result.texts]
    if fields.protect:
        per_text["protected"] = [text.protected for text in result.texts]
    if fields.glossary:
        per_text["glossary"] = [text.glossary for text in result.texts]
    return _reply(TranslateReply, fields, result, per_text)


def postedit_reply(fields: PosteditRequest, result: DecodeResult) -> PosteditReply:
    """The reply to ``POST /postedit``."""
    return _reply(PosteditReply, fields, result, {"translatedText": [text.text for text in result.texts]})


def summarize_reply(fields: SummarizeRequest, result: DecodeResult) -> SummarizeReply:
    """The reply to ``POST /summarize``, which always says what it amounted to."""
    texts = result.texts
    per_text: dict[str, Sequence[object]] = {"summary": [text.text for text in texts]}
    per_text["truncated"] = [text.truncated for text in texts]
    per_text["method"] = [text.method for text in texts]
    return _reply(SummarizeReply, fields, result, per_text, counted=True)


def event_of(event: Event) -> SentenceEvent | SummaryEvent:
    """What a stream says of a finished sentence or summary."""
    model = SentenceEvent if isinstance(event, FinishedSentence) else SummaryEvent
    return model.model_validate(event, from_attributes=True)


def _reply(
    model: type[Model],
    fields: DecodingFields,
    result: DecodeResult,
    per_text: Mapping[str, Sequence[object]],
    *,
    counted: bool = False,
) -> Model:
    """A reply: of each field a value per text, or the only one as ``q`` was; and what else was asked for."""
    alternatives = {"alternatives": [text.alternatives for text in result.texts]} if fields.alternatives else {}
    values: dict[str, object] = {
        name: column[0] if isinstance(fields.q, str) else column
        for name, column in {**per_text, **alternatives}.items()
    }
    if fields.wants_details:
        values["details"] = result.texts
    if fields.wants_details or counted:
        values |= {"model": result.model, "usage": result.usage, "time": result.time}
    return model.model_validate(values, from_attributes=True)
