"""Plan: which model answers each text of a request, and how it is to search. Nothing is tokenised yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

from tandem.models.search import SearchOptions
from tandem.service.bundles.catalog import Catalog, Route
from tandem.service.bundles.served import Ids, ServedModel
from tandem.service.engine import Decoded, Engine, Job, Priority
from tandem.service.engine.engine import Watch
from tandem.service.errors import InvalidOption, LanguageNotServed, PairNotServed
from tandem.service.ports import extras, load
from tandem.service.text.detection import Guess
from tandem.service.text.languages import base_code
from tandem.service.translation.fidelity import UNCHECKED, Fidelity, fidelity
from tandem.service.translation.requests import (
    Context,
    DecodeRequest,
    RequestLimits,
    SummarizeTask,
    TranslateTask,
    priority_of,
)
from tandem.service.translation.stages import Stages, Way, program_strings, stage_makers
from tandem.service.translation.turns import TurnThreads

_CLOSE = 0.5  # a guess with so much of the best one's confidence may be taken in its place
_SURE = 80.0  # per cent; of guesses at 80-90% some 97% are right: what is less sure refuses no text
_CODES = tuple(f"X{number}" for number in range(1, 10))  # X1, not X10: no code is part of another
_CHANGED = ("length_penalty", "coverage_penalty", "min_length", "max_length", "no_repeat_ngram_size")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How those texts of a request are decoded that go the same way.

    Attributes:
        request, context: theirs.
        columns: per source of the model the texts of all of the request.
        options: of every sentence but a text's first.
        first: of a text's first sentence, which carries the prefix.
        aligned: the same two, with attention where the model can give it: made once, and not for each sentence.
        deadline: on the engine's clock.
        placeholders: strings that can stand for parts of a text, all the way.
        learnt: whether the models learnt to copy those: the search writes each as often as it was read. Else they are
            codes such as people write, which models copy mostly.
        wanted: hypotheses of a sentence that are needed; more are searched where they are ranked once more.
        channel: the model of the other direction, which ranks the hypotheses too; None = none does.
        onward: how what is written is decoded in its turn, where it is in a language between; None = it is the answer.
        stages: what is done to sentences and translations, around all models that they go through.
        fidelity: holds translations against their sources.
    """

    request: DecodeRequest
    context: Context
    route: Route
    columns: tuple[Sequence[str], ...]
    options: SearchOptions
    first: SearchOptions
    aligned: tuple[SearchOptions, SearchOptions]
    priority: Priority
    deadline: float
    placeholders: tuple[str, ...]
    learnt: bool
    wanted: int
    channel: ServedModel | None = None
    onward: Plan | None = None
    stages: Stages = ()
    fidelity: Fidelity = UNCHECKED

    @property
    def model(self) -> ServedModel:
        """Decodes them."""
        return self.route.model

    @property
    def rare(self) -> Set[str]:
        """Characters of the text that its model has hardly read."""
        return self.model.alphabet.rare

    @property
    def writer(self) -> ServedModel:
        """Writes the answer."""
        return self.route.models[-1]

    def ended_like(self, written: str, source: str) -> str:
        """A part of a translation with the final punctuation of its source."""
        return self.fidelity.ended(written, source, base_code(self.writer.target))

    def job(self, ids: tuple[Ids, ...], *, first: bool, reserved: Sequence[str] = (), attention: bool = False) -> Job:
        """A sentence to decode.

        Args:
            ids: per source its tokens, with EOS.
            first: whether it is a text's first one.
            reserved: placeholders in it, as often as each is to be written.
            attention: whether the hypotheses are to carry theirs, where the model can give it.
        """
        others, leading = self.aligned if attention else (self.options, self.first)
        options = leading if first else others
        if reserved and self.learnt:
            options = replace(options, required=tuple(self.model.placeholders[name] for name in reserved))
        context = self.context
        return Job(self.model.name, ids, options, self.priority, self.deadline, tag=context.tag, caller=context.caller)


