"""Text stages: what may be done to a sentence before a model reads it, and to its translation afterwards.

    prepare   the sentence that is read: other words, or more parts hidden        before it is tokenised
    known     its translations, where nothing need be decoded                     instead of decoding
    finish    the translation that is written                                     last

Units know these three and nothing of what a stage looks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from tandem.models.bundle import Bundle
from tandem.service.ports import extras, load
from tandem.service.text.accelerators import (
    find_accelerator,
    split_accelerator,
    with_accelerator,
    with_behind,
    without_accelerator,
)
from tandem.service.text.faithful import ESCAPED
from tandem.service.text.masking import Masked

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


class AcceleratorStage:
    """Reads labels without their accelerators, and gives these back to their translations; models know none."""

    def prepare(self, sentence: Masked) -> Masked:
        """The label as a reader sees it."""
        return replace(sentence, text=without_accelerator(sentence.text, shown=True))

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """Nothing."""
        return None

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """The translation with the mark in it."""
        label, behind = split_accelerator(sentence.sent.text)
        if behind:
            return with_behind(text, behind)
        found = find_accelerator(label, shown=True)
        return text if found is None else with_accelerator(text, label[found.end - 1], label[found.start])


class ApostropheStage:
    r"""Reads apostrophes that a program wants behind a backslash (``can\'t``) as such, and writes all of them so."""

    def prepare(self, sentence: Masked) -> Masked:
        """The text without these backslashes."""
        return replace(sentence, text=sentence.text.replace(ESCAPED, "'")) if _escapes(sentence) else sentence

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """Nothing."""
        return None

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """The translation with a backslash before each apostrophe."""
        return _APOSTROPHE.sub(lambda _: ESCAPED, text) if _escapes(sentence.sent) else text


def _escapes(sentence: Masked) -> bool:
    return ESCAPED in sentence.text and not _APOSTROPHE.search(sentence.text)


_APOSTROPHE = re.compile(r"(?<!\\)'")


StageMaker = Callable[[Way], Stage]
"""Makes a stage for a way."""
Stages = Sequence[Stage]
"""In the order in which they prepare; they finish the other way round."""


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
