"""What the text routes do: split, decode, put together. The routes only translate to and from HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from models.bundle import Bundle
from models.search import Hypothesis
from models.text import normalise
from service.catalog import Catalog
from service.decoding import Codec, Plan, check_size, make_plan, request_seconds, time_of, usage_of
from service.engine import Decoded, Engine, Job
from service.schemas import (
    DecodingFields,
    DecodingReply,
    PosteditReply,
    PosteditRequest,
    SentenceDetail,
    Span,
    SummarizeReply,
    SummarizeRequest,
    TextDetail,
    TranslateReply,
    TranslateRequest,
)
from service.settings import Settings
from service.sides import Parsed, Sides, split
from service.text import cut_to_limit, is_translatable

P = ParamSpec("P")
T = TypeVar("T")
Rewritten = TypeVar("Rewritten", TranslateReply, PosteditReply)


@dataclass(frozen=True, slots=True)
class Written:
    """One text of a reply: the best hypothesis, the alternatives, and where its sentences stand."""

    text: str
    alternatives: list[str]
    detail: TextDetail


class TextService:
    """Answers requests with the engine. The event loop only waits: texts are split and tokenised in threads."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.catalog = Catalog(engine)
        self._engine = engine
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.text_threads, thread_name_prefix="tandem-text")

    def close(self) -> None:
        """End the text threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def translate(self, request: TranslateRequest, tag: str) -> TranslateReply:
        """Translate a request's texts; ``tag`` names the request in logs.

        Raises:
            HttpError, OptionError: what the request asks for cannot be done.
            Overloaded, Draining, DeadlinePassed, DecodingFailed: see ``Engine.decode``.
            TimeoutError: the request's deadline.
        """
        started = self._engine.clock()
        characters = check_size(request, self._settings)
        others = tuple(request.others or ())
        route = self.catalog.translator(request.source, request.target, request.model, others)
        texts = {"q": request.texts, **request.further_texts}
        sides = Sides(route.fields, tuple(texts[name] for name in route.fields), route.languages, route.lead)
        return await self._rewrite(TranslateReply, request, route.bundle, sides, (started, characters, tag))

    async def postedit(self, request: PosteditRequest, tag: str) -> PosteditReply:
        """Correct machine translations; where text or translation has no words, the translation is the reply.

        Raises as ``translate`` does.
        """
        started = self._engine.clock()
        characters = check_size(request, self._settings)
        bundle = self.catalog.posteditor(request.source, request.target, request.model)
        languages = (bundle.manifest.source_languages[0], bundle.manifest.target_language)
        columns = (request.texts, request.further_texts["translation"])
        sides = Sides(("q", "translation"), columns, languages, lead=1, complete=False)
        return await self._rewrite(PosteditReply, request, bundle, sides, (started, characters, tag))

    async def _rewrite(
        self,
        reply_type: type[Rewritten],
        request: DecodingFields,
        bundle: Bundle,
        sides: Sides,
        admitted: tuple[float, int, str],
    ) -> Rewritten:
        """Decode every sentence and put the results in its place; ``admitted``: start, characters, tag."""
        started, characters, tag = admitted
        plan = make_plan(request, bundle, self._engine, self._settings, tag)
        async with asyncio.timeout(request_seconds(request, self._settings)):
            parsed, jobs = await self._in_thread(split, sides, plan)
            decoded = await self._engine.decode(jobs)
            written = await self._in_thread(_write_texts, request, plan.codec, parsed, decoded)
        reply = reply_type(translatedText=_as_asked(request, [one.text for one in written]))
        _add_extras(reply, request, written)
        if request.wants_details:
            reply.model, reply.usage = bundle.manifest.name, usage_of(characters, jobs, decoded)
            reply.time = time_of(decoded, self._engine.clock() - started)
        return reply

    async def summarize(self, request: SummarizeRequest, tag: str) -> SummarizeReply:
        """Summarize a request's texts, each as a whole. Raises as ``translate`` does."""
        started = self._engine.clock()
        characters = check_size(request, self._settings)
        bundle, language = self.catalog.summarizer(request.language, request.model)
        plan = make_plan(request, bundle, self._engine, self._settings, tag)
        async with asyncio.timeout(request_seconds(request, self._settings)):
            sources, jobs = await self._in_thread(_cut, request, plan, language)
            decoded = await self._engine.decode(jobs)
            written = await self._in_thread(_write_summaries, request, plan.codec, sources, decoded)
        reply = SummarizeReply(
            summary=_as_asked(request, [one.text for one in written]),
            truncated=_as_asked(request, [source.truncated for source in sources]),
            model=bundle.manifest.name,
            usage=usage_of(characters, jobs, decoded),
            time=time_of(decoded, self._engine.clock() - started),
        )
        _add_extras(reply, request, written)
        return reply

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))