def make_plan(
    request: DecodeRequest,
    context: Context,
    route: Route,
    catalog: Catalog,
    limits: RequestLimits,
    characters: int,
    deadline: float,
) -> Plan:
    """Check a request's options against server and models.

    They are for what writes the answer; on the way to another language only the beam size counts, and there is one
    hypothesis.

    Raises:
        InvalidOption, OptionError: an option is out of bounds.
    """
    mute = next((model.name for model in route.models if not model.aligns), None)
    if request.alignments and mute is not None:
        bound = f"must be false for {mute}, which does not say what its words align with"
        raise InvalidOption("alignments", bound, True)
    judged = mute is None and request.wants_details and _attentive(route)
    marked = mute is None and isinstance(request, TranslateTask)
    priority = priority_of(characters, request.priority, limits.bulk_characters)
    columns = request.columns
    given = tuple(columns[name] for name in route.fields)
    learnt = _placeholders(route)
    known = learnt or _codes(route)

    def hop(route: Route, options: SearchOptions, prefix: str | None, onward: Plan | None) -> Plan:
        wanted, channel = options.n_best, find_channel(request, context, route, catalog, limits, priority)
        options = replace(options, attention=options.attention or request.alignments or judged)
        if channel is not None:
            options = replace(options, n_best=options.beam_size)
        first = options
        if prefix:
            written = route.model.bundle.target_vocabulary.encode(prefix)
            first = replace(options, prefix=(*options.prefix, *written))
        aligned = (replace(options, attention=True), replace(first, attention=True)) if marked else (options, first)
        return Plan(
            request, context, route, given, options, first, aligned, priority, deadline, known, bool(learnt), wanted,
            channel, onward,
        )  # fmt: skip

    last = hop(route.onward or route, search_options(request, route.models[-1], limits), request.prefix, None)
    stages, checks = make_stages(request, route, limits), fidelity() if limits.fidelity else UNCHECKED
    if route.onward is None:
        return replace(last, stages=stages, fidelity=checks)
    between = search_options(DecodeRequest(q=(), beam_size=request.beam_size), route.model, limits)
    return replace(hop(route, between, None, last), stages=stages, fidelity=checks)


def make_stages(request: DecodeRequest, route: Route, limits: RequestLimits) -> Stages:
    """The text stages of a request's texts that go one way: those for all, and those that all bundles on it ask for."""
    own = program_strings().stages if isinstance(request, TranslateTask) else ()
    asked = [model.bundle.manifest.stages for model in route.models]
    names = [name for name in asked[0] if all(name in one for one in asked)]
    if limits.stages == "off" or not names:
        return own
    languages = route.languages[route.lead], *(model.target for model in route.models)
    way = Way(
        tuple(model.bundle for model in route.models),
        tuple(map(base_code, languages)),
        len(_placeholders(route)),
        request.refused if isinstance(request, TranslateTask) else frozenset(),
    )
    makers = stage_makers()
    return (*own, *(makers[name](way) for name in names if name in makers))


def _placeholders(route: Route) -> tuple[str, ...]:
    """Strings that all models on the way learnt to copy."""
    return tuple(name for name in route.model.placeholders if name in route.models[-1].placeholders)


def _codes(route: Route) -> tuple[str, ...]:
    """What stands for parts of a text where models know no placeholders: they can read it, and it looks like a name."""
    if len(route.fields) > 1 or any(model.bundle.manifest.target_form != "text" for model in route.models):
        return ()
    return tuple(code for code in _CODES if all(one in model.alphabet for model in route.models for one in code))


