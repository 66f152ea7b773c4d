"""Plan: which model answers each text of a request, and how it is to search. Nothing is tokenised yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.search import SearchOptions
from service.bundles.catalog import Catalog, Route
from service.bundles.served import Ids, ServedModel
from service.engine import Job, Priority
from service.errors import InvalidOption, LanguageNotServed, PairNotServed
from service.text.detection import Guess
from service.text.languages import base_code
from service.translation.requests import DecodeRequest, RequestLimits, TranslateTask, priority_of

_CLOSE = 0.5  # a guess with so much of the best one's confidence may be taken in its place
_CHANGED = ("length_penalty", "coverage_penalty", "min_length", "max_length", "no_repeat_ngram_size")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How those texts of a request are decoded that go the same way.

    Attributes:
        request: theirs.
        columns: per source of the model the texts of all of the request.
        options: of every sentence but a text's first.
        first: of a text's first sentence, which carries the prefix.
        aligned: the same two, with attention where the model can give it: made once, and not for each sentence.
        deadline: on the engine's clock.
    """

    request: DecodeRequest
    route: Route
    columns: tuple[Sequence[str], ...]
    options: SearchOptions
    first: SearchOptions
    aligned: tuple[SearchOptions, SearchOptions]
    priority: Priority
    deadline: float

    @property
    def model(self) -> ServedModel:
        """Decodes them."""
        return self.route.model

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
        if reserved:
            options = replace(options, required=tuple(self.model.placeholders[name] for name in reserved))
        return Job(self.model.name, ids, options, self.priority, self.deadline, tag=self.request.tag)


def make_plan(request: DecodeRequest, route: Route, limits: RequestLimits, characters: int, deadline: float) -> Plan:
    """Check a request's options against server and model.

    Raises:
        InvalidOption, OptionError: an option is out of bounds.
    """
    model, columns = route.model, request.columns
    options = search_options(request, model, limits)
    if request.alignments:
        options = replace(options, attention=True)
        if not model.aligns:
            bound = f"must be false for {model.name}, which does not say what its words align with"
            raise InvalidOption("alignments", bound, True)
    first = options
    if request.prefix:
        written = model.bundle.target_vocabulary.encode(request.prefix)
        first = replace(options, prefix=(*options.prefix, *written))
    aligned = options, first
    if model.aligns and isinstance(request, TranslateTask) and request.markup is not None:
        aligned = replace(options, attention=True), replace(first, attention=True)
    priority = priority_of(characters, request.priority, limits.bulk_characters)
    given = tuple(columns[name] for name in route.fields)
    return Plan(request, route, given, options, first, aligned, priority, deadline)


def search_options(request: DecodeRequest, model: ServedModel, limits: RequestLimits) -> SearchOptions:
    """The model's decoding defaults with the request's changes.

    Raises:
        InvalidOption, OptionError: out of the server's, the bundle's or the search's bounds.
    """
    defaults = model.options
    beam_size = request.beam_size if request.beam_size is not None else min(defaults.beam_size, limits.max_beam_size)
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
        given["sampling"] = request.sampling
    return replace(defaults, **given)


def check_cost(jobs: Sequence[Job], limits: RequestLimits) -> None:
    """Refuse what could take far more decoding than its characters suggest: wide beams, alternatives, long targets.

    Raises:
        InvalidOption: beam size x (alternatives + 1) x target tokens at most, summed over the sentences, is too much.
    """
    cost = 0
    for job in jobs:
        options = job.options
        cost += options.beam_size * options.n_best * options.bounds(job.length - 1)[1]
    if cost > limits.max_decoding_cost:
        bound = (
            f"beam_size x (alternatives + 1) x max_length over all sentences may be at most {limits.max_decoding_cost}"
        )
        raise InvalidOption("beam_size", bound, cost, "ask for less of one of them, or send less text")


def named_route(catalog: Catalog, request: TranslateTask, source: str) -> Route:
    """The route from a language. Raises as ``Catalog.translator`` does."""
    return catalog.translator(source, request.target, request.model, tuple(request.others))


def guessed_route(
    catalog: Catalog, request: TranslateTask, guesses: Sequence[Guess], place: str
) -> tuple[Route | None, Guess]:
    """The route of the first likely guess that is served, and that guess.

    Args:
        catalog: what is served.
        request: asks for it.
        guesses: of one text, best first; all of them where the likeliest that is served is to be taken.
        place: the text's field, for errors.

    Returns:
        No route where the text is in the language already that it is to be translated into. A guess that is taken
        though it is far from the best says so.

    Raises:
        LanguageNotServed, PairNotServed: none of them is served.
        InvalidOption, ModelNotFound: as ``Catalog.translator`` does.
    """
    refused: LanguageNotServed | PairNotServed | None = None
    for guess in guesses:
        close = guess.confidence >= _CLOSE * guesses[0].confidence
        if not (close or request.likeliest):
            break
        try:
            route = named_route(catalog, request, guess.language)
            return route, guess if close else replace(guess, instead_of=guesses[0].language)
        except (LanguageNotServed, PairNotServed) as error:
            if close and _is_target(catalog, request, guess.language):
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


def _is_target(catalog: Catalog, request: TranslateTask, language: str) -> bool:
    """Whether a text is already in the language asked for, which must be one that is translated into."""
    same = base_code(language) == base_code(request.target)
    return same and not request.others and bool(catalog.source_languages(request.target, request.model))


def _at_most(name: str, value: float | None, bound: float, why: str = "") -> None:
    if value is not None and value > bound:
        raise InvalidOption(name, f"must be at most {why}{bound}", value)
