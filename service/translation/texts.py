"""What the text routes do: split, decode, put together. The routes only translate to and from HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from service.api.schemas import (
    DecodingFields,
    DecodingReply,
    DetectedLanguage,
    PosteditReply,
    PosteditRequest,
    SummarizeReply,
    SummarizeRequest,
    TranslateReply,
    TranslateRequest,
)
from service.bundles.catalog import Catalog
from service.engine import Decoded, Engine
from service.engine.engine import Watch
from service.settings import Settings
from service.telemetry import tracing
from service.text import Splitting
from service.text.detection import Detector, Guess
from service.text.html import HtmlDocument
from service.text.markup import MarkupOptions
from service.translation.decoding import (
    Plan,
    Polish,
    check_cost,
    check_size,
    make_plan,
    request_seconds,
    time_of,
    usage_of,
)
from service.translation.details import Details
from service.translation.marked import Item, MarkedUp, read_markup
from service.translation.progress import Progress, tell_rest, watch_sentences, watch_summaries
from service.translation.routing import Routed, guessed_route, is_auto, named_route
from service.translation.sessions import in_session
from service.translation.sides import Guard, Sides, parse
from service.translation.summaries import cut_texts, write_summaries
from service.translation.writing import Draft, Written, read_results, replace_results, unchanged

P = ParamSpec("P")
T = TypeVar("T")
Rewritten = TypeVar("Rewritten", TranslateReply, PosteditReply)


@dataclass(frozen=True, slots=True)
class Group:
    """Texts of a request that go the same way.

    Attributes:
        plan: how they are decoded.
        sides: all texts of the request, as the bundle of these reads them.
        details: writes theirs.
        numbers: which of the request's texts they are.
    """

    plan: Plan
    sides: Sides
    details: Details
    numbers: list[int]

    def polished(self, polish: Polish | None) -> Group:
        """The same with what is made of its sentences in the end."""
        return replace(self, plan=replace(self.plan, polish=polish))


class TextService:
    """Answers requests with the engine. The event loop only waits: texts are split and tokenised in threads."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.catalog = Catalog(engine)
        self.detector = Detector(self.catalog.source_languages, settings.max_characters)
        self._engine = engine
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.text_threads, thread_name_prefix="tandem-text")

    def close(self) -> None:
        """End the text threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @in_session
    async def translate(
        self,
        request: TranslateRequest,
        tag: str,
        progress: Progress | None = None,
        *,
        splitting: Splitting = "lines",
        markup: MarkupOptions | None = None,
        polish: Polish | None = None,
    ) -> TranslateReply:
        """Translate a request's texts.

        Args:
            request: what is asked for.
            tag: names the request in logs.
            progress: told of every finished sentence of plain text while the others are being decoded.
            splitting: where texts are split.
            markup: how markup is read, where the request's format is ``html``; None = as HTML.
            polish: see ``Plan``.

        Raises:
            HttpError, OptionError: what the request asks for cannot be done.
            Overloaded, Draining, DeadlinePassed, DecodingFailed: see ``Engine.decode``.
            TimeoutError: the request's deadline.
        """
        started = self._engine.clock()
        check_size(request, self._settings)
        async with asyncio.timeout(request_seconds(request, self._settings)):
            depth, elements = self._settings.max_markup_depth, self._settings.max_markup_elements
            options = replace(markup or MarkupOptions(), max_depth=depth, max_elements=elements)
            guard, documents = await self._in_thread(_read_request, request, options)
            routed = await self._routed(request, documents)
            groups = [one.polished(polish) for one in self._groups(request, routed, splitting, tag)]
            items = await self._in_thread(_items, groups, guard, documents)
            reply, written = await self._rewrite(TranslateReply, request, groups, items, started, progress)
        guesses = [one.guess for one in routed if one.guess is not None]
        if guesses:
            found = [DetectedLanguage(language=one.language, confidence=one.confidence) for one in guesses]
            reply.detectedLanguage = _as_asked(request, found)
        if request.protect:
            reply.protected = _as_asked(request, [one.protected for one in written])
        if request.glossary:
            reply.glossary = _as_asked(request, [one.glossary for one in written])
        return reply

    @in_session
    async def postedit(self, request: PosteditRequest, tag: str) -> PosteditReply:
        """Correct machine translations; where text or translation has no words, the translation is the reply.

        Raises as ``translate`` does.
        """
        started = self._engine.clock()
        check_size(request, self._settings)
        bundle = self.catalog.posteditor(request.source, request.target, request.model)
        languages = (bundle.manifest.source_languages[0], bundle.manifest.target_language)
        columns = (request.texts, request.further_texts["translation"])
        sides = Sides(("q", "translation"), columns, languages, lead=1, complete=False)
        plan = make_plan(request, bundle, self._engine, self._settings, tag)
        numbers = list(range(len(request.texts)))
        group = Group(plan, sides, Details(request, plan.codec, sides.fields, sides.lead), numbers)
        async with asyncio.timeout(request_seconds(request, self._settings)):
            items = await self._in_thread(_items, [group], Guard.of(request), ())
            return (await self._rewrite(PosteditReply, request, [group], items, started))[0]

    @in_session
    async def summarize(self, request: SummarizeRequest, tag: str, progress: Progress | None = None) -> SummarizeReply:
        """Summarize a request's texts, each as a whole. Raises as ``translate`` does."""
        started = self._engine.clock()
        characters = check_size(request, self._settings)
        bundle = self.catalog.summarizer(request.language, request.model)
        plan = make_plan(request, bundle, self._engine, self._settings, tag)
        async with asyncio.timeout(request_seconds(request, self._settings)):
            sources, jobs = await self._in_thread(cut_texts, request, plan)
            read = [(number, source.text) for number, source in enumerate(sources) if source.text]
            check_cost(jobs, self._settings)
            decoded = await tracing.decode(self._engine, jobs, watch_summaries(progress, plan.codec, read))
            written = await self._in_thread(write_summaries, request, Details(request, plan.codec), sources, decoded)
        reply = SummarizeReply(
            summary=_as_asked(request, [one.text for one in written]),
            truncated=_as_asked(request, [source.truncated for source in sources]),
            model=bundle.manifest.name,
            usage=usage_of(characters, jobs, decoded),
            time=time_of(decoded, self._engine.clock() - started),
        )
        _add_extras(reply, request, written)
        return reply

    async def _routed(self, request: TranslateRequest, documents: Sequence[HtmlDocument]) -> list[Routed]:
        """The way of each text, detected one by one where the request leaves the language open."""
        if not is_auto(request):
            return [Routed(named_route(self.catalog, request, request.source))] * len(request.texts)
        preferred = None if request.others else self.catalog.source_languages(request.target, request.model)
        texts = [document.text for document in documents] or request.texts
        guesses = await self._in_thread(self._guesses, texts, preferred)
        places = [f"q.{number}" if len(request.texts) > 1 else "q" for number in range(len(request.texts))]
        return [guessed_route(self.catalog, request, *one) for one in zip(guesses, places, strict=True)]

    def _guesses(self, texts: Sequence[str], preferred: Sequence[str] | None) -> list[list[Guess]]:
        return [self.detector.detect(text, preferred) for text in texts]

    def _groups(
        self, request: TranslateRequest, routed: Sequence[Routed], splitting: Splitting, tag: str
    ) -> list[Group]:
        """The texts by their way; none of those that stay as they are."""
        texts = {"q": request.texts, **request.further_texts}
        groups: dict[tuple[str, tuple[str, ...]], Group] = {}
        for number, route in enumerate(one.route for one in routed):
            if route is None:
                continue
            key = route.bundle.manifest.name, route.languages
            if key not in groups:
                columns = tuple(texts[name] for name in route.fields)
                plan = make_plan(request, route.bundle, self._engine, self._settings, tag)
                details = Details(request, plan.codec, route.fields, route.lead)
                sides = Sides(route.fields, columns, route.languages, route.lead, splitting=splitting)
                groups[key] = Group(plan, sides, details, [])
            groups[key].numbers.append(number)
        return list(groups.values())

    async def _rewrite(
        self,
        reply_type: type[Rewritten],
        request: DecodingFields,
        groups: Sequence[Group],
        items: Sequence[tuple[int, Item]],
        started: float,
        progress: Progress | None = None,
    ) -> tuple[Rewritten, list[Written]]:
        """Decode every sentence and put the results in its place."""
        drafts = [(number, draft) for number, item in items for draft in item.drafts]
        decoded = await self._decode([draft for _, draft in drafts], watch_sentences(progress, drafts))
        tell_rest(progress, drafts)
        written = await self._in_thread(_write, request, groups, items)
        reply = reply_type(translatedText=_as_asked(request, [one.text for one in written]))
        _add_extras(reply, request, written)
        if request.wants_details:
            names = dict.fromkeys(group.plan.codec.bundle.manifest.name for group in groups)
            reply.model = ", ".join(names) or None
            jobs = [job for _, draft in drafts for job in draft.jobs]
            final = [one for _, draft in drafts for results in draft.decoded for one in results]
            reply.usage = usage_of(check_size(request, self._settings), jobs, final)
            reply.time = time_of(decoded, self._engine.clock() - started)
        return reply, written

    async def _decode(self, drafts: Sequence[Draft], watch: Watch | None) -> list[Decoded]:
        """Every sentence, and those once more of which something is missing; returns all results."""
        jobs = [job for draft in drafts for job in draft.jobs]
        check_cost(jobs, self._settings)
        decoded = await tracing.decode(self._engine, jobs, watch)
        again = await self._in_thread(read_results, drafts, decoded)
        while again:  # a few times: the last attempt at a sentence finds nothing missing
            more = await tracing.decode(self._engine, [job for _, _, attempt in again for job in attempt.jobs])
            decoded += more
            again = await self._in_thread(replace_results, again, more)
        return decoded

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        context = copy_context()  # log lines of the thread carry the request's id, too
        return await loop.run_in_executor(self._threads, lambda: context.run(work, *args, **kwargs))


