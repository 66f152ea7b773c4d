"""Text stages: what may be done to a sentence before a model reads it, and to its translation afterwards.

    prepare   the sentence that is read: other words, or more parts hidden        before it is tokenised
    known     its translations, where nothing need be decoded                     instead of decoding
    finish    the translation that is written                                     last

Units know these three and nothing of what a stage looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from tandem.models.bundle import Bundle
from tandem.service.ports import extras, load
from tandem.service.text.masking import Masked
from tandem.service.text.spans import Span

LONGEST_KNOWN = 200
"""Characters of a sentence that a stage may know; it is not asked about longer ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How a request's texts go through models, as far as stages may know it.

    Attributes:
        bundles: the models, in order.
        languages: the text's, those between, and the translation's, as ISO 639 has them.
        placeholders: how many parts of a sentence can be hidden all the way; 0 = none.
        refused: what the request refuses of what stages do, by the names of its fields for that.
    """

    bundles: tuple[Bundle, ...]
    languages: tuple[str, ...]
    placeholders: int
    refused: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The text's language."""
        return self.languages[0]

    @property
    def target(self) -> str:
        """The translation's language."""
        return self.languages[-1]

    def free(self, sentence: Masked) -> int:
        """How many more parts of a sentence can be hidden; below 0 where too many are."""
        return self.placeholders - len(sentence.hidden)


@dataclass(frozen=True, slots=True)
class StagedSentence:
    """A sentence on its way.

    Attributes:
        sent: as it was sent, with what the request hides in it.
        read: as models read it, with all that is hidden in it.
    """

    sent: Masked
    read: Masked


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is known of a sentence without decoding it.

    Attributes:
        translations: best first, at least one.
        borrowed: whether its language has it from another one, as French has "Save": it does not tell the language.
    """

    translations: tuple[str, ...]
    borrowed: bool = False


class Stage(Protocol):
    """Made for one way, and used from one thread at a time."""

    def prepare(self, sentence: Masked) -> Masked:
        """A normalised sentence as it is to be read."""
        ...

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """Translations of a sentence of at most ``LONGEST_KNOWN`` characters that stand without decoding, if any."""
        ...

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """A translation of a sentence as it is to be written."""
        ...


StageMaker = Callable[[Way], Stage]
"""Makes a stage for a way."""
Stages = Sequence[Stage]
"""In the order in which they prepare; they finish the other way round."""


@dataclass(frozen=True, slots=True)
class ProgramStrings:
    """What is done to strings of programs, whatever a bundle asks for; an extra brings it.

    Attributes:
        stages: of every translation, in order.
        code: the lines of a text that are code, in order: no model reads them.
        shown: given a sentence as it was sent, and what counts the tokens of a text, the sentence with that shown which
            is no name, though it is hidden as one.
        plain: a label as its reader sees it.
    """

    stages: Stages
    code: Callable[[str], Iterable[Span]]
    shown: Callable[[Masked, Callable[[str], int]], Masked]
    plain: Callable[[str], str]


NO_STRINGS = ProgramStrings((), lambda text: (), lambda sentence, measure: sentence, lambda label: label)


@cache
def program_strings() -> ProgramStrings:
    """What an extra brings for them; without it they are text like any other."""
    found: ProgramStrings = next((load(extra.strings) for extra in extras() if extra.strings), NO_STRINGS)
    return found


@cache
def stage_makers() -> Mapping[str, StageMaker]:
    """What makes each stage that an extra brings, by the names that bundles ask for them with."""
    return {name: load(place) for extra in extras() for name, place in extra.stages.items()}


def prepared(stages: Stages, sentence: Masked) -> Masked:
    """A sentence as it is read after all stages."""
    for stage in stages:
        sentence = stage.prepare(sentence)
    return sentence


def recalled(stages: Stages, sentence: StagedSentence) -> Recalled | None:
    """What the first stage that knows a sentence says of it."""
    if len(sentence.sent.text) > LONGEST_KNOWN:
        return None
    return next(filter(None, (stage.known(sentence) for stage in stages)), None)


def finished(stages: Stages, text: str, sentence: StagedSentence) -> str:
    """A translation as it is written after all stages."""
    for stage in reversed(stages):
        text = stage.finish(text, sentence)
    return text
