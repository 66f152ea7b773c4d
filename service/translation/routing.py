"""Which way each text of a request goes: its language, detected where the request leaves it open, and its bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.api.schemas import TranslateRequest
from service.bundles.catalog import Catalog, Route
from service.http.errors import LanguageNotServed, PairNotServed
from service.text.detection import Guess
from service.text.languages import base_code

AUTO = "auto"
_CLOSE = 0.5  # a guess with so much of the best one's confidence may be taken in its place


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a text goes.

    Attributes:
        route: None = nowhere: it is in the language that it is to be translated into, and comes back as it is.
        guess: the language that was detected, where the request left it open.
    """

    route: Route | None
    guess: Guess | None = None


def is_auto(request: TranslateRequest) -> bool:
    """Whether languages are to be detected."""
    return request.source.lower() == AUTO


def named_route(catalog: Catalog, request: TranslateRequest, source: str) -> Route:
    """The route from a language. Raises as ``Catalog.translator`` does."""
    return catalog.translator(source, request.target, request.model, tuple(request.others or ()))


def guessed_route(catalog: Catalog, request: TranslateRequest, guesses: Sequence[Guess], place: str) -> Routed:
    """The route of the first likely guess that is served.

    Args:
        catalog: what is served.
        request: asks for it.
        guesses: of one text, best first.
        place: the text's field, for errors.

    Raises:
        LanguageNotServed, PairNotServed: none of them is served.
        InvalidFields, ModelNotFound: as ``Catalog.translator`` does.
    """
    refused: LanguageNotServed | PairNotServed | None = None
    for guess in guesses:
        if guess.confidence < _CLOSE * guesses[0].confidence:
            break
        try:
            return Routed(named_route(catalog, request, guess.language), guess)
        except (LanguageNotServed, PairNotServed) as error:
            if _is_target(catalog, request, guess.language):
                return Routed(None, guess)
            refused = refused or error
    assert refused is not None, "the best guess was tried"
    if not request.others and not catalog.source_languages(request.target, request.model):
        pairs = ", ".join(f"{one['source']}-{one['target']}" for one in refused.detail["pairs"]) or "none"
        message = f"nothing is translated into {request.target!r} here; pairs served: {pairs}"
        raise type(refused)(message, refused.detail)
    message = f"{place}: seems to be in {guesses[0].language!r}, and {refused}; if it is in another, name that language"
    found = {"language": guesses[0].language, "confidence": guesses[0].confidence}
    raise type(refused)(message, {**refused.detail, "detected": found})


def _is_target(catalog: Catalog, request: TranslateRequest, language: str) -> bool:
    """Whether a text is already in the language asked for, which must be one that is translated into."""
    same = base_code(language) == base_code(request.target)
    return same and not request.others and bool(catalog.source_languages(request.target, request.model))