@tracing.traced("split")
def _read_request(request: TranslateRequest, markup: MarkupOptions | None) -> tuple[Guard, list[HtmlDocument]]:
    """What a request hides, and of markup its texts, divided."""
    return Guard.of(request), read_markup(request, markup) if request.format == "html" else []


@tracing.traced("split")
def _items(groups: Sequence[Group], guard: Guard, documents: Sequence[HtmlDocument]) -> list[tuple[int, Item]]:
    """The texts in sentences, each with its number in the request."""
    found: list[tuple[int, Item]] = []
    for group in groups:
        for number in group.numbers:
            if documents:
                found.append((number, MarkedUp.parse(documents[number], group.plan, group.sides, guard)))
            else:
                found.append((number, Draft(group.plan, parse(group.sides, number, group.plan.codec, guard))))
    return found


@tracing.traced("detokenise")
def _write(request: DecodingFields, groups: Sequence[Group], items: Sequence[tuple[int, Item]]) -> list[Written]:
    """The request's texts in its order; those that go nowhere stay as they are."""
    written = [unchanged(text, request.alternatives) for text in request.texts]
    details = {number: group.details for group in groups for number in group.numbers}
    for number, item in items:
        written[number] = item.write(details[number], request.alternatives)
    return written


def _as_asked(request: DecodingFields, values: list[T]) -> T | list[T]:
    return values[0] if isinstance(request.q, str) else values


def _add_extras(reply: DecodingReply, request: DecodingFields, written: Sequence[Written]) -> None:
    if request.alternatives:
        reply.alternatives = _as_asked(request, [one.alternatives for one in written])
    if request.wants_details:
        reply.details = [one.detail for one in written]