@dataclass(frozen=True, slots=True)
class Source:
    """A text to summarize as the model gets it; empty where there is nothing to summarize."""

    text: str
    truncated: bool


def _write_texts(
    request: DecodingFields, codec: Codec, parsed: Sequence[Parsed], decoded: Sequence[Decoded]
) -> list[Written]:
    remaining = iter(decoded)
    return [_write(request, codec, one, [next(remaining) for _ in one.sentences]) for one in parsed]


def _write(request: DecodingFields, codec: Codec, parsed: Parsed, decoded: Sequence[Decoded]) -> Written:
    if not decoded:  # nothing to translate: the text comes back as it was sent
        return Written(parsed.text, [parsed.text] * request.alternatives, TextDetail(sentences=[]))
    pairs = list(zip(decoded, parsed.sentences, strict=True))
    best, *others = (
        parsed.document.join([codec.decode(_nth(one, rank), sentence) for one, sentence in pairs])
        for rank in range(request.alternatives + 1)
    )
    details = []
    if request.wants_details:
        for piece, one, (start, end) in zip(parsed.document.sentences, decoded, best[1], strict=True):
            source = Span(start=piece.start, end=piece.start + len(piece.text))
            details.append(_detail(request, codec, source, Span(start=start, end=end), one.hypotheses[0]))
    return Written(best[0], [text for text, _ in others], TextDetail(sentences=details))


def _nth(decoded: Decoded, rank: int) -> Hypothesis:
    """The hypothesis of that rank, or the last one where the search found fewer."""
    return decoded.hypotheses[min(rank, len(decoded.hypotheses) - 1)]


def _detail(request: DecodingFields, codec: Codec, source: Span, target: Span, best: Hypothesis) -> SentenceDetail:
    scores = [round(score, 6) for score in best.token_scores] if request.scores else None
    return SentenceDetail(
        source=source, target=target, score=round(best.score, 6), tokens=codec.pieces(best), token_scores=scores
    )


def _cut(request: SummarizeRequest, plan: Plan, language: str) -> tuple[list[Source], list[Job]]:
    """Each text as far as the model takes it, and the jobs of those that hold words."""
    codec, sources = plan.codec, []
    for text in request.texts:
        normal = normalise(text)
        cut = cut_to_limit(normal, language, codec.limit, codec.measure) if is_translatable(normal) else ("", False)
        sources.append(Source(*cut))
    return sources, plan.jobs([[(source.text,)] for source in sources if source.text])


def _write_summaries(
    request: SummarizeRequest, codec: Codec, sources: Sequence[Source], decoded: Sequence[Decoded]
) -> list[Written]:
    remaining = iter(decoded)
    written = []
    for source in sources:
        if not source.text:
            written.append(Written("", [""] * request.alternatives, TextDetail(sentences=[])))
            continue
        one = next(remaining)
        best, *others = (codec.decode(_nth(one, rank), (source.text,)) for rank in range(request.alternatives + 1))
        whole = Span(start=0, end=len(source.text))
        detail = _detail(request, codec, whole, Span(start=0, end=len(best)), one.hypotheses[0])
        written.append(Written(best, others, TextDetail(sentences=[detail])))
    return written


def _as_asked(request: DecodingFields, values: list[T]) -> T | list[T]:
    return values[0] if isinstance(request.q, str) else values


def _add_extras(reply: DecodingReply, request: DecodingFields, written: Sequence[Written]) -> None:
    if request.alternatives:
        reply.alternatives = _as_asked(request, [one.alternatives for one in written])
    if request.wants_details:
        reply.details = [one.detail for one in written]
