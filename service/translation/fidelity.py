"""Fidelity: what holds a translation against its source, if an extra brings it; else a model's text stands as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol, TypeAlias

from tandem.service.ports import extras, load
from tandem.service.text.masking import HiddenPlace, Masked
from tandem.service.translation.stages import StagedSentence

Fault: TypeAlias = Literal["characters", "signs", "numbers", "parts", "brackets", "words"]
"""What a translation lacks, or has and its source does not: a broken character, a sign or a letter that models hardly
know, a number of four digits or more, or another number or none instead of one, a part that comes back as it is, the
other one of two brackets or quotation marks or what they hold, or words at all."""
ESCAPED = "\\'"
"""An apostrophe as some programs want it; languages differ in how many they write, so nothing counts them."""


class Check(Protocol):
    """Given a translation after all stages, its sentence, its language, characters that its models have hardly read,
    and whether it may get the capital that the sentence begins with: as it is written, and what is at fault in it."""

    def __call__(
        self, written: str, sentence: StagedSentence, language: str, rare: Set[str], *, begins: bool
    ) -> tuple[str, tuple[Fault, ...]]: ...


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What an extra brings.

    Attributes:
        check: a translation.
        to_hide: given a sentence as it was read, its translation, the faults of that, rarely read characters and the
            language: places in the sentence, in order, that no model should read once more.
        ended: a part of a translation with the final punctuation of its source, given both and the language.
    """

    check: Check
    to_hide: Callable[[Masked, str, Collection[Fault], Set[str], str], list[HiddenPlace]]
    ended: Callable[[str, str, str], str]


UNCHECKED = Fidelity(
    lambda written, sentence, language, rare, *, begins: (written, ()),
    lambda sentence, written, faults, rare, language: [],
    lambda written, source, language: written,
)


@cache
def fidelity() -> Fidelity:
    """What an extra brings."""
    found: Fidelity = next((load(extra.fidelity) for extra in extras() if extra.fidelity), UNCHECKED)
    return found