def search_options(request: DecodeRequest, model: ServedModel, limits: RequestLimits) -> SearchOptions:
    """The model's decoding defaults with the request's changes.

    Raises:
        InvalidOption, OptionError: out of the server's, the bundle's or the search's bounds.
    """
    defaults = model.options
    beam_size = request.beam_size
    if beam_size is None:  # as wide as the alternatives need it
        beam_size = min(max(defaults.beam_size, request.alternatives + 1), limits.max_beam_size)
    _at_most("beam_size", beam_size, limits.max_beam_size)
    _at_most("alternatives", request.alternatives, beam_size - 1, "the beam size less one, ")
    longest = model.bundle.manifest.limits.max_target_tokens
    for name in ("min_length", "max_length"):
        _at_most(name, getattr(request, name), longest)
    given = {name: value for name in _CHANGED if (value := getattr(request, name)) is not None}
    if "min_length" in given and "max_length" not in given:
        given["max_length"] = max(defaults.max_length, given["min_length"])
    if "max_length" in given and "min_length" not in given:
        given["min_length"] = min(defaults.min_length, given["max_length"])
    if model.bundle.manifest.target_form == "edits" and given.get("no_repeat_ngram_size"):
        bound = f"must be 0 for {model.name}, which writes edits, and most of those are equal"
        raise InvalidOption("no_repeat_ngram_size", bound, given["no_repeat_ngram_size"])
    given |= {"beam_size": beam_size, "n_best": request.alternatives + 1}
    if request.sampling is not None:
        given["sampling"] = request.sampling.options()
    return replace(defaults, **given)


DecodeRanked: TypeAlias = Callable[
    [Engine, TurnThreads, Sequence[tuple[Plan, Job]], Watch | None, bool], Awaitable[list[Decoded]]
]
"""Decodes sentences, each with its plan, and ranks the hypotheses of those that have a channel model: given the engine,
the threads where texts are tokenised, the sentences, what is told of each as soon as it is ranked, and whether others
of the request were decoded before. Raises as ``Engine.decode`` does."""


@cache
def reranker() -> DecodeRanked | None:
    """The one that an extra brings."""
    ranker: DecodeRanked | None = next((load(extra.reranker) for extra in extras() if extra.reranker), None)
    return ranker


def find_channel(
    request: DecodeRequest, context: Context, route: Route, catalog: Catalog, limits: RequestLimits, priority: Priority
) -> ServedModel | None:
    """The channel model of a route's first model, if hypotheses are to be ranked by it.

    The request says so, or leaves it open: then they are where its context or the server wants it and it can be done.

    Raises:
        InvalidOption: the request insists, and there is none, or it asks for draws, among which nobody chooses.
    """
    if not isinstance(request, TranslateTask) or request.rerank is False:
        return None
    own = context.rerank or limits.rerank == "always" or (limits.rerank == "bulk" and priority is Priority.BULK)
    if not request.rerank and (not own or request.sampling is not None):
        return None
    if request.sampling is not None:
        raise InvalidOption("rerank", "must be false where sampling is asked for", True)
    channel = None if reranker() is None else catalog.channel(route)
    if channel is None and request.rerank:
        languages = ", ".join(route.languages)
        bound = f"must be false for {route.model.name}: nothing served translates {route.model.target} into {languages}"
        raise InvalidOption("rerank", bound, True, f"load a model of that direction beside {route.model.name}")
    return channel


def _attentive(route: Route) -> bool:
    """Whether the answer's confidence depends on attention: all models were calibrated, and some with it."""
    known = [model.bundle.manifest.confidence for model in route.models]
    return None not in known and any(one is not None and one.attends for one in known)


def check_cost(work: Iterable[tuple[Plan, Job]], limits: RequestLimits) -> None:
    """Refuse what could take far more decoding than its characters suggest: wide beams, alternatives, long targets.

    What a language between is translated from counts as long as the text.

    Raises:
        InvalidOption: beam size x (alternatives + 1) x target tokens at most, summed over the sentences, is too much;
            twice that where hypotheses are reranked.
    """
    cost = 0
    for plan, job in work:
        for hop, options in ((plan, job.options), *([(plan.onward, plan.onward.options)] if plan.onward else [])):
            longest = options.bounds(job.length - 1)[1]
            cost += options.beam_size * hop.wanted * longest * (1 if hop.channel is None else 2)
    if cost > limits.max_decoding_cost:
        bound = (
            f"beam_size x (alternatives + 1) x max_length over all sentences may be at most {limits.max_decoding_cost}"
        )
        raise InvalidOption("beam_size", bound, cost, "ask for less of one of them, or send less text")


