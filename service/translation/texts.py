"""The text service: requests for translations, corrections and summaries, answered with the engine.

A request goes through three stages, the first two in one text thread, the last one in another:

    plan      which model, and how it is to search                ``plans``
    units     texts in sentences, tokenised: jobs                 ``units``; ``summaries`` for texts as a whole
              ... the engine decodes the jobs; from a language between, it does so once more ...
    ranked    where that is asked for, by a model back            an extra
    written   the sentences in their places, and details          ``candidates``, ``writing``
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ParamSpec, TypeVar

from tandem.service.bundles.catalog import Catalog, Route, require_code
from tandem.service.bundles.served import Tokeniser
from tandem.service.engine import Decoded, Engine, Job
from tandem.service.engine.engine import Watch
from tandem.service.errors import InvalidOption, LanguageNotServed, ModelNotFound, PairNotServed
from tandem.service.telemetry import tracing
from tandem.service.text.blocks import MarkupDocument, MarkupError, MarkupOptions, markup_reader
from tandem.service.text.detection import Detector, Guess
from tandem.service.text.languages import bare_code, base_code
from tandem.service.text.masking import Masked
from tandem.service.translation.masker import Masker
from tandem.service.translation.plans import (
    Plan,
    check_cost,
    guessed_route,
    is_close,
    is_target,
    make_plan,
    make_stages,
    named_route,
    reranker,
    summary_route,
)
from tandem.service.translation.progress import Progress, tell_extracts, tell_rest, watch_sentences, watch_summaries
from tandem.service.translation.recall import recall
from tandem.service.translation.requests import (
    AUTO,
    NO_CONTEXT,
    Context,
    DecodeRequest,
    PosteditTask,
    RequestLimits,
    SummarizeTask,
    TranslateTask,
    check_size,
    is_short,
    request_seconds,
)
from tandem.service.translation.results import DecodeResult, Time, Usage, WrittenText
from tandem.service.translation.stages import LONGEST_KNOWN, Recalled, StagedSentence, recalled
from tandem.service.translation.summaries import (
    ExtractedText,
    SummarizedText,
    is_made_for,
    text_extractor,
    write_summaries,
)
from tandem.service.translation.turns import TurnThreads
from tandem.service.translation.units import ParsedText, Unit, parse_text
from tandem.service.translation.writing import write_texts

P = ParamSpec("P")
T = TypeVar("T")
Task = TypeVar("Task", bound=DecodeRequest)


@dataclass(frozen=True, slots=True)
class _Admission:
    """A request that was let in: its characters, and when it began and must be done, on the engine's clock."""

    context: Context
    characters: int
    began: float
    deadline: float


