"""Between the HTTP contract and the text service: fields become a request, a result becomes a reply. Nowhere else.

Replies are read off the result's attributes, which have the names of the replies' fields (``service.translation``'s
``results``); what was not asked for is left out here.
"""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

from pydantic import BaseModel

from models.search import Sampling
from service.api.replies import (
    DetectedLanguage,
    GlossaryTerm,
    Language,
    PosteditReply,
    ProtectedSpan,
    SentenceDetail,
    SentenceEvent,
    SourceCombination,
    SummarizeReply,
    SummaryEvent,
    TextDetail,
    Time,
    TranslateReply,
    Usage,
)
from service.api.schemas import DecodingFields, PosteditRequest, SamplingFields, SummarizeRequest, TranslateRequest
from service.bundles.catalog import ServedLanguage
from service.text.markup import MarkupOptions
from service.translation.progress import Event
from service.translation.requests import PosteditTask, SummarizeTask, TranslateTask
from service.translation.results import DecodeResult, FinishedSentence

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

_SHARED = (
    "alternatives", "details", "scores", "alignments", "model", "beam_size", "length_penalty", "coverage_penalty",
    "min_length", "max_length", "no_repeat_ngram_size", "prefix", "timeout", "priority",
)  # fmt: skip


def translate_task(fields: TranslateRequest, tag: str) -> TranslateTask:
    """The request that the fields of ``POST /translate`` make; ``tag`` names it in logs."""
    others = {name.removeprefix("others."): texts for name, texts in fields.further_texts.items()}
    return TranslateTask(
        source=fields.source,
        target=fields.target,
        others=others,
        markup=MarkupOptions() if fields.format == "html" else None,
        glossary=fields.glossary,
        protect=fields.protect,
        **_shared(fields, tag),
    )


def postedit_task(fields: PosteditRequest, tag: str) -> PosteditTask:
    """The request that the fields of ``POST /postedit`` make."""
    translations = fields.further_texts["translation"]
    return PosteditTask(source=fields.source, target=fields.target, translations=translations, **_shared(fields, tag))


def summarize_task(fields: SummarizeRequest, tag: str) -> SummarizeTask:
    """The request that the fields of ``POST /summarize`` make."""
    return SummarizeTask(language=fields.language, **_shared(fields, tag))


def _shared(fields: DecodingFields, tag: str) -> dict[str, Any]:
    shared = {name: getattr(fields, name) for name in _SHARED}
    sampling = None if fields.sampling is None else _sampling(fields.sampling)
    return {**shared, "texts": fields.texts, "sampling": sampling, "tag": tag}


def _sampling(fields: SamplingFields) -> Sampling:
    seed = secrets.randbits(31) if fields.seed is None else fields.seed
    return Sampling(fields.temperature, fields.top_k, fields.top_p, seed)


def translate_reply(fields: TranslateRequest, result: DecodeResult) -> TranslateReply:
    """The reply to ``POST /translate``."""
    texts = result.texts
    reply = TranslateReply(translatedText=_as_asked(fields, [text.text for text in texts]), **_extras(fields, result))
    if result.guesses:
        reply.detectedLanguage = _as_asked(fields, [_read(DetectedLanguage, guess) for guess in result.guesses])
    if fields.protect:
        reply.protected = _as_asked(fields, [[_read(ProtectedSpan, part) for part in text.protected] for text in texts])
    if fields.glossary:
        reply.glossary = _as_asked(fields, [[_read(GlossaryTerm, term) for term in text.glossary] for text in texts])
    return reply


def postedit_reply(fields: PosteditRequest, result: DecodeResult) -> PosteditReply:
    """The reply to ``POST /postedit``."""
    written = _as_asked(fields, [text.text for text in result.texts])
    return PosteditReply(translatedText=written, **_extras(fields, result))


def summarize_reply(fields: SummarizeRequest, result: DecodeResult) -> SummarizeReply:
    """The reply to ``POST /summarize``, which always says what it amounted to."""
    counted = {"model": result.model, "usage": _read(Usage, result.usage), "time": _read(Time, result.time)}
    return SummarizeReply(
        summary=_as_asked(fields, [text.text for text in result.texts]),
        truncated=_as_asked(fields, [text.truncated for text in result.texts]),
        **{**_extras(fields, result), **counted},
    )


def event_of(event: Event) -> SentenceEvent | SummaryEvent:
    """What a stream says of a finished sentence or summary."""
    return _read(SentenceEvent, event) if isinstance(event, FinishedSentence) else _read(SummaryEvent, event)


def language_reply(served: ServedLanguage) -> Language:
    """An entry of ``GET /languages``."""
    together = [SourceCombination(sources=list(sources), target=target) for sources, target in served.combinations]
    return Language(code=served.code, name=served.name, targets=list(served.targets), combinations=together or None)


def _extras(fields: DecodingFields, result: DecodeResult) -> dict[str, Any]:
    """What replies share, as far as it was asked for."""
    extras: dict[str, Any] = {}
    if fields.alternatives:
        extras["alternatives"] = _as_asked(fields, [list(text.alternatives) for text in result.texts])
    if fields.wants_details:
        extras["details"] = [
            TextDetail(sentences=[_read(SentenceDetail, sentence) for sentence in text.sentences])
            for text in result.texts
        ]
        extras |= {"model": result.model, "usage": _read(Usage, result.usage), "time": _read(Time, result.time)}
    return extras


def _as_asked(fields: DecodingFields, values: list[T]) -> T | list[T]:
    return values[0] if isinstance(fields.q, str) else values


def _read(model: type[Model], record: object) -> Model:
    return model.model_validate(record, from_attributes=True)
