"""Recall: what is known of sentences before anything is decoded, by text stages or the caller's translation memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tandem.models.text import normalise
from tandem.service.text.languages import base_code
from tandem.service.translation.requests import Recall, TranslateTask
from tandem.service.translation.stages import recalled
from tandem.service.translation.units import ParsedText, Unit


def recall(request: TranslateTask, memory: Recall | None, parsed: Sequence[ParsedText]) -> None:
    """Give sentences the translations that a stage knows of them, or the memory of the caller, if that has one.

    Neither is asked: for sentences with terms of a glossary or parts that the request protects, for blocks with inline
    markup, since nothing would say where that belongs, for texts in several languages, and where the answer is to be
    drawn or begins with a prefix.
    """
    if request.sampling is not None:
        return
    for text in parsed:
        for unit in _plain_units(request, text) if text.plan.stages else ():
            if found := recalled(text.plan.stages, unit.sentence):
                unit.take(found.translations, "stage")
    if request.memory and memory is not None:
        _remember(request, memory, parsed)


def _remember(request: TranslateTask, memory: Recall, parsed: Sequence[ParsedText]) -> None:
    """A match is the whole sentence, as models read it and as it is cut out of the text. It goes before a stage's."""
    units: dict[str, list[Unit]] = {}
    for text in parsed:
        units.setdefault(base_code(text.plan.route.languages[0]), []).extend(_plain_units(request, text))
    for source, some in units.items():
        sentences = [normalise(unit.sent.source) for unit in some]
        found = memory(source, base_code(request.target), set(sentences))
        for unit, sentence in zip(some, sentences, strict=True):
            unit.take([found[sentence]] if sentence in found else (), "memory")


def _plain_units(request: TranslateTask, text: ParsedText) -> Iterator[Unit]:
    for segment in text.segments:
        if segment.attention:
            continue
        for unit in segment.units:
            plain = len(unit.texts) == 1 and not any(one.asked for one in unit.masked.hidden)
            if plain and not (unit.first and request.prefix):
                yield unit