class TextService:
    """Answers requests with the engine. The event loop only waits: texts are read and written in threads.

    Attributes:
        catalog: of the models.
        detector: of languages.
        pivoted: sentences that went through a third language, by source, that language, and target.
        decoded_tokens: target tokens of sentences, of their first attempts and of further ones (``first``, ``again``).

    Each of its answers raises:
        ServiceError, OptionError: what the request asks for cannot be done.
        Overloaded, Draining, DeadlinePassed, DecodingFailed: see ``Engine.decode``.
        TimeoutError: the request's deadline.
    """

    def __init__(self, engine: Engine, limits: RequestLimits) -> None:
        self.catalog = Catalog(engine, limits.pivot_languages if limits.pivot else None)
        self.detector = Detector(self.catalog.source_languages, limits.max_characters)
        self.pivoted: Counter[tuple[str, str, str]] = Counter()
        self.decoded_tokens: Counter[str] = Counter()
        self._engine = engine
        self._limits = limits
        self._threads = TurnThreads(limits.text_threads)

    def close(self) -> None:
        self._threads.close()

    async def detect(self, text: str, caller: str, *, every: bool = False) -> list[Guess]:
        """The languages that a text may be in, as ``Detector.detect`` names them; ``caller``: as of requests."""
        return await self._threads.run(caller, self.detector.detect, text, None, every)

    async def translate(
        self, request: TranslateTask, context: Context = NO_CONTEXT, progress: Progress | None = None
    ) -> DecodeResult:
        """Translate texts; ``progress`` is told of every finished sentence of plain text while others are decoded."""
        return await self._rewrite(request, context, self._read_translation, progress)

    async def postedit(self, request: PosteditTask, context: Context = NO_CONTEXT) -> DecodeResult:
        """Correct machine translations; where text or translation has no words, the translation is the answer."""
        return await self._rewrite(request, context, self._read_postediting, None)

    async def summarize(
        self, request: SummarizeTask, context: Context = NO_CONTEXT, progress: Progress | None = None
    ) -> DecodeResult:
        """Summarize texts, long ones in parts; ``progress`` is told of every finished one while others are decoded.

        What no model was made for is answered with sentences of its own, unless the request wants a model.
        """
        with self._engine.dispatcher.session():
            admission = self._admit(request, context)
            async with asyncio.timeout(admission.deadline - admission.began):
                texts = await self._threads.run(context.caller, self._read_summaries, request, admission)
                pending = [text for text in texts if isinstance(text, SummarizedText)]
                jobs, rounds = list[Job](), list[Sequence[Decoded]]()
                while True:  # once more for every time that summaries are summarized
                    ahead = [(text.plan, part.job) for text in pending for part in text.parts]
                    check_cost(ahead, self._limits)
                    now = [job for _, job in ahead]
                    watch = watch_summaries(progress, pending) if progress else None
                    decoded = await tracing.decode(self._engine, now, watch, begun=bool(jobs))
                    jobs += now
                    rounds.append(decoded)
                    pending, written = await self._threads.run(
                        context.caller, write_summaries, request, texts, pending, decoded
                    )
                    if not pending:
                        break
                if progress:
                    tell_extracts(progress, texts)
        counts = Usage.of(admission.characters, jobs, [one for decoded in rounds for one in decoded])
        summarized = [text for text in texts if isinstance(text, SummarizedText)]
        names = ", ".join(dict.fromkeys(text.plan.model.name for text in summarized))
        return DecodeResult(written, names or None, counts, self._seconds(rounds, admission))

    async def _rewrite(
        self,
        request: Task,
        context: Context,
        read: Callable[[Task, _Admission], tuple[list[ParsedText], list[Guess]]],
        progress: Progress | None,
    ) -> DecodeResult:
        """Decode every sentence, those once more of which something is missing, and put all into their places."""
        with self._engine.dispatcher.session():
            admission = self._admit(request, context)
            caller = None if is_short(request, context) else context.caller
            async with asyncio.timeout(admission.deadline - admission.began):
                parsed, guesses = await self._run(caller, read, request, admission)
                units = [(text, unit) for text in parsed for unit in text.units]
                rounds: list[list[Decoded]] = []
                while True:  # a few times: the last attempt at a sentence finds nothing missing
                    work = [one for text, unit in units for one in unit.work(text.plan)]
                    watch = watch_sentences(progress, units) if progress else None
                    rounds.append(await self._decoded(work, watch, begun=bool(rounds)))
                    self._count_tokens(units, rounds[-1])
                    units, written = await self._run(caller, _write, request, parsed, units, rounds[-1])
                    if not units:
                        break
                if progress:
                    tell_rest(progress, parsed)
        self._count(parsed)
        names = ", ".join(dict.fromkeys(model.name for text in parsed for model in text.plan.route.models))
        result = DecodeResult(written, names or None, guesses=guesses)
        if not request.wants_details:
            return result
        final = [unit for text in parsed for unit in text.units]
        jobs = [job for unit in final for job in unit.attempt.first_jobs]
        last = [decoded for unit in final for decoded in unit.decoded]
        counts = Usage.of(admission.characters, jobs, last)
        return replace(result, usage=counts, time=self._seconds(rounds, admission))

    async def _run(self, caller: str | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a caller's work in a text thread; None = here and at once, where it takes less than waking a thread."""
        if caller is None:
            return work(*args, **kwargs)
        return await self._threads.run(caller, work, *args, **kwargs)

    async def _decoded(self, work: Sequence[tuple[Plan, Job]], watch: Watch | None, *, begun: bool) -> list[Decoded]:
        """The results of jobs, ranked where a plan has a channel model."""
        rank = reranker() if any(plan.channel for plan, _ in work) else None
        if rank is not None:
            return await rank(self._engine, self._threads, work, watch, begun)
        return await tracing.decode(self._engine, [job for _, job in work], watch, begun=begun)

    def _count_tokens(self, units: Sequence[tuple[ParsedText, Unit]], decoded: Iterable[Decoded]) -> None:
        """Count what was decoded for the attempts of units: of equal sentences one, and none that were known."""
        results, counted = iter(decoded), set[int]()
        for _, unit in units:
            for one in [next(results) for _ in unit.attempt.jobs]:
                if one.hypotheses and not one.cached and id(one) not in counted:
                    counted.add(id(one))
                    self.decoded_tokens["again" if unit.again else "first"] += len(one.hypotheses[0].tokens)

    def _count(self, parsed: Sequence[ParsedText]) -> None:
        """Count the sentences that went through a third language."""
        for text in parsed:
            route = text.plan.route
            if text.via is not None:
                self.pivoted[route.languages[0], text.via, text.plan.writer.target] += len(text.decoded)

    def _admit(self, request: DecodeRequest, context: Context) -> _Admission:
        """Check what can be told without looking at the texts."""
        began = self._engine.clock()
        characters = check_size(request, self._limits)
        return _Admission(context, characters, began, began + request_seconds(request, self._limits))

    def _seconds(self, rounds: Sequence[Sequence[Decoded]], admission: _Admission) -> Time:
        return Time.of(rounds, self._engine.clock() - admission.began)

    @tracing.traced("split")
    def _read_translation(self, request: TranslateTask, admission: _Admission) -> tuple[list[ParsedText], list[Guess]]:
        """The texts in units, none of those that stay as they are; and the languages that were detected."""
        masker, documents = Masker.of(request, admission.context), self._read_markup(request, admission.context)
        if request.source.lower() == AUTO:
            routes, guesses = self._detected(request, documents, likeliest=admission.context.likeliest)
        else:
            routes, guesses = [self._named_route(request)] * len(request.texts), []
        return self._parsed(request, routes, admission, masker, documents), guesses

    def _named_route(self, request: TranslateTask) -> Route | None:
        """The way from the language that the request names; none where that is the one to translate into."""
        try:
            return named_route(self.catalog, request, request.source)
        except (LanguageNotServed, PairNotServed):
            if bare_code(request.source) == bare_code(request.target) and is_target(self.catalog, request):
                return None
            raise

    @tracing.traced("split")
    def _read_postediting(self, request: PosteditTask, admission: _Admission) -> tuple[list[ParsedText], list[Guess]]:
        """Texts and translations in units."""
        route = self.catalog.posteditor(request.source, request.target, request.model)
        return self._parsed(
            request, [route] * len(request.texts), admission, Masker.of(request, admission.context), []
        ), []

    @tracing.traced("split")
    def _read_summaries(self, request: SummarizeTask, admission: _Admission) -> list[SummarizedText | ExtractedText]:
        """The texts in parts that their models read, or their own sentences that are the answer."""
        if request.language is not None:
            require_code("language", request.language)
        routes, depth = self._summary_routes(request), self._limits.summary_depth
        plans = self._plans(request, routes, admission)
        return [
            self._extracted(request, number)
            if route is None
            else SummarizedText.of(plans[route], request, number, depth)
            for number, route in enumerate(routes)
        ]

    def _extracted(self, request: SummarizeTask, number: int) -> ExtractedText:
        extract = text_extractor()
        assert extract is not None, "or else a text has a way"
        return extract(request, number, request.language or self.detector.detect(request.texts[number])[0].language)

    def _plans(
        self, request: DecodeRequest, routes: Iterable[Route | None], admission: _Admission
    ) -> dict[Route, Plan]:
        """How each way is decoded."""
        return {
            route: make_plan(
                request,
                admission.context,
                route,
                self.catalog,
                self._limits,
                admission.characters,
                admission.deadline,
            )
            for route in dict.fromkeys(filter(None, routes))
        }

    def _summary_routes(self, request: SummarizeTask) -> list[Route | None]:
        """The way of each text; none where its own sentences are its summary."""
        extracts, numbers = text_extractor() is not None, range(len(request.texts))
        if request.method == "extract":
            if not extracts:
                raise InvalidOption("method", "must be 'model': no extra here makes extracts", "extract")
            return [None] * len(request.texts)
        if request.method == "model" or request.model is not None or not extracts:
            return [self._summary_route(request, number) for number in numbers]
        routes: list[Route | None] = []
        for number, text in enumerate(request.texts):
            try:
                route = self._summary_route(request, number)
            except (InvalidOption, LanguageNotServed, ModelNotFound):  # in a language that no model summarizes
                routes.append(None)
            else:
                routes.append(route if is_made_for(route.model, text) else None)
        return routes

    def _summary_route(self, request: SummarizeTask, number: int) -> Route:
        """The way of a text: by the language that the request names, or that is detected."""
        route = self.catalog.summarizer(request.language, request.model)
        if request.language is not None:
            return route
        guesses = self.detector.detect(request.texts[number], self.catalog.summarized_languages(request.model))
        return summary_route(self.catalog, request, guesses, number)

    def _read_markup(self, request: TranslateTask, context: Context) -> list[MarkupDocument]:
        """The texts, divided; none where they are plain.

        Raises:
            InvalidOption: markup that is not read, or comes in several languages, or where no extra reads any.
        """
        markup = MarkupOptions() if context.markup is None and request.format == "html" else context.markup
        if markup is None:
            return []
        if request.others:
            bound = "must be 'text' where the same text is given in other languages"
            raise InvalidOption("format", bound, "html")
        reader = markup_reader()
        if reader is None:
            raise InvalidOption(
                "format", "must be 'text': no markup is read here", "html", "add an extra that reads it"
            )
        depth, elements = self._limits.max_markup_depth, self._limits.max_markup_elements
        options = replace(markup, max_depth=depth, max_elements=elements)
        documents = []
        for number, text in enumerate(request.texts):
            try:
                documents.append(reader.parse(text, options))
            except MarkupError as error:
                value = text if error.value is None else error.value
                raise InvalidOption(request.place(number), str(error), value) from error
        return documents

    def _detected(
        self, request: TranslateTask, documents: Sequence[MarkupDocument], *, likeliest: bool
    ) -> tuple[list[Route | None], list[Guess]]:
        """The way of each text, and the language that it is in; no way where it is the language asked for."""
        catalog, named = self.catalog, (request.target, request.model)
        preferred = None if request.others else catalog.source_languages(*named, pivot=request.pivot)
        texts = [document.text for document in documents] or request.texts
        stages = cache(lambda code: make_stages(request, named_route(catalog, request, code), self._limits))

        def known(code: str, text: str) -> Recalled | None:
            return recalled(stages(code), StagedSentence(Masked(text), Masked(text)))

        guesses = [self._guesses(text, request, preferred, known) for text in texts]
        found = [
            guessed_route(catalog, request, ranked, request.place(number), likeliest=likeliest)
            for number, ranked in enumerate(guesses)
        ]
        return [route for route, _ in found], [guess for _, guess in found]

    def _guesses(
        self,
        text: str,
        request: TranslateTask,
        preferred: Collection[str] | None,
        recall: Callable[[str, str], Recalled | None],
    ) -> list[Guess]:
        """The languages that a text may be in, best first. A phrase alone tells little: there stages may know better.

        The language asked for counts as those that are read: it is sent too, and comes back as it is.

        Args:
            text: the text.
            request: its request.
            preferred: languages that are read; None = any.
            recall: what is known of a text in a language.
        """
        expected = None if preferred is None else (*preferred, request.target)
        guesses, alone = self.detector.detect(text, expected, True), text.strip()
        if preferred is None or len(alone) > LONGEST_KNOWN:
            return guesses
        if base_code(guesses[0].language) == base_code(request.target):
            close = {guess.language for guess in guesses if is_close(guess, guesses[0])}
            preferred = [code for code in preferred if code in close]
        known = {code: found for code in preferred if (found := recall(code, alone))}
        telling = {code for code, found in known.items() if not found.borrowed} or known.keys()
        if not telling or guesses[0].language in telling:
            return guesses
        return [guess for guess in guesses if guess.language in telling]

    def _parsed(
        self,
        request: DecodeRequest,
        routes: Sequence[Route | None],
        admission: _Admission,
        masker: Masker,
        documents: Sequence[MarkupDocument],
    ) -> list[ParsedText]:
        """The texts that are decoded, in units; those that go the same way share a plan, and stand together."""
        parsed = []
        for route, plan in self._plans(request, routes, admission).items():
            tokens = Tokeniser(plan.model)
            for number in (number for number, own in enumerate(routes) if own == route):
                markup = documents[number] if documents else None
                parsed.append(parse_text(plan, number, masker, tokens, markup))
        if isinstance(request, TranslateTask):
            recall(request, admission.context.recall, parsed)
        jobs = ((text.plan, job) for text in parsed for unit in text.units for job in unit.attempt.jobs)
        check_cost(jobs, self._limits)
        return parsed


@tracing.traced("detokenise")
def _write(
    request: DecodeRequest,
    parsed: Sequence[ParsedText],
    units: Sequence[tuple[ParsedText, Unit]],
    decoded: Sequence[Decoded],
) -> tuple[list[tuple[ParsedText, Unit]], list[WrittenText]]:
    """Give units the results of their jobs. Returns those that go on; or else the texts."""
    results = iter(decoded)
    for text, unit in units:
        unit.read(text.plan, results)
    again = [(text, unit) for text, unit in units if unit.goes_on(text.plan)]
    return again, [] if again else write_texts(request, parsed)