def named_route(catalog: Catalog, request: TranslateTask, source: str) -> Route:
    """The route from a language. Raises as ``Catalog.translator`` does."""
    return catalog.translator(source, request.target, request.model, tuple(request.others or ()), pivot=request.pivot)


def guessed_route(
    catalog: Catalog, request: TranslateTask, guesses: Sequence[Guess], place: str, *, likeliest: bool
) -> tuple[Route | None, Guess]:
    """The route of the first guess that is served, and that guess: a likely one, where the best is sure.

    Args:
        catalog: what is served.
        request: asks for it.
        guesses: of one text, all of them, best first.
        place: the text's field, for errors.
        likeliest: as of ``Context``.

    Returns:
        No route where the text is in the language already that it is to be translated into. A guess that is taken
        though it is far from the best says so.

    Raises:
        LanguageNotServed, PairNotServed: none of them is served, or none that is likely where the best is sure and
            the likeliest is not wanted.
        InvalidOption, ModelNotFound: as ``Catalog.translator`` does.
    """
    refused: LanguageNotServed | PairNotServed | None = None
    sure = guesses[0].confidence >= _SURE
    for guess in guesses:
        close = is_close(guess, guesses[0])
        if sure and not (close or likeliest):
            break
        try:
            route = named_route(catalog, request, guess.language)
            return route, guess if close else replace(guess, instead_of=guesses[0].language)
        except (LanguageNotServed, PairNotServed) as error:
            same = base_code(guess.language) == base_code(request.target)
            if (close or not sure) and same and is_target(catalog, request):
                return None, guess
            refused = refused or error
    assert refused is not None, "the best guess was tried"
    facts: Mapping[str, object] = refused.detail
    if not request.others and not catalog.source_languages(request.target, request.model):
        pairs = ", ".join(f"{pair['source']}-{pair['target']}" for pair in refused.detail["pairs"]) or "none"
        message = f"nothing is translated into {request.target!r} here; pairs served: {pairs}"
        raise type(refused)(message, facts)
    message = f"{place}: seems to be in {guesses[0].language!r}, and {refused}; if it is in another, name that language"
    detected = {"language": guesses[0].language, "confidence": guesses[0].confidence}
    raise type(refused)(message, {**facts, "detected": detected})


def is_close(guess: Guess, best: Guess) -> bool:
    """Whether a guess may be taken in the place of the best one."""
    return guess.confidence >= _CLOSE * best.confidence


def summary_route(catalog: Catalog, request: SummarizeTask, guesses: Sequence[Guess], number: int) -> Route:
    """The route of the first likely guess that is summarized; of none, where no guess is sure, the first one served.

    Args:
        catalog, request, guesses: as for ``guessed_route``.
        number: the text's.

    Raises:
        InvalidOption: the text is in another language.
        ModelNotFound: as ``Catalog.summarizer`` does.
    """
    best = guesses[0]
    for guess in guesses:
        if is_close(guess, best):
            with suppress(LanguageNotServed):
                return catalog.summarizer(guess.language, request.model)
    if best.confidence < _SURE:
        return catalog.summarizer(None, request.model)
    known = ", ".join(catalog.summarized_languages(request.model))
    bound = f"must be in a language that is summarized here ({known}), and seems to be in {best.language!r}"
    value, remedy = request.texts[number], "if it is in one of them, name that as `language`"
    raise InvalidOption(request.place(number), bound, value, remedy)


def is_target(catalog: Catalog, request: TranslateTask) -> bool:
    """Whether the language asked for is one that is translated into, so that a text in it may come back as it is."""
    return not request.others and bool(catalog.source_languages(request.target, request.model))


def _at_most(name: str, value: float | None, bound: float, why: str = "") -> None:
    if value is not None and value > bound:
        raise InvalidOption(name, f"must be at most {why}{bound}", value)
